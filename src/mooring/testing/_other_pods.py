"""Pods that come after the one of a case and may share its kept answers.

A *twin* differs in name, age and status only: plugins with `depends_on` must not tell it from the
first one. Any other pod differs in something that a cache key may leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from mooring.api import core
from mooring.api.meta import Condition, OwnerReference, ResourceList
from mooring.cache.pods import Pod
from mooring.testing._bench import changed_in
from mooring.testing.builders import ZONE
from mooring.testing.builders import pod as build_pod

_Change = Callable[[core.Pod], core.Pod]
_LATER: Final = "2026-01-01T01:00:00Z"


def other_pods(pod: Pod) -> Iterator[tuple[str, Pod]]:
    """How it differs, and the pod: twins, then what a key may leave out, one thing at a time."""
    for words, change in {**TWINS, **_BESIDES, **_REQUESTS}.items():
        changed = change(pod.api)
        if changed != pod.api:
            yield f"a pod {words}", Pod(changed)
    far = Pod(_changed(pod.api, _BESIDES))
    yield "a pod with the same requests that differs in all else", far


def twin_of(pod: Pod) -> Pod:
    """A pod that differs in all that can't make another class of it."""
    return Pod(_changed(pod.api, TWINS))


def seen_running(pod: Pod) -> Pod:
    """A pod on a node in another state, which weighs as much."""
    ready = Condition(type="Ready", status="True")
    phase = "Running" if pod.status.phase != "Running" else "Pending"
    status = {"phase": phase, "conditions": (ready,), "start_time": _LATER}
    return Pod(changed_in(pod.api, "status", **status))


def _changed(api: core.Pod, changes: Mapping[str, _Change]) -> core.Pod:
    for change in changes.values():
        api = change(api)
    return api


def _renamed(api: core.Pod) -> core.Pod:
    meta = api.metadata
    uid = f"{meta.uid or meta.name}-twin"
    return changed_in(api, "metadata", name=f"{meta.name}-twin", uid=uid)


def _always(part: str, **fields: Any) -> _Change:
    return lambda api: changed_in(api, part, **fields)


def _with_token(api: core.Pod) -> core.Pod:
    volumes = (*api.spec.volumes, core.Volume(name="token-twin"))
    return changed_in(api, "spec", volumes=volumes)


_TRIED: Final = Condition(type="PodScheduled", status="False", reason="Unschedulable")
TWINS: Final[Mapping[str, _Change]] = {
    "with another name and uid": _renamed,
    "created at another time": _always(
        "metadata", creation_timestamp=_LATER, resource_version="7", generation=7
    ),
    "that was tried before": _always("status", conditions=(_TRIED,)),
    "with one more volume that has no source": _with_token,
}
"""What may differ between pods of one class whatever the plugins, one thing at a time."""

_STRANGER: Final[core.Pod] = build_pod(
    "stranger",
    namespace="elsewhere",
    labels={"app": "stranger", "tier": "front"},
    annotations={"note": "stranger"},
    priority=1_000,
    requests={"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "1"},
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


def _of_stranger(part: str, *fields: str) -> dict[str, _Change]:
    """Changes that take over one field each, by the words for the field."""
    source = getattr(_STRANGER, part)
    return {
        f"with other {field.replace('_', ' ')}": _always(part, **{field: getattr(source, field)})
        for field in fields
    }


def _less_strict(api: core.Pod) -> core.Pod:
    constraints = [
        structs.replace(one, max_skew=one.max_skew + 10)
        for one in api.spec.topology_spread_constraints
    ]
    return changed_in(api, "spec", topology_spread_constraints=tuple(constraints))


def _first_container(**fields: Any) -> _Change:
    def change(api: core.Pod) -> core.Pod:
        first, *others = api.spec.containers or (core.Container(),)
        return changed_in(api, "spec", containers=(structs.replace(first, **fields), *others))

    return change


def _requesting(resource: str) -> _Change:
    wanted = _STRANGER.spec.containers[0].resources.requests[resource]

    def change(api: core.Pod) -> core.Pod:
        first = (api.spec.containers or (core.Container(),))[0]
        requests = ResourceList({**first.resources.requests, resource: wanted})
        resources = structs.replace(first.resources, requests=requests)
        return _first_container(resources=resources)(api)

    return change


_BESIDES: Final[Mapping[str, _Change]] = {
    **_of_stranger("metadata", "namespace", "labels", "annotations"),
    "with other owner": _always("metadata", owner_references=(_OWNER,)),
    **_of_stranger("spec", "priority", "tolerations", "node_selector", "affinity"),
    **_of_stranger("spec", "topology_spread_constraints", "volumes", "host_network"),
    **_of_stranger("spec", "host_users", "resource_claims"),
    "with other max skew": _less_strict,
    "with other image": _first_container(image=_STRANGER.spec.containers[0].image),
    "with other ports": _first_container(ports=_STRANGER.spec.containers[0].ports),
}
"""What may be different about a pod besides what it requests."""

_REQUESTS: Final[Mapping[str, _Change]] = {
    "with other cpu": _requesting("cpu"),
    "with other memory": _requesting("memory"),
    "with other extended resources": _requesting("nvidia.com/gpu"),
    **_of_stranger("spec", "overhead", "init_containers", "resources"),
}
"""What makes a pod request something else."""
