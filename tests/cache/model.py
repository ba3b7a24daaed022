"""The cluster as plain dictionaries: what the columns must amount to, computed the slow way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from mooring.api import core
from mooring.api.codec import convert
from mooring.api.requests import HostPort
from mooring.cache.pods import Pod

MIB = 1024 * 1024
GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
UNCOUNTED = "storage"  # a resource that no node keeps account of
RESOURCES = ("cpu", "memory", "pods", GPU, HUGE)

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
SERIAL = "example.com/serial"
LABEL_KEYS = (HOSTNAME, ZONE, OLD_ZONE, SERIAL)

Pairs = tuple[tuple[str, str], ...]


class NodeFacts(NamedTuple):
    name: str
    labels: Pairs = ()
    offers: tuple[tuple[str, int], ...] = (("cpu", 4),)  # cores, MiB of memory, whole units
    unschedulable: bool = False
    taints: tuple[tuple[str, str, str], ...] = ()
    images: tuple[tuple[tuple[str, ...], int], ...] = ()  # names, bytes

    @property
    def zone(self) -> str:
        labels = dict(self.labels)
        return labels.get(OLD_ZONE, labels.get(ZONE, ""))

    @property
    def all_labels(self) -> dict[str, str]:
        return {HOSTNAME: self.name, **dict(self.labels)}

    def allocatable(self, resource: str) -> int:
        unit = {"cpu": 1000, "memory": MIB}.get(resource, 1)
        return unit * dict(self.offers).get(resource, 0)

    @property
    def image_names(self) -> set[str]:
        return {name for names, _ in self.images for name in names}

    def api(self) -> core.Node:
        return _node(self)


class PodFacts(NamedTuple):
    uid: str
    name: str = "p"
    node: str = ""
    cpu: int | None = None  # thousandths
    memory: int | None = None  # MiB
    gpu: int = 0
    resized_cpu: int | None = None  # what the kubelet reports
    ports: tuple[HostPort, ...] = ()
    app: str = ""
    phase: str = "Running"
    deleting: bool = False

    def on(self, node: str) -> PodFacts:
        return self._replace(node=node)

    def pod(self) -> Pod:
        return _pod(self)

    @property
    def occupied_cpu(self) -> int | None:
        return max((n for n in (self.cpu, self.resized_cpu) if n is not None), default=None)

    def usage(self, resource: str) -> int:
        if resource == "memory":
            return (self.memory or 0) * MIB
        return {"cpu": self.occupied_cpu or 0, GPU: self.gpu, "pods": 1}.get(resource, 0)

    def nonzero(self, resource: str) -> int:
        if resource == "cpu":
            return 100 if self.occupied_cpu is None else self.occupied_cpu
        return MIB * (200 if self.memory is None else self.memory)


class Sums(NamedTuple):
    """What some pods amount to on one node."""

    requested: dict[str, int]
    nonzero: tuple[int, int]
    uids: set[str]

    @classmethod
    def of(cls, pods: Iterable[PodFacts]) -> Sums:
        pods = list(pods)
        return cls(
            {name: sum(pod.usage(name) for pod in pods) for name in RESOURCES},
            (sum(pod.nonzero("cpu") for pod in pods), sum(pod.nonzero("memory") for pod in pods)),
            {pod.uid for pod in pods},
        )


class Model:
    """Nodes, pods and assumptions, with no thought given to speed."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        self.pods: dict[str, PodFacts] = {}
        self.assumed: set[str] = set()
        self.tree = Tree()
        self.structure = 0  # grows when nodes come or go
        self.image_sizes: dict[str, set[int]] = {}  # reported since some node has had the image

    def put_node(self, node: NodeFacts) -> None:
        old = self.nodes.get(node.name)
        if old is None:
            self.structure += 1
        self.tree.put(node.name, None if old is None else old.zone, node.zone)
        if old is not None and old.images != node.images:
            self.nodes[node.name] = node._replace(images=())
            self._forget_images()
        self.nodes[node.name] = node
        for names, size in node.images:
            for name in names:
                self.image_sizes.setdefault(name, set()).add(size)

    def remove_node(self, name: str) -> None:
        old = self.nodes.pop(name, None)
        if old is not None:
            self.structure += 1
            self.tree.remove(name, old.zone)
            self._forget_images()

    def _forget_images(self) -> None:
        present = {name for node in self.nodes.values() for name in node.image_names}
        for name in self.image_sizes.keys() - present:
            del self.image_sizes[name]

    def put_pod(self, pod: PodFacts) -> None:
        self.drop(pod.uid)
        if pod.phase not in ("Succeeded", "Failed"):
            self.pods[pod.uid] = pod

    def drop(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self.assumed.discard(uid)

    def pods_on(self, name: str) -> list[PodFacts]:
        return [pod for pod in self.pods.values() if pod.node == name]

    def count(self, matches: Callable[[PodFacts], bool]) -> dict[str, int]:
        return {name: sum(map(matches, self.pods_on(name))) for name in self.nodes}

    def count_by(self, key: str, matches: Callable[[PodFacts], bool]) -> dict[str | None, int]:
        """Pods per value of a label; those without a pod are left out."""
        return self.sum_by(key, self.count(matches))

    def count_features(
        self, extract: Callable[[PodFacts], Iterable[Hashable]]
    ) -> dict[Hashable, dict[str, int]]:
        """Feature -> node -> how often its pods have it; those that no pod has are left out."""
        found: dict[Hashable, dict[str, int]] = {}
        for name in self.nodes:
            for pod in self.pods_on(name):
                for feature in extract(pod):
                    counts = found.setdefault(feature, dict.fromkeys(self.nodes, 0))
                    counts[name] += 1
        return found

    def sum_by(self, key: str, counts: Mapping[str, int]) -> dict[str | None, int]:
        """Numbers of nodes per value of a label; values that come to nothing are left out."""
        found: dict[str | None, int] = {}
        for name, count in counts.items():
            value = self.nodes[name].all_labels.get(key)
            found[value] = found.get(value, 0) + count
        return {value: count for value, count in found.items() if count}

    def port_taken(self, name: str, port: HostPort) -> bool:
        return is_held((held for pod in self.pods_on(name) for held in pod.ports), port)


class Tree:
    """kube-scheduler's node tree, and the list it last made of it."""

    def __init__(self) -> None:
        self.zones: list[str] = []
        self.members: dict[str, list[str]] = {}
        self._listed: list[str] = []
        self._is_stale = False

    def put(self, name: str, old_zone: str | None, zone: str) -> None:
        if old_zone == zone:
            return
        if old_zone is None:
            self._is_stale = True
        else:
            self._drop(name, old_zone)
        if zone not in self.zones:
            self.zones.append(zone)
            self.members[zone] = []
        self.members[zone].append(name)

    def remove(self, name: str, zone: str) -> None:
        self._is_stale = True
        self._drop(name, zone)

    def _drop(self, name: str, zone: str) -> None:
        self.members[zone].remove(name)
        if not self.members[zone]:
            self.zones.remove(zone)

    def listed(self) -> list[str]:
        if self._is_stale:
            columns = [self.members[zone] for zone in self.zones]
            deepest = max(map(len, columns), default=0)
            self._listed = [
                column[depth]
                for depth in range(deepest)
                for column in columns
                if depth < len(column)
            ]
            self._is_stale = False
        return self._listed


def is_held(holders: Iterable[HostPort], port: HostPort) -> bool:
    return any(
        (held.protocol, held.port) == (port.protocol, port.port)
        and (held.ip == port.ip or "0.0.0.0" in (held.ip, port.ip))
        for held in holders
    )


@functools.lru_cache(maxsize=4096)
def _node(facts: NodeFacts) -> core.Node:
    offers: Mapping[str, str] = {
        name: f"{number}Mi" if name == "memory" else str(number) for name, number in facts.offers
    }
    raw: dict[str, Any] = {
        "metadata": {"name": facts.name, "labels": facts.all_labels},
        "spec": {
            "unschedulable": facts.unschedulable,
            "taints": [{"key": k, "value": v, "effect": e} for k, v, e in facts.taints],
        },
        "status": {
            "allocatable": offers,
            "images": [{"names": list(names), "sizeBytes": size} for names, size in facts.images],
        },
    }
    return convert(raw, core.Node)


@functools.lru_cache(maxsize=4096)
def _pod(facts: PodFacts) -> Pod:
    requests: dict[str, str] = {UNCOUNTED: "1"}
    if facts.cpu is not None:
        requests["cpu"] = f"{facts.cpu}m"
    if facts.memory is not None:
        requests["memory"] = f"{facts.memory}Mi"
    if facts.gpu:
        requests[GPU] = str(facts.gpu)
    metadata: dict[str, Any] = {"name": facts.name, "namespace": "shop", "uid": facts.uid}
    if facts.app:
        metadata["labels"] = {"app": facts.app}
    if facts.deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ports = [
        {"containerPort": 80, "hostPort": p.port, "protocol": p.protocol, "hostIP": p.ip}
        for p in facts.ports
    ]
    container = {"name": "c", "resources": {"requests": requests}, "ports": ports}
    status: dict[str, Any] = {"phase": facts.phase}
    if facts.resized_cpu is not None:
        granted = {"requests": {"cpu": f"{facts.resized_cpu}m"}}
        status["containerStatuses"] = [{"name": "c", "resources": granted}]
    spec = {"nodeName": facts.node, "containers": [container]}
    return Pod(convert({"metadata": metadata, "spec": spec, "status": status}, core.Pod))
