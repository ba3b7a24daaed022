"""Random clusters with small vocabularies, so that values collide and every branch is reached.

The same seed gives the same cluster. The objects can be put into a cache in any order; `checks`
tests plugins on them. Amounts stay below 2**56, so that a hundred times any of them fits an int64:
a plugin may multiply before it divides.
"""

from __future__ import annotations

import functools
import random
from typing import Any, Final

import msgspec

from mooring.api import apps, codec, core
from mooring.api.meta import Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.testing import _random_pods as pods
from mooring.testing._random_pods import NAMESPACES, Dice
from mooring.testing.builders import HOSTNAME, REGION, ZONE

SIZES: Final = (0, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20, 30)
INCOMING: Final = 4  # pods to schedule per cluster

_Raw = dict[str, Any]


class Cluster(msgspec.Struct, frozen=True, dict=True):
    """The objects of a cluster: nodes, the pods on them, other objects, and pods to schedule."""

    nodes: tuple[core.Node, ...]
    residents: tuple[Pod, ...]
    objects: tuple[Object, ...]
    incoming: tuple[Pod, ...]

    def cache(self) -> Cache:
        """A cache with all objects, added in this order."""
        cache = Cache()
        for value in self.objects:
            cache.objects.put(value)
        for node in self.nodes:
            cache.put_node(node)
        for resident in self.residents:
            cache.put_pod(resident)
        return cache

    @functools.cached_property
    def shared_cache(self) -> Cache:
        """A cache for all cases that change nothing: filling one takes longer than most checks."""
        return self.cache()


@functools.lru_cache(maxsize=256)
def random_cluster(seed: int) -> Cluster:
    """The cluster of that seed."""
    dice = Dice(random.Random(seed))
    size = dice.one(SIZES)
    nodes = tuple(random_node(dice, f"node-{i}") for i in range(size))
    names = [node.metadata.name for node in nodes]
    residents = tuple(random_resident(dice, f"old-{i}", names) for i in range(2 * size))
    incoming = tuple(random_pod(dice, f"new-{i}", names) for i in range(INCOMING))
    return Cluster(nodes, residents, random_objects(dice), incoming)


def random_node(dice: Dice, name: str) -> core.Node:
    """A node, usually healthy, often odd."""
    labels = {HOSTNAME: name} if not dice.rarely() else {}
    labels |= {ZONE: dice.one(pods.ZONES)} if dice.often() else {}
    labels |= {REGION: dice.one(pods.REGIONS)} if dice.often() else {}
    labels |= dice.some_of(pods.NODE_LABELS)
    offered = {
        "cpu": dice.one(("0", "1", "2", "3900m", "4", "4", "8", "64")),
        "memory": dice.one(("0", "1Gi", "4Gi", "8Gi", "8Gi", "16Gi", "256Gi", "12345678901")),
        "pods": dice.one(("0", "1", "3", "110", "110", "110")),
    }
    if dice.rarely():
        del offered[dice.one(tuple(offered))]
    offered |= dice.some_of(
        {
            "ephemeral-storage": ("0", "1Gi", "100Gi"),
            "hugepages-2Mi": ("0", "2Mi", "64Mi"),
            "nvidia.com/gpu": ("0", "1", "4"),
            "example.com/licence": ("1", "2"),
        }
    )
    spec = {"unschedulable": dice.rarely(), "taints": random_taints(dice)}
    status = {"allocatable": offered, "capacity": offered, "images": random_images(dice)}
    notes = {"note": dice.one(("a", "b"))} if dice.rarely() else {}
    meta = {"name": name, "uid": f"uid-{name}", "labels": labels, "annotations": notes}
    return codec.convert({"metadata": meta, "spec": spec, "status": status}, core.Node)


def random_taints(dice: Dice) -> list[_Raw]:
    if dice.often():
        return []
    taints = {
        (dice.one(pods.TAINT_KEYS), dice.one(pods.EFFECTS)): dice.one(pods.TAINT_VALUES)
        for _ in range(dice.number(1, 3))
    }
    return [{"key": key, "value": taints[key, effect], "effect": effect} for key, effect in taints]


def random_images(dice: Dice) -> list[_Raw]:
    # One size per name: if nodes disagree about an image, the cache depends on their order.
    return [
        {"names": list(names), "sizeBytes": size}
        for names, size in pods.IMAGES.items()
        if dice.sometimes()
    ]


def random_resident(dice: Dice, name: str, node_names: list[str]) -> Pod:
    """A pod that is bound to a node, whether or not it fits."""
    on = dice.one([*node_names, *node_names, *node_names, "gone"])
    raw = pods.random_pod(dice, name, node_names, features=1, is_huge=False)
    raw["spec"]["nodeName"] = on
    raw["spec"].pop("schedulingGates", None)
    phase = dice.one(("Running", "Running", "Running", "Pending", "Succeeded"))
    raw["status"] = {"phase": phase, "startTime": dice.one(pods.TIMES)}
    if dice.rarely():
        raw["metadata"]["deletionTimestamp"] = pods.TIMES[-1]
    if dice.rarely():  # resized in place: holds more, or less, than its spec says
        granted = {"cpu": dice.one(("50m", "3")), "memory": dice.one(("64Mi", "3Gi"))}
        raw["status"]["containerStatuses"] = [
            {"name": "c0", "resources": {"requests": granted}, "allocatedResources": granted}
        ]
    return Pod(codec.convert(raw, core.Pod))


def random_pod(dice: Dice, name: str, node_names: list[str]) -> Pod:
    """A pod to be scheduled, with up to four features."""
    raw = pods.random_pod(dice, name, node_names, features=dice.number(0, 4), is_huge=dice.rarely())
    return Pod(codec.convert(raw, core.Pod))


def random_objects(dice: Dice) -> tuple[Object, ...]:
    """Namespaces, and owners and services whose selectors match some of the pods."""
    found: list[Object] = [
        codec.convert({"metadata": {"name": name, "labels": labels}}, core.Namespace)
        for name, labels in NAMESPACES.items()
    ]
    for namespace in NAMESPACES:
        if dice.sometimes():
            app = {"app": dice.one(pods.POD_LABELS["app"])}
            meta = {"name": "svc", "namespace": namespace}
            raw = {"metadata": meta, "spec": {"selector": app}}
            found.append(codec.convert(raw, core.Service))
        if dice.sometimes():
            selector = {"matchLabels": {"app": dice.one(pods.POD_LABELS["app"])}}
            meta = {"name": pods.OWNER, "namespace": namespace}
            raw = {"metadata": meta, "spec": {"selector": selector, "replicas": 3}}
            found.append(codec.convert(raw, apps.ReplicaSet))
    return tuple(found)
