"""Random pods, in the form of YAML; `_random_clusters` puts them on nodes.

A pod gets a few *features* out of a list, so that plain pods and pods with one feature are as
common as complicated ones: a fault is then found on a pod that shows its cause.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from mooring.testing.builders import HOSTNAME, REGION, ZONE

T = TypeVar("T")
_Raw = dict[str, Any]

ZONES: Final = ("a", "b", "c")
REGIONS: Final = ("east", "west")
NAMESPACES: Final[Mapping[str, Mapping[str, str]]] = {
    "default": {},
    "team-a": {"team": "a", "env": "prod"},
    "team-b": {"team": "b"},
}
NODE_LABELS: Final[Mapping[str, Sequence[str]]] = {
    "disk": ("ssd", "hdd", ""),
    "size": ("1", "2", "10", "-3", "large"),
    "pool": ("x", "y"),
}
POD_LABELS: Final[Mapping[str, Sequence[str]]] = {
    "app": ("web", "db"),
    "tier": ("front", "back"),
    "rev": ("1", "2"),
}
TAINT_KEYS: Final = ("gpu", "dedicated", "node.kubernetes.io/unschedulable")
TAINT_VALUES: Final = ("", "yes", "no")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
IMAGES: Final[Mapping[tuple[str, ...], int]] = {
    ("app:latest",): 50_000_000,
    ("web:v1", "registry.local/web:v1"): 300_000_000,
    ("model:v2",): 2_000_000_000,
}
TOPOLOGIES: Final = (ZONE, REGION, HOSTNAME, "disk", "nowhere")
TIMES: Final = ("2025-12-31T23:00:00Z", "2025-12-31T23:30:00Z", "2026-01-01T00:00:00Z")
OWNER: Final = "owner"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Dice:
    """Random choices with fixed probabilities."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one(self, of: Sequence[T]) -> T:
        return self.rng.choice(of)

    def some(self, of: Sequence[T], least: int = 0) -> list[T]:
        return self.rng.sample(of, self.rng.randint(least, len(of)))

    def number(self, least: int, most: int) -> int:
        return self.rng.randint(least, most)

    def rarely(self) -> bool:
        return self.rng.random() < 0.12

    def sometimes(self) -> bool:
        return self.rng.random() < 0.4

    def often(self) -> bool:
        return self.rng.random() < 0.7

    def some_of(self, vocabulary: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Some of the keys, each with one of its values."""
        return {key: self.one(values) for key, values in vocabulary.items() if self.sometimes()}


def random_pod(
    dice: Dice, name: str, node_names: Sequence[str], *, features: int, is_huge: bool
) -> _Raw:
    """A pod with that many features; a huge one asks for more than any node could have."""
    containers = [random_container(dice, f"c{i}") for i in range(dice.one((1, 1, 1, 2, 3)))]
    raw: _Raw = {
        "metadata": {
            "name": name,
            "namespace": dice.one(tuple(NAMESPACES)),
            "uid": f"uid-{name}",
            "labels": dice.some_of(POD_LABELS),
            "creationTimestamp": dice.one(TIMES),
        },
        "spec": {"containers": containers},
        "status": {"phase": "Pending"},
    }
    if dice.sometimes():
        raw["spec"]["priority"] = dice.one((-10, 0, 0, 10, 2_000_000_000))
    if is_huge:
        containers[0]["resources"] = {"requests": {"cpu": "1M", "memory": "64Pi"}}
    for path, make in dice.rng.sample(FEATURES, features):
        _write(raw, path, make(dice, node_names))
    return raw


def _given(**fields: Any) -> _Raw:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def random_container(dice: Dice, name: str) -> _Raw:
    image = dice.one(("app", "app:latest", "web:v1", "model:v2", "unheard-of"))
    resources = {"requests": random_requests(dice)} if dice.often() else None
    return _given(name=name, image=image, resources=resources)


def random_requests(dice: Dice) -> _Raw:
    common = dice.some_of(
        {
            "cpu": ("0", "1m", "100m", "500m", "1", "2", "4"),
            "memory": ("0", "1", "128Mi", "1Gi", "4Gi", "8Gi"),
        }
    )
    if not dice.rarely():
        return common
    return common | dice.some_of(
        {
            "ephemeral-storage": ("0", "1Gi", "50Gi"),
            "hugepages-2Mi": ("2Mi", "64Mi"),
            "nvidia.com/gpu": ("0", "1", "2"),
            "example.com/licence": ("1", "3"),
            "unknown-resource": ("1",),
        }
    )


# --- features: each makes the value of one field ----------------------------------------------


def _expression(dice: Dice, vocabulary: Mapping[str, Sequence[str]], *operators: str) -> _Raw:
    """One requirement of a selector; Gt and Lt are about the label `size`."""
    operator = dice.one(("In", "NotIn", "Exists", "DoesNotExist", *operators))
    if operator in ("Gt", "Lt"):
        bound = "many" if dice.rarely() else dice.one(("0", "1", "5"))
        return {"key": "size", "operator": operator, "values": [bound]}
    key = dice.one(tuple(vocabulary))
    values = dice.some(vocabulary[key], least=1) if operator in ("In", "NotIn") else []
    return {"key": key, "operator": operator, "values": values}


def _field(operator: str, name: str) -> _Raw:
    return {"key": "metadata.name", "operator": operator, "values": [name]}


def _node_term(dice: Dice, names: Sequence[str]) -> _Raw:
    term: _Raw = {}
    if dice.often():
        known = {**NODE_LABELS, ZONE: ZONES, "absent": ("x",)}
        count = dice.number(1, 2)
        term["matchExpressions"] = [_expression(dice, known, "Gt", "Lt") for _ in range(count)]
    if dice.rarely():
        name = dice.one((*names, "gone"))
        term["matchFields"] = [_field(dice.one(("In", "NotIn")), name)]
    return term


def _required_nodes(dice: Dice, names: Sequence[str]) -> _Raw:
    return {"nodeSelectorTerms": [_node_term(dice, names) for _ in range(dice.number(0, 3))]}


def _preferred_nodes(dice: Dice, names: Sequence[str]) -> list[_Raw]:
    return [
        {"weight": dice.one((1, 10, 100)), "preference": _node_term(dice, names)}
        for _ in range(dice.number(1, 3))
    ]


def _named_nodes(dice: Dice, names: Sequence[str]) -> _Raw:
    # As the DaemonSet controller writes it: every term names a node, so only these nodes matter.
    named = dice.some((*names, "gone"), least=1)[:2]
    return {"nodeSelectorTerms": [{"matchFields": [_field("In", name)]} for name in named]}


def _toleration(dice: Dice) -> _Raw:
    effect = dice.one(("", *EFFECTS))
    if dice.rarely():
        return {"operator": "Exists", "effect": effect}
    key = dice.one(TAINT_KEYS)
    if dice.sometimes():
        return {"key": key, "operator": "Exists", "effect": effect}
    operator = dice.one(("", "Equal"))
    return {"key": key, "operator": operator, "value": dice.one(TAINT_VALUES), "effect": effect}


def _tolerations(dice: Dice, _: Sequence[str]) -> list[_Raw]:
    return [_toleration(dice) for _ in range(dice.number(1, 3))]


def _host_ports(dice: Dice, _: Sequence[str]) -> list[_Raw]:
    ports = [
        {
            "containerPort": number,
            "hostPort": number,
            "hostIP": dice.one(("", "0.0.0.0", "127.0.0.1", "10.0.0.1")),
            "protocol": dice.one(("TCP", "TCP", "UDP", "SCTP")),
        }
        for number in dice.some((80, 443, 8080), least=1)
    ]
    return [*ports, {"containerPort": 9000}]


def _pod_terms(dice: Dice, _: Sequence[str]) -> _Raw:
    terms: _Raw = {}
    is_required = dice.sometimes()
    if is_required:
        terms[REQUIRED] = [_pod_term(dice) for _ in range(dice.number(1, 2))]
    if not is_required or dice.sometimes():
        terms[_PREFERRED] = [
            {"weight": dice.one((1, 10, 100)), "podAffinityTerm": _pod_term(dice)}
            for _ in range(dice.number(1, 2))
        ]
    return terms


def _pod_term(dice: Dice) -> _Raw:
    team_a = {"matchLabels": {"team": "a"}}
    return _given(
        topologyKey=dice.one(TOPOLOGIES),
        labelSelector=None if dice.rarely() else _label_selector(dice),
        namespaces=dice.some(tuple(NAMESPACES), least=1) if dice.rarely() else None,
        namespaceSelector=dice.one(({}, team_a)) if dice.rarely() else None,
    )


def _label_selector(dice: Dice) -> _Raw:
    if dice.often():
        return {"matchLabels": dice.some_of(POD_LABELS)}
    return {"matchExpressions": [_expression(dice, POD_LABELS)]}


def _spread_constraint(dice: Dice, topology: str) -> _Raw:
    skew, policies = dice.one((1, 1, 2, 5)), ("Honor", "Ignore")
    action = dice.one(("DoNotSchedule", "ScheduleAnyway"))
    return _given(
        topologyKey=topology,
        maxSkew=skew,
        whenUnsatisfiable=action,
        labelSelector=_label_selector(dice),
        minDomains=dice.one((1, 2, 5)) if action == "DoNotSchedule" and dice.rarely() else None,
        nodeAffinityPolicy=dice.one(policies) if dice.rarely() else None,
        nodeTaintsPolicy=dice.one(policies) if dice.rarely() else None,
        matchLabelKeys=["rev"] if dice.rarely() else None,
    )


def _spread(dice: Dice, _: Sequence[str]) -> list[_Raw]:
    return [_spread_constraint(dice, key) for key in dice.some(TOPOLOGIES, least=1)[:2]]


def _init_containers(dice: Dice, _: Sequence[str]) -> list[_Raw]:
    return [
        random_container(dice, f"i{i}") | ({"restartPolicy": "Always"} if dice.sometimes() else {})
        for i in range(dice.number(1, 3))
    ]


def _owner(dice: Dice, _: Sequence[str]) -> list[_Raw]:
    kind = dice.one(("ReplicaSet", "StatefulSet"))
    owner = {"kind": kind, "name": OWNER, "uid": f"uid-{OWNER}", "controller": True}
    return [{"apiVersion": "apps/v1", **owner}]


_NODE_AFFINITY: Final = "spec.affinity.nodeAffinity"
FEATURES: Final[Sequence[tuple[str, Callable[[Dice, Sequence[str]], Any]]]] = (
    ("spec.nodeSelector", lambda dice, _: dice.some_of({**NODE_LABELS, ZONE: ZONES})),
    (f"{_NODE_AFFINITY}.{REQUIRED}", _required_nodes),
    (f"{_NODE_AFFINITY}.{_PREFERRED}", _preferred_nodes),
    (f"{_NODE_AFFINITY}.{REQUIRED}", _named_nodes),
    ("spec.tolerations", _tolerations),
    ("spec.tolerations", _tolerations),
    ("spec.containers.0.ports", _host_ports),
    ("spec.affinity.podAffinity", _pod_terms),
    ("spec.affinity.podAntiAffinity", _pod_terms),
    ("spec.topologySpreadConstraints", _spread),
    ("spec.initContainers", _init_containers),
    ("spec.overhead", lambda dice, _: random_requests(dice)),
    ("spec.resources", lambda dice, _: {"requests": random_requests(dice)}),
    (
        "spec.schedulingGates",
        lambda dice, _: [{"name": name} for name in dice.some(("wait", "quota"), least=1)],
    ),
    ("status.nominatedNodeName", lambda dice, names: dice.one((*names, "gone"))),
    ("spec.nodeName", lambda dice, names: dice.one((*names, "gone"))),
    ("metadata.ownerReferences", _owner),
    ("metadata.deletionTimestamp", lambda dice, _: dice.one(TIMES)),
    ("spec.preemptionPolicy", lambda dice, _: "Never"),
)
"""The path of each feature, and the function that makes its value."""


def _write(raw: Any, path: str, value: Any) -> None:
    """Set a value at a place such as "spec.containers.0.ports"."""
    *parts, last = path.split(".")
    for part in parts:
        raw = raw[int(part)] if part.isdigit() else raw.setdefault(part, {})
    raw[last] = value
