"""Pods that are evaluated after the pod of a case and may share its cached results.

A *twin* differs in name, age and status only: plugins with `depends_on` must treat it as the first
pod. Any other pod differs in something that a cache key may leave out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from mooring.api import codec, core
from mooring.api.meta import Condition, ResourceList
from mooring.cache.pods import Pod
from mooring.framework.depends_on import everything_of
from mooring.testing._bench import changed_in, taking_over
from mooring.testing._random_pods import FEATURES, REQUIRED, Dice, random_pod
from mooring.testing.builders import ZONE

_Change = Callable[[core.Pod], core.Pod]
_LATER: Final = "2026-01-01T01:00:00Z"


def other_pods(pod: Pod) -> Iterator[tuple[str, Pod]]:
    """Pods with a description: twins, then pods that differ in one field that may matter."""
    for words, change in TWINS.items():
        yield f"a pod {words}", Pod(change(pod.api))
    for words, api in _strangers(pod.api):
        other = Pod(api)
        if everything_of(other) != everything_of(pod):
            yield f"a pod with other {words}", other
    far = changed_in(_STRANGER, "spec", **{name: getattr(pod.spec, name) for name in _REQUESTING})
    yield "a pod with the same requests that differs in nearly all else", Pod(far)


def twin_of(pod: Pod) -> Pod:
    """A pod of the same class that differs in everything else."""
    return Pod(_changed(pod.api, TWINS))


def seen_running(pod: Pod) -> Pod:
    """A pod on a node with another status and the same requests."""
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
"""The differences between pods of one class, whatever the plugins, one at a time."""


def _stranger() -> core.Pod:
    """A random pod with every feature, and with fields that no random pod has."""
    features = len(FEATURES)
    in_zone_a = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
    near_web = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    raw = random_pod(Dice(random.Random(0)), "stranger", [], features=features, is_huge=False)
    raw["metadata"] |= {
        "namespace": "elsewhere",
        "labels": {"app": "stranger", "tier": "front"},
        "annotations": {"note": "stranger"},
    }
    raw["spec"] |= {
        "priority": 1_000,
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [in_zone_a]}},
            "podAntiAffinity": {REQUIRED: [near_web]},
        },
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "stranger"}}],
        "overhead": {"cpu": "250m", "memory": "100Mi"},
        "resources": {"requests": {"cpu": "3", "memory": "3Gi"}},
        "initContainers": [{"name": "i0", "resources": {"requests": {"cpu": "3"}}}],
        "hostNetwork": True,
        "hostUsers": False,
        "resourceClaims": [{"name": "device", "resourceClaimName": "stranger"}],
    }
    requests = {"cpu": "3", "memory": "3Gi", "nvidia.com/gpu": "1"}
    raw["spec"]["containers"][0] |= {"image": "stranger:v1", "resources": {"requests": requests}}
    return codec.convert(raw, core.Pod)


_STRANGER: Final[core.Pod] = _stranger()
_REQUESTING: Final = ("containers", "init_containers", "overhead", "resources")


def _strangers(api: core.Pod) -> Iterator[tuple[str, core.Pod]]:
    """The pod with one field of the stranger, the smallest fields first."""
    containers = api.spec.containers or (core.Container(),)
    first, theirs = containers[0], _STRANGER.spec.containers[0]
    fields: dict[str, dict[str, Any]] = {
        "image": {"image": theirs.image},
        "ports": {"ports": theirs.ports},
    }
    for name, quantity in theirs.resources.requests.items():
        requests = ResourceList({**first.resources.requests, name: quantity})
        fields[name] = {"resources": structs.replace(first.resources, requests=requests)}
    for words, values in fields.items():
        changed_first = structs.replace(first, **values)
        yield words, changed_in(api, "spec", containers=(changed_first, *containers[1:]))
    for action in ("DoNotSchedule", "ScheduleAnyway"):
        constraints = [
            structs.replace(one, max_skew=one.max_skew + 10 * (one.when_unsatisfiable == action))
            for one in api.spec.topology_spread_constraints
        ]
        changed = changed_in(api, "spec", topology_spread_constraints=tuple(constraints))
        yield f"max skew of {action}", changed
    for field, _, changed in taking_over(api, _STRANGER, "metadata", "spec"):
        yield field.replace("_", " "), changed
