"""Selectors of all kinds: of pods, of namespaces and of nodes, and the terms that hold them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.scenarios.dice import Dice, Object

ZONE, REGION, HOST = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "kubernetes.io/hostname",
)
TOPOLOGY_KEYS = (ZONE, ZONE, ZONE, HOST, HOST, HOST, "rack", "rack", REGION, "absent-key")
POD_LABELS = {"app": ("web", "db", "cache"), "tier": ("fe", "be"), "ver": ("v1", "v2")}
NODE_LABELS = {
    "disk": ("ssd", "hdd", "nvme"),
    "tier": ("a", "b", "c"),
    "gpu": ("true", ""),
    "rank": ("0", "1", "5", "07", "20", "50", "100"),
    "gen": ("1", "2", "3", "7", "x", "-1", "10"),
    ZONE: ("z1", "z2", "z3"),
}
_WEIGHTS = (1, 2, 10, 50, 99, 100)


def pod_labels(dice: Dice) -> Object:
    return {key: dice.pick(values) for key, values in POD_LABELS.items() if dice.chance(0.85)}


def weight(dice: Dice) -> int:
    return dice.pick(_WEIGHTS) if dice.chance(0.85) else dice.between(1, 100)


def label_selector(dice: Dice, labels: Object) -> Object | None:
    """Of pods; often one that matches the labels given, sometimes one that matches all or none."""
    if dice.chance(0.03):
        return None
    if dice.chance(0.03):
        return {}
    if labels and dice.chance(0.45):
        key = dice.pick(sorted(labels))
        return {"matchLabels": {key: labels[key]}}
    if dice.chance(0.4):
        keys = dice.some(sorted(POD_LABELS), 1, 2)
        return {"matchLabels": {key: dice.pick(POD_LABELS[key]) for key in keys}}
    return {"matchExpressions": [_pod_expression(dice) for _ in range(dice.between(1, 2))]}


def _pod_expression(dice: Dice) -> Object:
    key = dice.pick((*POD_LABELS, "absent"))
    operator = dice.pick(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    expression: Object = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = dice.some(POD_LABELS.get(key, ("x", "y")), 1, 2)
    return expression


def merge_label_keys(selector: Object, keys: Sequence[str], labels: Object, operator: str) -> None:
    """As the API server stores `matchLabelKeys`: the pod's own values become expressions."""
    for key in keys:
        if key in labels:
            selector.setdefault("matchExpressions", []).append(
                {"key": key, "operator": operator, "values": [labels[key]]}
            )


def namespace_selector(dice: Dice) -> Object:
    if dice.chance(0.15):
        return {}
    if dice.chance(0.45):
        return {"matchLabels": {"team": dice.pick(("a", "b"))}}
    operator = dice.pick(("In", "NotIn", "Exists", "DoesNotExist"))
    expression: Object = {"key": dice.pick(("env", "team")), "operator": operator}
    if operator in ("In", "NotIn"):
        expression["values"] = ["prod"]
    return {"matchExpressions": [expression]}


def affinity_term(dice: Dice, labels: Object, namespaces: Sequence[str]) -> Object:
    """One term of pod affinity or anti-affinity; the labels are those of the pod that has it."""
    term: Object = {"topologyKey": dice.pick(TOPOLOGY_KEYS)}
    selector = label_selector(dice, labels)
    if selector is not None:
        term["labelSelector"] = selector
        if dice.chance(0.06):
            keys = dice.some(sorted(POD_LABELS), 1, 1)
            term["matchLabelKeys"] = keys
            merge_label_keys(selector, keys, labels, "In")
        elif dice.chance(0.06):
            keys = dice.some(sorted(POD_LABELS), 1, 1)
            term["mismatchLabelKeys"] = keys
            merge_label_keys(selector, keys, labels, "NotIn")
    if dice.chance(0.2):
        term["namespaces"] = dice.some((*namespaces, "no-such-namespace"), 1, 2)
    if dice.chance(0.15):
        term["namespaceSelector"] = namespace_selector(dice)
    return term


