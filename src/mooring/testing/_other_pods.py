"""Pods that come after the one of a case and may share its kept answers.

A *twin* differs in name, age and status only: plugins with `depends_on` must not tell it from the
first one. Any other pod differs in something that a cache key may leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import structs

from mooring.api import core
from mooring.api.meta import Condition, OwnerReference, ResourceList
from mooring.api.quantity import parse_quantity
from mooring.cache.pods import Pod
from mooring.testing.builders import ZONE
from mooring.testing.builders import pod as build_pod

_Change = Callable[[core.Pod], core.Pod]
_LATER: Final = "2026-01-01T01:00:00Z"


class OtherPod(NamedTuple):
    """A pod, and in words how it differs."""

    pod: Pod
    words: str  # finishes "for ..."
    is_twin: bool = False


def other_pods(pod: Pod) -> Iterator[OtherPod]:
    """Twins, then pods that differ in one thing, then pods that differ in nearly everything."""
    for words, change in TWINS.items():
        yield OtherPod(Pod(change(pod.api)), f"a pod {words}", is_twin=True)
    for name, change in {**BESIDES, **REQUESTS}.items():
        changed = change(pod.api)
        if changed != pod.api:
            yield OtherPod(Pod(changed), f"a pod with other {name}")
    far = _changed(pod.api, BESIDES)
    yield OtherPod(Pod(far), "a pod with the same requests that differs in all else")
    yield OtherPod(Pod(_changed(far, REQUESTS)), "a pod that differs in everything")


def twin_of(pod: Pod) -> Pod:
    """A pod that differs in all that can't make another class of it."""
    return Pod(_changed(pod.api, TWINS))


def seen_running(pod: Pod) -> Pod:
    """A pod on a node in another state, which weighs as much."""
    ready = Condition(type="Ready", status="True")
    phase = "Running" if pod.status.phase != "Running" else "Pending"
    status = structs.replace(pod.status, phase=phase, conditions=(ready,), start_time=_LATER)
    return Pod(structs.replace(pod.api, status=status))


def _with(api: core.Pod, part: str, **fields: Any) -> core.Pod:
    return structs.replace(api, **{part: structs.replace(getattr(api, part), **fields)})


def _renamed(api: core.Pod) -> core.Pod:
    meta = api.metadata
    uid = f"{meta.uid or meta.name}-twin"
    return _with(api, "metadata", name=f"{meta.name}-twin", uid=uid)


def _created_later(api: core.Pod) -> core.Pod:
    return _with(api, "metadata", creation_timestamp=_LATER, resource_version="7", generation=7)


def _tried_before(api: core.Pod) -> core.Pod:
    tried = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    return _with(api, "status", conditions=(tried,))


def _with_token(api: core.Pod) -> core.Pod:
    return _with(api, "spec", volumes=(*api.spec.volumes, core.Volume(name="token-twin")))


TWINS: Final[Mapping[str, _Change]] = {
    "with another name and uid": _renamed,
    "created at another time": _created_later,
    "that was tried before": _tried_before,
    "with one more volume that has no source": _with_token,
}
"""What may differ between pods of one class whatever the plugins, one thing at a time."""

_DONOR: Final[core.Pod] = build_pod(
    "stranger",
    namespace="elsewhere",
    labels={"app": "stranger", "tier": "front"},
    annotations={"note": "stranger"},
    priority=1_000,
    image="stranger:v1",
    ports=[80, "443/UDP"],
    tolerates=[""],
    node_selector={"disk": "ssd"},
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
                ]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        },
    },
    spread={"zone": 1},
    spec={
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "stranger"}}],
        "overhead": {"cpu": "250m", "memory": "100Mi"},
        "resources": {"requests": {"cpu": "3", "memory": "3Gi"}},
        "initContainers": [
            {"name": "i0", "image": "stranger:v1", "resources": {"requests": {"cpu": "3"}}}
        ],
        "hostNetwork": True,
        "hostUsers": False,
        "resourceClaims": [{"name": "device", "resourceClaimName": "stranger"}],
    },
).api
_OWNER: Final = OwnerReference(
    kind="ReplicaSet", name="stranger", uid="uid-stranger", controller=True
)


def _lent(field: str, part: str = "spec") -> _Change:
    """A field of the donor."""
    return lambda api: _with(api, part, **{field: getattr(getattr(_DONOR, part), field)})


def _skewed(action: str) -> _Change:
    """The same spread constraints, those with this action less strict."""

    def change(api: core.Pod) -> core.Pod:
        constraints = [
            structs.replace(one, max_skew=one.max_skew + 10)
            if one.when_unsatisfiable == action
            else one
            for one in api.spec.topology_spread_constraints
        ]
        return _with(api, "spec", topology_spread_constraints=tuple(constraints))

    return change


def _first_container(**fields: Any) -> _Change:
    def change(api: core.Pod) -> core.Pod:
        first, *others = api.spec.containers or (core.Container(),)
        return _with(api, "spec", containers=(structs.replace(first, **fields), *others))

    return change


def _requesting(resource: str, quantity: str) -> _Change:
    def change(api: core.Pod) -> core.Pod:
        first = (api.spec.containers or (core.Container(),))[0]
        requests = ResourceList({**first.resources.requests, resource: parse_quantity(quantity)})
        resources = structs.replace(first.resources, requests=requests)
        return _first_container(resources=resources)(api)

    return change


BESIDES: Final[Mapping[str, _Change]] = {
    "namespace": _lent("namespace", "metadata"),
    "labels": _lent("labels", "metadata"),
    "annotations": _lent("annotations", "metadata"),
    "owner": lambda api: _with(api, "metadata", owner_references=(_OWNER,)),
    "priority": _lent("priority"),
    "tolerations": _lent("tolerations"),
    "node selector": _lent("node_selector"),
    "affinity": _lent("affinity"),
    "spread constraints": _lent("topology_spread_constraints"),
    "hard skew": _skewed("DoNotSchedule"),
    "soft skew": _skewed("ScheduleAnyway"),
    "volumes": _lent("volumes"),
    "host network": _lent("host_network"),
    "host users": _lent("host_users"),
    "resource claims": _lent("resource_claims"),
    "image": _first_container(image=_DONOR.spec.containers[0].image),
    "ports": _first_container(ports=_DONOR.spec.containers[0].ports),
}
"""What may be different about a pod besides what it requests, by its name."""

REQUESTS: Final[Mapping[str, _Change]] = {
    "cpu": _requesting("cpu", "3"),
    "memory": _requesting("memory", "3Gi"),
    "extended resources": _requesting("nvidia.com/gpu", "1"),
    "overhead": _lent("overhead"),
    "init containers": _lent("init_containers"),
    "resources of the pod as a whole": _lent("resources"),
}
"""What makes a pod request something else."""


def _changed(api: core.Pod, changes: Mapping[str, _Change]) -> core.Pod:
    for change in changes.values():
        api = change(api)
    return api
