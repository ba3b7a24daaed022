"""What must hold at the end of every test, read from the API server and not from a scheduler.

- no node is given more than it has,
- no pod is bound twice,
- which pods wait (whether they may is for the test to say).

The audit log says who bound what and when.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from tests.controlplane.admin import Object
from tests.controlplane.plane import Plane

_MEASURED = ("cpu", "memory")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


@dataclass(frozen=True)
class Bind:
    """One attempt to bind a pod, as the API server saw it; `code` 201 is a success."""

    namespace: str
    pod: str
    uid: str  # empty if the request named none
    node: str
    user: str
    user_agent: str
    source: str
    time: datetime  # when the server had answered
    code: int

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.pod}"


@dataclass(frozen=True)
class Removal:
    """One attempt to delete or evict a pod."""

    namespace: str
    pod: str
    is_eviction: bool
    user: str
    user_agent: str
    time: datetime
    code: int

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.pod}"


@dataclass(frozen=True)
class Audit:
    """What was found; `broken` is empty if all is well."""

    overcommitted: tuple[str, ...]  # "node: 4100m of 4 cpu" and the like
    double_binds: tuple[str, ...]  # "namespace/name (uid)"
    unbound: tuple[str, ...]  # "namespace/name"
    bound: int  # pods that have a node and are not finished

    @property
    def broken(self) -> tuple[str, ...]:
        return self.overcommitted + tuple(f"bound twice: {pod}" for pod in self.double_binds)


def audit(control_plane: Plane, namespace: str = "") -> Audit:
    """Look at all nodes; at pods and binds only of `namespace`, if one is named."""
    nodes = control_plane.admin.list("Node")
    living = [pod for pod in control_plane.admin.list("Pod") if not _is_finished(pod)]
    ours = [pod for pod in living if namespace in ("", pod["metadata"]["namespace"])]
    waiting = [
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in ours
        if not pod["spec"].get("nodeName")
    ]
    return Audit(
        overcommitted=tuple(overcommitted(nodes, living)),
        double_binds=tuple(double_binds(binds(control_plane, namespace))),
        unbound=tuple(sorted(waiting)),
        bound=sum(1 for pod in ours if pod["spec"].get("nodeName")),
    )


def binds(control_plane: Plane, namespace: str = "") -> list[Bind]:
    """All attempts to bind, in the order in which they were answered."""
    found = []
    for event in _trail(control_plane, namespace):
        if event["objectRef"].get("subresource") == "binding":
            asked = event.get("requestObject", {})
            found.append(
                Bind(
                    uid=asked.get("metadata", {}).get("uid", ""),
                    node=asked.get("target", {}).get("name", ""),
                    source=",".join(event.get("sourceIPs", ())),
                    **_who_and_when(event),
                )
            )
    return found


def removals(control_plane: Plane, namespace: str = "") -> list[Removal]:
    """All attempts to delete or evict single pods, in the order in which they were answered."""
    return [
        Removal(is_eviction=event["verb"] == "create", **_who_and_when(event))
        for event in _trail(control_plane, namespace)
        if event["objectRef"].get("subresource", "") in ("", "eviction")
    ]


def double_binds(attempts: Iterable[Bind]) -> list[str]:
    """Which pods were bound more than once; with another uid it is another pod."""
    times = Counter((bind.key, bind.uid) for bind in attempts if bind.code == 201)
    return [f"{key} ({uid})" for (key, uid), count in times.items() if count > 1]


def overcommitted(nodes: Iterable[Object], pods: Iterable[Object]) -> list[str]:
    """Which nodes hold more than they have, and of what."""
    held: defaultdict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for pod in pods:
        if (where := pod["spec"].get("nodeName")) and not _is_finished(pod):
            held[where, "pods"] += 1
            for resource, amount in requests(pod).items():
                held[where, resource] += amount
    found = []
    for node in nodes:
        name, allocatable = node["metadata"]["name"], node["status"].get("allocatable", {})
        for resource in (*_MEASURED, "pods"):
            used, has = held[name, resource], quantity(allocatable.get(resource, "0"))
            if used > has:
                found.append(f"{name}: {float(used):g} of {float(has):g} {resource}")
    return found


def requests(pod: Mapping[str, Any]) -> dict[str, Fraction]:
    """What a scheduler must set aside for a pod: CPUs and bytes.

    The containers together, or the hungriest moment of its start if that is more: an init container
    runs beside the sidecars that were started before it. What is said for the pod as a whole wins.
    """
    spec = pod["spec"]
    needed: dict[str, Fraction] = {}
    for resource in _MEASURED:
        sidecars = peak = Fraction(0)
        for container in spec.get("initContainers", ()):
            amount = _request(container, resource)
            if container.get("restartPolicy") == "Always":
                sidecars += amount
                peak = max(peak, sidecars)
            else:
                peak = max(peak, sidecars + amount)
        running = sum((_request(each, resource) for each in spec["containers"]), sidecars)
        whole = spec.get("resources", {}).get("requests", {}).get(resource)
        needed[resource] = quantity(whole) if whole is not None else max(running, peak)
        needed[resource] += quantity(spec.get("overhead", {}).get(resource, "0"))
    return needed


def quantity(text: str) -> Fraction:
    """A Kubernetes quantity, exactly."""
    for suffix, power in _BINARY.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * (1 << power)
    if text[-1] in _DECIMAL:
        return Fraction(text[:-1]) * Fraction(10) ** _DECIMAL[text[-1]]
    return Fraction(text)


def _request(container: Mapping[str, Any], resource: str) -> Fraction:
    return quantity(container.get("resources", {}).get("requests", {}).get(resource, "0"))


def _is_finished(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _trail(control_plane: Plane, namespace: str) -> list[Object]:
    trail = _TRAILS.setdefault(control_plane, _Trail(control_plane.folder / "audit.log"))
    return [event for event in trail.read() if namespace in ("", event["objectRef"]["namespace"])]


class _Trail:
    """An audit log, of which each line is decoded once: tests ask again until a pod is bound."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0  # in the file, behind the last whole line
        self._events: list[Object] = []

    def read(self) -> list[Object]:
        """All events so far, in the order in which they were answered."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._position)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]  # the last line may be written right now
        self._position += len(whole)
        if whole:
            events = (_event(line) for line in whole.split(b"\n")[:-1])
            self._events += [event for event in events if event is not None]
            self._events.sort(key=lambda event: event["stageTimestamp"])
        return self._events


_TRAILS: WeakKeyDictionary[Plane, _Trail] = WeakKeyDictionary()


def _event(line: bytes) -> Object | None:
    """None for what a server wrote that was killed while it did; the next one goes on behind it."""
    try:
        event: Object = json.loads(line)
    except ValueError:  # not JSON, or not even UTF-8
        return None
    return event


def _who_and_when(event: Object) -> dict[str, Any]:
    subject = event["objectRef"]
    return {
        "namespace": subject["namespace"],
        "pod": subject.get("name", ""),
        "user": event["user"]["username"],
        "user_agent": event.get("userAgent", ""),
        "time": datetime.fromisoformat(event["stageTimestamp"]),
        "code": event.get("responseStatus", {}).get("code", 0),
    }