def pod_affinity(dice: Dice, labels: Object, namespaces: Sequence[str]) -> Object:
    """Some of the four kinds of terms."""
    affinity: Object = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms: Object = {}
        if dice.chance(0.3):
            terms["requiredDuringSchedulingIgnoredDuringExecution"] = [
                affinity_term(dice, labels, namespaces) for _ in range(dice.pick((1, 1, 1, 2)))
            ]
        if dice.chance(0.45):
            terms["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {
                    "weight": weight(dice),
                    "podAffinityTerm": affinity_term(dice, labels, namespaces),
                }
                for _ in range(dice.between(1, 3))
            ]
        if terms:
            affinity[kind] = terms
    return affinity


def spread_constraint(dice: Dice, labels: Object) -> Object:
    constraint: Object = {
        "maxSkew": dice.pick((1, 1, 1, 2, 3, 5)),
        "topologyKey": dice.pick(TOPOLOGY_KEYS),
        "whenUnsatisfiable": dice.pick(("DoNotSchedule", "ScheduleAnyway")),
    }
    selector = label_selector(dice, labels)
    if selector is not None:
        constraint["labelSelector"] = selector
        if dice.chance(0.15):
            keys = dice.some((*sorted(POD_LABELS), "nokey"), 1, 2)
            constraint["matchLabelKeys"] = keys
            merge_label_keys(selector, keys, labels, "In")
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and dice.chance(0.25):
        constraint["minDomains"] = dice.between(1, 5)
    if dice.chance(0.3):
        constraint["nodeAffinityPolicy"] = dice.pick(("Honor", "Ignore"))
    if dice.chance(0.4):
        constraint["nodeTaintsPolicy"] = dice.pick(("Honor", "Honor", "Ignore"))
    return constraint


def spread_constraints(dice: Dice, labels: Object, most: int = 3) -> list[Object]:
    """At most one for each key and action, as the API server wants it."""
    chosen: dict[tuple[str, str], Object] = {}
    for _ in range(dice.between(1, most)):
        constraint = spread_constraint(dice, labels)
        chosen[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
    return list(chosen.values())


def node_expression(dice: Dice, *, odd: bool) -> Object:
    """Of node labels; an odd one may have a value that cannot be parsed."""
    key = dice.pick((*NODE_LABELS, "absent"))
    numeric = key in ("rank", "gen", "absent")
    operators = ("In", "In", "In", "NotIn", "Exists", "DoesNotExist")
    operator = dice.pick((*operators, "Gt", "Lt") if numeric else operators)
    expression: Object = {"key": key, "operator": operator}
    values = NODE_LABELS.get(key, ("x", "1"))
    if operator in ("Gt", "Lt"):
        expression["values"] = [dice.pick(("0", "1", "5", "7", "20", "50"))]
    elif operator in ("In", "NotIn"):
        chosen = dice.some(values, 1, 3)
        expression["values"] = chosen if odd else [v for v in chosen if v != "-1"] or ["2"]
    return expression


def node_term(dice: Dice, nodes: Sequence[str], *, odd: bool, fields: float) -> Object:
    """A node selector term: expressions, or fields, or both, or (rarely) neither."""
    term: Object = {}
    if dice.chance(fields):
        term["matchFields"] = [
            {
                "key": "metadata.name",
                "operator": dice.pick(("In", "In", "In", "NotIn")),
                "values": [dice.pick((*nodes, "no-such-node"))],
            }
            for _ in range(dice.pick((1, 1, 1, 1, 2)))
        ]
    if "matchFields" not in term or dice.chance(0.4):
        term["matchExpressions"] = [
            node_expression(dice, odd=odd) for _ in range(dice.pick((1, 1, 2, 3)))
        ]
    return {} if dice.chance(0.02) else term


def node_affinity(dice: Dice, nodes: Sequence[str], *, odd: bool = False) -> Object:
    affinity: Object = {}
    # All terms by name restrict PreFilter; that should happen, but not drown the rest.
    fields = dice.pick((0.0, 0.2, 1.0))
    if dice.chance(0.7):
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": [
                node_term(dice, nodes, odd=odd, fields=fields)
                for _ in range(dice.pick((1, 1, 2, 3, 5)))
            ]
        }
    if dice.chance(0.7):
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {
                "weight": weight(dice),
                "preference": node_term(dice, nodes, odd=odd and dice.chance(0.2), fields=0.15),
            }
            for _ in range(dice.between(1, 4))
        ]
    return affinity
