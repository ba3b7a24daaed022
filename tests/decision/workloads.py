"""Pods by the dozen, as the controllers of a cluster create them.

All pods of a workload are alike but for their names, and for the index labels that Indexed Jobs
and StatefulSets add. The vocabulary is small, so that the rules of one workload concern others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

from mooring.api import codec, core
from mooring.testing._random_pods import NAMESPACES, TAINT_KEYS, Dice, random_pod
from mooring.testing.builders import HOSTNAME, ZONE

Raw = dict[str, Any]
Kind = Callable[[Dice, Raw, Sequence[str]], None]
"""Writes a rule into a plain template; the last argument is the names of the nodes."""

RACK: Final = "rack"
JOB_INDEX: Final = "batch.kubernetes.io/job-completion-index"
SET_INDEX: Final = "apps.kubernetes.io/pod-index"
SET_NAME: Final = "statefulset.kubernetes.io/pod-name"
INDEXES: Final = 12
SETS: Final = ("alpha", "beta")
CLAIMS: Final = ("data-0", "data-1", "data-2")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class Workload:
    """Makes pods of one template."""

    def __init__(self, name: str, template: Raw) -> None:
        self.name = name
        self._template = template
        self._made = 0

    def twin(self, dice: Dice, name: str) -> Workload:
        """Another workload whose pods differ in one part only, which may matter or not."""
        template = copy.deepcopy(self._template)
        often = (_other_namespace, _other_owner) * 2
        change = dice.one((*often, _other_label, _other_annotation))
        change(dice, template["metadata"])
        return Workload(name, template)

    def pods(self, count: int) -> list[core.Pod]:
        return [self._next() for _ in range(count)]

    def _next(self) -> core.Pod:
        name = f"{self.name}-{self._made}"
        meta: Raw = {**self._template["metadata"], "name": name, "uid": f"uid-{name}"}
        meta["labels"] = {**meta.get("labels", {})}
        index = self._made % INDEXES
        if JOB_INDEX in meta["labels"]:
            meta["labels"][JOB_INDEX] = str(index)
        if SET_INDEX in meta["labels"]:
            meta["labels"] |= {SET_INDEX: str(index), SET_NAME: f"{self.name}-{index}"}
        self._made += 1
        status = {"phase": "Pending", **self._template.get("status", {})}
        return codec.convert({**self._template, "metadata": meta, "status": status}, core.Pod)


def _other_namespace(dice: Dice, meta: Raw) -> None:
    meta["namespace"] = dice.one([name for name in NAMESPACES if name != meta["namespace"]])


def _other_owner(dice: Dice, meta: Raw) -> None:
    if meta.pop("ownerReferences", None) is None:
        meta["ownerReferences"] = [_owner("ReplicaSet", dice.one(SETS))]


def _other_label(dice: Dice, meta: Raw) -> None:
    meta["labels"] = {**meta.get("labels", {}), "tier": dice.one(("front", "back", "middle"))}


def _other_annotation(_: Dice, meta: Raw) -> None:
    meta["annotations"] = {**meta.get("annotations", {}), "note": "other"}


def workload(dice: Dice, name: str, kind: Kind, node_names: Sequence[str]) -> Workload:
    """A workload of some kind, with a few common fields at random."""
    template = plain(dice)
    kind(dice, template, node_names)
    if dice.rarely():
        tolerated = {"key": dice.one(TAINT_KEYS), "operator": "Exists"}
        template["spec"]["tolerations"] = [tolerated]
    if dice.rarely():
        template["spec"]["priority"] = dice.one((-5, 10, 100))
    return Workload(name, template)


def plain(dice: Dice) -> Raw:
    requests = {"cpu": dice.one(("300m", "700m", "1500m", "2")), "memory": dice.one(("1Gi", "2Gi"))}
    labels = {"app": dice.one(("web", "db")), **dice.some_of({"tier": ("front", "back")})}
    return {
        "metadata": {"namespace": dice.one(("default", "default", "team-a")), "labels": labels},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": dice.one(("app:latest", "web:v1", "model:v2")),
                    "resources": {"requests": requests if not dice.rarely() else {}},
                }
            ]
        },
    }


# --- kinds ----------------------------------------------------------------------------------------


def soft_spread(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    keys = dice.one(((ZONE,), (HOSTNAME,), (ZONE, HOSTNAME), ("disk",)))
    constraints = [constraint(dice, key, "ScheduleAnyway", raw) for key in keys]
    raw["spec"]["topologySpreadConstraints"] = constraints


def hard_spread(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    hard = constraint(dice, dice.one((ZONE, ZONE, HOSTNAME, "disk")), "DoNotSchedule", raw)
    if dice.rarely():
        hard["minDomains"] = dice.one((2, 5))
    constraints = [hard]
    if dice.sometimes():
        constraints.append(constraint(dice, HOSTNAME, "ScheduleAnyway", raw))
    raw["spec"]["topologySpreadConstraints"] = constraints


def constraint(dice: Dice, key: str, action: str, raw: Raw) -> Raw:
    return {
        "topologyKey": key,
        "maxSkew": dice.one((1, 1, 3)),
        "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": {"app": raw["metadata"]["labels"]["app"]}},
        **({"nodeTaintsPolicy": "Honor"} if dice.rarely() else {}),
        **({"nodeAffinityPolicy": "Ignore"} if dice.rarely() else {}),
        **({"matchLabelKeys": ["tier"]} if dice.rarely() else {}),
    }


def apart(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    """Keeps away from pods of its own kind."""
    own = raw["metadata"]["labels"]["app"]
    _rule(dice, raw, "podAntiAffinity", own, dice.one((HOSTNAME, ZONE, RACK)))


def hosts_of_their_own(_: Dice, raw: Raw, __: Sequence[str]) -> None:
    """One pod per host, and then no more: as databases are run."""
    rule = _term(HOSTNAME, {"matchLabels": {"app": raw["metadata"]["labels"]["app"]}})
    raw["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [rule]}}


def wishes(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    """Prefers zones or racks with some pods, or without."""
    app = dice.one(("web", "db"))
    key = dice.one((ZONE, RACK, RACK))
    term = _term(key, {"matchLabels": {"app": app}})
    term["namespaceSelector"] = dice.one(({}, {"matchLabels": {"team": "a"}}))
    rules = {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}
    raw["spec"]["affinity"] = {dice.one(("podAffinity", "podAntiAffinity")): rules}


def near(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    """Seeks pods of one of the kinds."""
    _rule(dice, raw, "podAffinity", dice.one(("web", "db")), dice.one((HOSTNAME, ZONE, ZONE)))


def _rule(dice: Dice, raw: Raw, kind: str, app: str, key: str) -> None:
    term = _term(key, {"matchLabels": {"app": app}})
    if dice.sometimes():
        team = {"matchLabels": {"team": "a"}}
        term["namespaceSelector"] = dice.one(({}, team, team))
    rules: Raw = {}
    if dice.sometimes():
        rules[REQUIRED] = [term]
    else:
        rules[PREFERRED] = [{"weight": dice.one((1, 50, 100)), "podAffinityTerm": term}]
    raw["spec"]["affinity"] = {kind: rules}


def _term(key: str, selector: Raw) -> Raw:
    return {"topologyKey": key, "labelSelector": selector}


def host_port(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    number = dice.one((80, 8080))
    raw["spec"]["containers"][0]["ports"] = [{"containerPort": number, "hostPort": number}]


def node_selector(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    raw["spec"]["nodeSelector"] = dice.one(({"disk": "ssd"}, {ZONE: "b"}, {"pool": "x"}))


def node_preference(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    raw["spec"]["affinity"] = {
        "nodeAffinity": {
            PREFERRED: [
                {
                    "weight": dice.one((10, 50)),
                    "preference": {
                        "matchExpressions": [{"key": key, "operator": "In", "values": [value]}]
                    },
                }
                for key, value in (("disk", "ssd"), (ZONE, "b"))
            ]
        }
    }


def one_node_only(dice: Dice, raw: Raw, node_names: Sequence[str]) -> None:
    """As DaemonSets write it: PreFilter excludes all nodes but one or two."""
    fields = [
        {"key": "metadata.name", "operator": "In", "values": [dice.one(node_names)]}
        for _ in range(dice.number(1, 2))
    ]
    terms = [{"matchFields": [field]} for field in fields]
    raw["spec"]["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def indexed_job(_: Dice, raw: Raw, __: Sequence[str]) -> None:
    raw["metadata"]["labels"] |= {JOB_INDEX: "", "batch.kubernetes.io/job-name": "crunch"}


def stateful_set(dice: Dice, raw: Raw, node_names: Sequence[str]) -> None:
    name = dice.one(SETS)
    raw["metadata"]["labels"] |= {SET_INDEX: "", "set": name}
    raw["metadata"]["ownerReferences"] = [_owner("StatefulSet", name)]
    if dice.sometimes():
        dice.one((hosts_of_their_own, hard_spread, soft_spread))(dice, raw, node_names)


def replica_set(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    """Its pods are spread by default, for as long as the ReplicaSet or a Service selects them."""
    raw["metadata"]["labels"]["pod-template-hash"] = dice.one(("5d4f", "77c9"))
    raw["metadata"]["ownerReferences"] = [_owner("ReplicaSet", dice.one(SETS))]


def _owner(kind: str, name: str) -> Raw:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}"}
    return {**reference, "controller": True}


def with_claim(dice: Dice, raw: Raw, _: Sequence[str]) -> None:
    source = {"persistentVolumeClaim": {"claimName": dice.one(CLAIMS)}}
    raw["metadata"]["namespace"] = "default"
    raw["spec"]["volumes"] = [{"name": "data", **source}]


def anything(dice: Dice, raw: Raw, node_names: Sequence[str]) -> None:
    """Up to three peculiarities of any kind, which may contradict each other."""
    raw |= random_pod(dice, "", node_names, features=dice.number(1, 3), is_huge=False)
    for field in ("schedulingGates", "nodeName"):
        raw["spec"].pop(field, None)
    raw["metadata"].pop("deletionTimestamp", None)


def nothing_special(_: Dice, __: Raw, ___: Sequence[str]) -> None:
    pass


KINDS: Final[Sequence[Kind]] = (
    nothing_special,
    soft_spread,
    hard_spread,
    apart,
    hosts_of_their_own,
    near,
    host_port,
    node_selector,
    node_preference,
    one_node_only,
    indexed_job,
    stateful_set,
    replica_set,
    with_claim,
    *[anything] * 5,
)
IN_EVERY_LIFE: Final[Sequence[Kind]] = (
    wishes,
    hard_spread,
    replica_set,
    indexed_job,
    node_preference,
)


def important(dice: Dice, name: str, node_names: Sequence[str]) -> Workload:
    """Large pods that preempt others where there is no room, often on a few nodes only."""
    raw = plain(dice)
    raw["spec"]["priority"] = dice.one((1_000, 2_000))
    raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": dice.one(("3", "3500m"))}}
    kinds = (one_node_only, one_node_only, node_selector, hard_spread, apart, host_port)
    dice.one(kinds)(dice, raw, node_names)
    return Workload(name, raw)


def about_indexes(dice: Dice, name: str) -> Workload:
    """Pods with a rule about an index label, which no selector may have named before."""
    raw = plain(dice)
    key = dice.one((JOB_INDEX, SET_INDEX))
    values = [str(index) for index in dice.rng.sample(range(INDEXES), 4)]
    selector = {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
    term = _term(dice.one((HOSTNAME, ZONE)), selector)
    term["namespaceSelector"] = {}
    wished = {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}
    rules = dice.one(
        (
            {"podAntiAffinity": {REQUIRED: [term]}},
            {"podAntiAffinity": wished},
            {"podAffinity": wished},
        )
    )
    raw["spec"]["affinity"] = rules
    raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    return Workload(name, raw)
