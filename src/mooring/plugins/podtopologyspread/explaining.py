"""What PodTopologySpread says of its refusals: pods per domain, and what would even them out."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.wellknown import HOSTNAME
from mooring.cache.internals import rows_labelled
from mooring.framework.explaining import MOST_ENDING, listed
from mooring.plugins._node_requirement_edits import label_node
from mooring.plugins.podtopologyspread.args import DO_NOT_SCHEDULE, SCHEDULE_ANYWAY
from mooring.plugins.podtopologyspread.counts import ConstraintDomains, HardSpread

_MOST_DOMAINS: Final = 8  # whose counts are told
_MOST_PODS: Final = 200  # among which those that would have to end are looked for


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
    pod: fw.Pod, hard: HardSpread, node: fw.Node, everywhere: fw.Nodes
) -> Iterator[fw.Edit]:
    """For the first constraint that refuses the node."""
    for place, domains in enumerate(hard.domains):
        key = domains.constraint.topology_key
        code = node.label_code(key)
        if code == 0:
            yield from _relaxed(pod, place, domains)
            yield label_node(node.name, {key: _a_domain(node, domains, everywhere)})
            return
        beyond = int(domains.counts[code]) - domains.room
        if beyond > 0:
            yield from _evened(pod, place, domains, int(domains.counts[code]))
            yield from _relaxed(pod, place, domains)
            yield from _ended(domains, code, beyond, everywhere)
            return


def _evened(pod: fw.Pod, place: int, domains: ConstraintDomains, count: int) -> Iterator[fw.Edit]:
    constraint, known = domains.constraint, len(domains.scope.domain_codes)
    if not pod.spec.topology_spread_constraints:
        return  # those of the configuration
    family = f"spread {place}"
    if known < constraint.min_domains:
        text = f"lower minDomains of {constraint.topology_key} to {max(known, 1)}"
        to = _with_constraint(place, min_domains=max(known, 1))
        yield fw.Edit.of_pod(text, to, family=family)
    skew = count + domains.scope.self_match - domains.minimum
    text = f"raise maxSkew of {constraint.topology_key} to {skew}"
    to = _with_constraint(place, max_skew=skew)
    yield fw.Edit.of_pod(text, to, family=family, amount=float(skew))


def _relaxed(pod: fw.Pod, place: int, domains: ConstraintDomains) -> Iterator[fw.Edit]:
    if pod.spec.topology_spread_constraints:
        text = f"prefer the spread by {domains.constraint.topology_key}, not require it"
        to = _with_constraint(place, when_unsatisfiable=SCHEDULE_ANYWAY, min_domains=None)
        yield fw.Edit.of_pod(text, to, family=f"spread {place}", cost=2)


def _with_constraint(place: int, **fields: Any) -> Callable[[core.Pod], core.Pod]:
    """The pod with other fields in one of its hard constraints."""

    def to(pod: core.Pod) -> core.Pod:
        every = list(pod.spec.topology_spread_constraints)
        hard = [i for i, raw in enumerate(every) if raw.when_unsatisfiable == DO_NOT_SCHEDULE]
        if place < len(hard):
            every[hard[place]] = structs.replace(every[hard[place]], **fields)
        spec = structs.replace(pod.spec, topology_spread_constraints=tuple(every))
        return structs.replace(pod, spec=spec)

    return to


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
