"""What PodTopologySpread says of its refusals: pods per domain, and what would even them out."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.wellknown import HOSTNAME
from mooring.cache.internals import rows_labelled
from mooring.framework.explaining import MOST_ENDING, listed
from mooring.plugins._node_requirement_edits import label_node
from mooring.plugins.podtopologyspread.args import (
    DO_NOT_SCHEDULE,
    SCHEDULE_ANYWAY,
    PodTopologySpreadArgs,
)
from mooring.plugins.podtopologyspread.counts import ConstraintDomains, HardSpread

_MOST_DOMAINS: Final = 8  # whose counts are told
_MOST_PODS: Final = 200  # among which those that would have to end are looked for

C = TypeVar("C", bound=core.TopologySpreadConstraint)


def facts_of(hard: HardSpread, nodes: fw.Nodes) -> Iterator[fw.Fact]:
    """One fact per constraint that refuses some of these nodes."""
    for domains in hard.domains:
        key = domains.constraint.topology_key
        codes = nodes.label_codes(key)
        unlabelled = np.flatnonzero(codes == 0)
        if len(unlabelled):
            first = nodes[int(unlabelled[0])].name
            yield fw.Fact(text=f"no label {key}", nodes=len(unlabelled), node=first)
        too_many = np.flatnonzero((codes != 0) & domains.refused_domains()[codes])
        if not len(too_many):
            continue
        values = nodes.label_values(key)
        known = domains.scope.domain_codes
        counts = {values[code] or "": int(domains.counts[code]) for code in known if code}
        nearest = int(domains.counts[codes[too_many]].argmin())
        yield fw.Fact(
            text=_spread_text(domains, counts),
            nodes=len(too_many),
            node=nodes[int(too_many[nearest])].name,
            counts=dict(sorted(counts.items())[:_MOST_DOMAINS]),
        )


def _spread_text(domains: ConstraintDomains, counts: dict[str, int]) -> str:
    constraint = domains.constraint
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name}={count}" for name, count in ordered[:4])
    if len(counts) > 4:
        shown += f", … {len(counts)} in all"
    text = f"{constraint.topology_key}: {shown}; maxSkew {constraint.max_skew}"
    if len(domains.scope.domain_codes) < constraint.min_domains:
        text += f", fewer domains than minDomains {constraint.min_domains}"
    return text


def edits_for(
    pod: fw.Pod,
    hard: HardSpread,
    node: fw.Node,
    everywhere: fw.Nodes,
    args: PodTopologySpreadArgs,
) -> Iterator[fw.Edit]:
    """For the first constraint that refuses the node: one of the pod, or of the configuration."""
    for place, domains in enumerate(hard.domains):
        key = domains.constraint.topology_key
        code = node.label_code(key)
        if code == 0:
            yield from _relaxed(pod, place, domains, args)
            yield label_node(node.name, {key: _a_domain(node, domains, everywhere)})
            return
        beyond = int(domains.counts[code]) - domains.room
        if beyond > 0:
            yield from _evened(pod, place, domains, int(domains.counts[code]), args)
            yield from _relaxed(pod, place, domains, args)
            yield from _ended(domains, code, beyond, everywhere)
            return


def _evened(
    pod: fw.Pod,
    place: int,
    domains: ConstraintDomains,
    count: int,
    args: PodTopologySpreadArgs,
) -> Iterator[fw.Edit]:
    constraint, known = domains.constraint, len(domains.scope.domain_codes)
    if known < constraint.min_domains:
        text = f"lower minDomains of {constraint.topology_key} to {max(known, 1)}"
        yield from _changed(pod, place, args, text, {"min_domains": max(known, 1)})
    skew = count + domains.scope.self_match - domains.minimum
    text = f"raise maxSkew of {constraint.topology_key} to {skew}"
    yield from _changed(pod, place, args, text, {"max_skew": skew}, amount=float(skew))


def _relaxed(
    pod: fw.Pod, place: int, domains: ConstraintDomains, args: PodTopologySpreadArgs
) -> Iterator[fw.Edit]:
    text = f"prefer the spread by {domains.constraint.topology_key}, not require it"
    fields = {"when_unsatisfiable": SCHEDULE_ANYWAY, "min_domains": None}
    yield from _changed(pod, place, args, text, fields, cost=2)


def _changed(
    pod: fw.Pod,
    place: int,
    args: PodTopologySpreadArgs,
    text: str,
    fields: dict[str, Any],
    *,
    amount: float = 0.0,
    cost: int = 0,
) -> Iterator[fw.Edit]:
    """Other fields in a hard constraint of the pod, or in a default one of the configuration."""
    family = f"spread {place}"
    own = pod.spec.topology_spread_constraints
    if own:
        to = _with_constraint(place, **fields)
        yield fw.Edit.of_pod(text, to, family=family, amount=amount, cost=cost)
        return
    changed = _with_fields(args.default_constraints, place, fields)
    pairs = {(one.topology_key, one.when_unsatisfiable) for one in changed}
    if len(pairs) == len(changed):  # a key may be preferred once
        others = structs.replace(args, default_constraints=changed)
        yield fw.Edit.of_args(
            f"{text}, in defaultConstraints",
            "PodTopologySpread",
            others,
            family=family,
            amount=amount,
            cost=cost,
        )


def _with_constraint(place: int, **fields: Any) -> Callable[[core.Pod], core.Pod]:
    """The pod with other fields in one of its hard constraints."""

    def to(pod: core.Pod) -> core.Pod:
        every = _with_fields(pod.spec.topology_spread_constraints, place, fields)
        spec = structs.replace(pod.spec, topology_spread_constraints=every)
        return structs.replace(pod, spec=spec)

    return to


def _with_fields(constraints: Sequence[C], place: int, fields: dict[str, Any]) -> tuple[C, ...]:
    every = list(constraints)
    hard = [i for i, raw in enumerate(every) if raw.when_unsatisfiable == DO_NOT_SCHEDULE]
    if place < len(hard):
        every[hard[place]] = structs.replace(every[hard[place]], **fields)
    return tuple(every)


def _ended(
    domains: ConstraintDomains, code: int, beyond: int, everywhere: fw.Nodes
) -> Iterator[fw.Edit]:
    """So many pods fewer in the domain."""
    key, matches = domains.constraint.topology_key, domains.scope.pods
    per_node = everywhere.count_pods(matches, matches, matches.selector)
    pods: list[fw.Pod] = []
    if beyond > MOST_ENDING:
        return
    for row in rows_labelled(everywhere, key, code).tolist():
        if per_node[row]:
            pods += filter(matches, everywhere[row].pods)
        if len(pods) > _MOST_PODS:
            break
    pods.sort(key=lambda other: (other.priority, other.key))
    if len(pods) >= beyond:
        leaving = pods[:beyond]
        where = everywhere.label_values(key)[code]
        names = listed(other.key for other in leaving)
        ends = "ends" if beyond == 1 else "end"
        text = f"{names} {ends}: fewer such pods in {key}={where}"
        yield fw.Edit.end_pods(text, leaving, family="spread")


def _a_domain(node: fw.Node, domains: ConstraintDomains, nodes: fw.Nodes) -> str:
    """The domain with the fewest pods; a host is its own."""
    key = domains.constraint.topology_key
    values = nodes.label_values(key)
    codes = [code for code in domains.scope.domain_codes.tolist() if code and values[code]]
    if key == HOSTNAME or not codes:
        return node.name
    fewest = min(codes, key=lambda code: int(domains.counts[code]))
    return values[fewest] or node.name
