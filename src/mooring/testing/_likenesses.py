"""Pods that a plugin with a scope must not tell from another, or only in part.

A *twin* differs in name, age and status only, and is of the same class whatever the plugins; a
*stranger* has something else about it, and may still have an equal cache key.
"""

from __future__ import annotations

import functools
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
_REMEMBERED: Final = 512  # pods whose likenesses are asked for by check after check


# --- of the same class --------------------------------------------------------------------------


def _renamed(api: core.Pod) -> core.Pod:
    meta = api.metadata
    return _with_meta(api, name=f"{meta.name}-twin", uid=f"{meta.uid or meta.name}-twin")


def _created_later(api: core.Pod) -> core.Pod:
    return _with_meta(api, creation_timestamp=_LATER, resource_version="7", generation=7)


def _tried_before(api: core.Pod) -> core.Pod:
    tried = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    return structs.replace(api, status=structs.replace(api.status, conditions=(tried,)))


def _with_token(api: core.Pod) -> core.Pod:
    return _with_spec(api, volumes=(*api.spec.volumes, core.Volume(name="token-twin")))


SAME_SPEC: Final[Mapping[str, _Change]] = {
    "with another name and uid": _renamed,
    "created at another time": _created_later,
    "that was tried before": _tried_before,
}
TWINS: Final[Mapping[str, _Change]] = {
    **SAME_SPEC,
    "with one more volume that has no source": _with_token,
}
"""What may differ between pods of one class whatever the plugins, one thing at a time."""


@functools.lru_cache(maxsize=_REMEMBERED)
def twin_of(pod: Pod) -> Pod:
    """A pod that differs in all that can't make another class of it."""
    return _changed(pod, TWINS)


def seen_running(pod: Pod) -> Pod:
    """A pod on a node in another state, which weighs as much."""
    ready = Condition(type="Ready", status="True")
    phase = "Running" if pod.status.phase != "Running" else "Pending"
    status = structs.replace(pod.status, phase=phase, conditions=(ready,), start_time=_LATER)
    return Pod(structs.replace(pod.api, status=status))


# --- of other classes ---------------------------------------------------------------------------

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


def _lent(field: str) -> _Change:
    """A field of the donor's spec."""
    return lambda api: _with_spec(api, **{field: getattr(_DONOR.spec, field)})


def _lent_meta(field: str) -> _Change:
    return lambda api: _with_meta(api, **{field: getattr(_DONOR.metadata, field)})


def _owned(api: core.Pod) -> core.Pod:
    owner = OwnerReference(kind="ReplicaSet", name="stranger", uid="uid-stranger", controller=True)
    return _with_meta(api, owner_references=(owner,))


def _skewed(action: str) -> _Change:
    """The same spread constraints, some of them less strict."""

    def change(api: core.Pod) -> core.Pod:
        constraints = [
            structs.replace(constraint, max_skew=constraint.max_skew + 10)
            if constraint.when_unsatisfiable == action
            else constraint
            for constraint in api.spec.topology_spread_constraints
        ]
        return _with_spec(api, topology_spread_constraints=tuple(constraints))

    return change


def _first_container(**fields: Any) -> _Change:
    def change(api: core.Pod) -> core.Pod:
        first, *others = api.spec.containers or (core.Container(),)
        return _with_spec(api, containers=(structs.replace(first, **fields), *others))

    return change


def _asking(resource: str, quantity: str) -> _Change:
    def change(api: core.Pod) -> core.Pod:
        first = (api.spec.containers or (core.Container(),))[0]
        requests = ResourceList({**first.resources.requests, resource: parse_quantity(quantity)})
        resources = structs.replace(first.resources, requests=requests)
        return _first_container(resources=resources)(api)

    return change


BESIDES: Final[Mapping[str, _Change]] = {
    "name": _renamed,
    "namespace": _lent_meta("namespace"),
    "labels": _lent_meta("labels"),
    "annotations": _lent_meta("annotations"),
    "owner": _owned,
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
    "cpu": _asking("cpu", "3"),
    "memory": _asking("memory", "3Gi"),
    "extended resources": _asking("nvidia.com/gpu", "1"),
    "overhead": _lent("overhead"),
    "init containers": _lent("init_containers"),
    "resources of the pod as a whole": _lent("resources"),
}
"""What makes a pod request something else."""


OUTSIDE_SPEC: Final[Mapping[str, _Change]] = {
    name: BESIDES[name] for name in ("namespace", "labels", "annotations", "owner")
}
"""What may be different about pods with equal specs."""


class Stranger(NamedTuple):
    """A pod, and what is different about it."""

    pod: Pod
    others: tuple[str, ...]


def stranger_to(pod: Pod, is_like: Callable[[Pod], bool]) -> Stranger:
    """As different as a pod can be that is still like this one."""
    far = _as_far_as_can_be(pod)
    api, others = far.api, tuple(BESIDES)
    if not is_like(far):
        api, others = _changed_step_by_step(pod.api, BESIDES, is_like)
    api, also = _changed_step_by_step(api, REQUESTS, is_like)
    return Stranger(Pod(api), (*others, *also))


def strangers_one_by_one(pod: Pod, is_like: Callable[[Pod], bool]) -> Iterator[Stranger]:
    """Pods that are like this one and differ in a single thing."""
    for other, change in {**BESIDES, **REQUESTS}.items():
        changed = Pod(change(pod.api))
        if is_like(changed):
            yield Stranger(changed, (other,))


@functools.lru_cache(maxsize=_REMEMBERED)
def _as_far_as_can_be(pod: Pod) -> Pod:
    return _changed(pod, BESIDES)


def _changed(pod: Pod, changes: Mapping[str, _Change]) -> Pod:
    api = pod.api
    for change in changes.values():
        api = change(api)
    return Pod(api)


def _changed_step_by_step(
    api: core.Pod, changes: Mapping[str, _Change], is_like: Callable[[Pod], bool]
) -> tuple[core.Pod, tuple[str, ...]]:
    others = []
    for other, change in changes.items():
        changed = change(api)
        if changed != api and is_like(Pod(changed)):
            api = changed
            others.append(other)
    return api, tuple(others)


def _with_meta(api: core.Pod, **fields: Any) -> core.Pod:
    return structs.replace(api, metadata=structs.replace(api.metadata, **fields))


def _with_spec(api: core.Pod, **fields: Any) -> core.Pod:
    return structs.replace(api, spec=structs.replace(api.spec, **fields))
