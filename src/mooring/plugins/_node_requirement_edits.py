"""What NodeAffinity says of its refusals: the labels that do not match, and what would."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

import msgspec
import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.frozen import FrozenDict
from mooring.api.selectors import LabelRequirement, NodeMatcher, NodeTerm, Selector, compile_term
from mooring.cache.internals import label_tally
from mooring.framework.explaining import listed
from mooring.plugins._node_requirements import affinity_of, required_of

_NEAR: Final = 0.6  # how alike two values must be for one to be a slip of the other
_MOST_VALUES: Final = 4  # that are named


class UnmetTerm(msgspec.Struct, frozen=True):
    """The parts of one required term that a node does not match."""

    place: int  # among the terms
    requirements: tuple[LabelRequirement, ...]
    is_named: bool  # whether the name of the node is right

    @property
    def count(self) -> int:
        return len(self.requirements) + (not self.is_named)


# --- facts ----------------------------------------------------------------------------------------


def facts_of(pod: fw.Pod, nodes: fw.Nodes) -> Iterator[fw.Fact]:
    """One fact per label that is not as the pod requires it."""
    for requirement in Selector.from_map(pod.spec.node_selector).requirements:
        yield from _unmet_facts(f"nodeSelector {requirement}", requirement, nodes)
    terms = _terms(pod)
    for place, term in enumerate(terms):
        label = "node affinity" if len(terms) == 1 else f"node affinity, term {place + 1},"
        for requirement in term.requirements:
            yield from _unmet_facts(f"{label} {requirement}", requirement, nodes)
        for name in term.names_in:
            others = [one for one in nodes.names if one != name]
            if others:
                yield fw.Fact(text=f"{label} names node {name}", nodes=len(others), node=others[0])
        if term.is_empty:
            yield fw.Fact(text=f"{label} is empty, which matches no node")


def enforced_facts(matcher: NodeMatcher, nodes: fw.Nodes) -> Iterator[fw.Fact]:
    """What the configuration requires besides."""
    for term in matcher.terms:
        unmet = sum((~nodes.meeting(one) for one in term.requirements), np.zeros(len(nodes)))
        nearest = nodes[int(unmet.argmin())].name
        for requirement in term.requirements:
            for fact in _unmet_facts(f"addedAffinity {requirement}", requirement, nodes):
                yield structs.replace(fact, node=nearest)


def _unmet_facts(text: str, requirement: LabelRequirement, nodes: fw.Nodes) -> Iterator[fw.Fact]:
    unmet = np.flatnonzero(~nodes.meeting(requirement))
    if not len(unmet):
        return
    values = nodes.label_values(requirement.key)
    codes = nodes.label_codes(requirement.key)[unmet]
    found = [values[code] for code in np.unique(codes).tolist()]
    present = sorted(value for value in found if value is not None)
    if not present:
        has = f"none of these has the label {requirement.key}"
    elif requirement.operator == "DoesNotExist":
        has = "these have it"
    else:
        has = f"these have {listed(present, _MOST_VALUES)}"
    yield fw.Fact(text=f"{text}: {has}", nodes=len(unmet), node=nodes[int(unmet[0])].name)


# --- edits ----------------------------------------------------------------------------------------


def edits_for(pod: fw.Pod, node: fw.Node, everywhere: fw.Nodes) -> Iterator[fw.Edit]:
    """Correct or drop what does not match, or label the node."""
    labels: dict[str, str | None] = {}
    wanted = [
        requirement
        for requirement in Selector.from_map(pod.spec.node_selector).requirements
        if not requirement.matches(node.labels)
    ]
    for requirement in wanted:
        labels |= _satisfying(requirement)
    terms = _terms(pod)
    unmet = _least_unmet(terms, node) if terms else None
    if wanted:
        yield from _selector_edits(wanted[0], node, everywhere)
    elif unmet is not None and unmet.count:
        yield from _term_edits(pod, unmet, everywhere)
    if unmet is not None:
        for requirement in unmet.requirements:
            labels |= _satisfying(requirement)
    if labels and (unmet is None or unmet.is_named):
        yield label_node(node.name, labels)


def enforced_edits(
    matcher: NodeMatcher, required: core.NodeSelector, node: fw.Node
) -> Iterator[tuple[str, core.NodeSelector | None]]:
    """What the configuration could require instead, with the text of that edit; None: nothing."""
    unmet = _least_unmet(matcher.terms, node)
    if unmet is None:
        return
    if unmet.requirements and unmet.is_named:
        kept = _without(required, unmet)
        texts = listed(map(str, unmet.requirements))
        if kept is not None:
            yield f"drop {texts} from addedAffinity", kept
    yield "drop the required part of addedAffinity", None


def enforced_labels(matcher: NodeMatcher, node: fw.Node) -> Iterator[fw.Edit]:
    """The node with the labels that the configuration requires."""
    unmet = _least_unmet(matcher.terms, node)
    if unmet is not None and unmet.requirements and unmet.is_named:
        labels: dict[str, str | None] = {}
        for requirement in unmet.requirements:
            labels |= _satisfying(requirement)
        yield label_node(node.name, labels)


def _without(required: core.NodeSelector, unmet: UnmetTerm) -> core.NodeSelector | None:
    """Without the unmet expressions of a term; None if that leaves nothing of the term."""
    terms = list(required.node_selector_terms)
    term = terms[unmet.place]
    kept = tuple(
        test
        for test in term.match_expressions
        if not set(_parsed(test)).intersection(unmet.requirements)
    )
    if not kept and not term.match_fields:
        return None
    terms[unmet.place] = structs.replace(term, match_expressions=kept)
    return structs.replace(required, node_selector_terms=tuple(terms))


def _parsed(test: core.NodeSelectorRequirement) -> tuple[LabelRequirement, ...]:
    return compile_term(core.NodeSelectorTerm(match_expressions=(test,)), "").requirements


def drop_affinity(text: str = "drop its required node affinity") -> fw.Edit:
    """The pod without required node affinity."""
    return fw.Edit.of_pod(text, _without_required, family="node affinity", cost=2)


def label_node(name: str, labels: Mapping[str, str | None]) -> fw.Edit:
    """As `kubectl label node`; None takes a label away."""

    def to(node: core.Node) -> core.Node:
        known = {**node.metadata.labels, **labels}
        kept = FrozenDict({key: value for key, value in known.items() if value is not None})
        return structs.replace(node, metadata=structs.replace(node.metadata, labels=kept))

    texts = [f"{key}={value}" if value is not None else f"{key}-" for key, value in labels.items()]
    text = ", ".join(texts)
    return fw.Edit.of_node(f"label {name} {text}", name, to, family=f"label {text}")


def _selector_edits(
    requirement: LabelRequirement, node: fw.Node, everywhere: fw.Nodes
) -> Iterator[fw.Edit]:
    key, (value,) = requirement.key, requirement.values
    family = f"nodeSelector {key}"
    near = nearest(value, _values_in_use(everywhere, key))
    if near is not None:
        text = f"change nodeSelector {key} from {value} to {near}"
        yield fw.Edit.of_pod(text, _selecting({key: near}), family=family)
    other_key = nearest(key, [one for one, held in node.labels.items() if held == value])
    if other_key is not None:
        text = f"change nodeSelector {key}={value} to {other_key}={value}"
        yield fw.Edit.of_pod(text, _selecting({key: None, other_key: value}), family=family)
    text = f"drop nodeSelector {key}={value}"
    yield fw.Edit.of_pod(text, _selecting({key: None}), family=family, cost=2)


def _selecting(changes: Mapping[str, str | None]) -> Callable[[core.Pod], core.Pod]:
    def to(pod: core.Pod) -> core.Pod:
        known = {**pod.spec.node_selector, **changes}
        kept = FrozenDict({key: value for key, value in known.items() if value is not None})
        return structs.replace(pod, spec=structs.replace(pod.spec, node_selector=kept))

    return to


def _term_edits(pod: fw.Pod, unmet: UnmetTerm, everywhere: fw.Nodes) -> Iterator[fw.Edit]:
    if not unmet.requirements:  # an empty or invalid term, or the name of another node
        yield drop_affinity()
        return
    raw = _raw_terms(pod.api)[unmet.place]
    first = unmet.requirements[0]
    for test in raw.match_expressions:
        if first not in _parsed(test):
            continue
        family = f"expression {first}"
        for value in test.values if test.operator == "In" else ():
            near = nearest(value, _values_in_use(everywhere, test.key))
            if near is not None and near not in test.values:
                values = tuple(near if one == value else one for one in test.values)
                better = structs.replace(test, values=values)
                text = f"change {value} to {near} in its node affinity {first}"
                to = _with_expression(unmet.place, test, better)
                yield fw.Edit.of_pod(text, to, family=family)
        to = _with_expression(unmet.place, test, None)
        text = f"drop {first} from its node affinity"
        yield fw.Edit.of_pod(text, to, family=family, cost=2)
        return


def _with_expression(
    place: int, test: core.NodeSelectorRequirement, other: core.NodeSelectorRequirement | None
) -> Callable[[core.Pod], core.Pod]:
    """The pod with one expression of a term replaced; a term must not become empty."""

    def to(pod: core.Pod) -> core.Pod:
        terms = list(_raw_terms(pod))
        term = terms[place]
        tests = [other if one == test else one for one in term.match_expressions]
        kept = tuple(one for one in tests if one is not None)
        if not kept and not term.match_fields:
            return _without_required(pod)
        terms[place] = structs.replace(term, match_expressions=kept)
        return _with_terms(pod, tuple(terms))

    return to


def _without_required(pod: core.Pod) -> core.Pod:
    return _with_terms(pod, None)


def _with_terms(pod: core.Pod, terms: tuple[core.NodeSelectorTerm, ...] | None) -> core.Pod:
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return pod
    required = None if terms is None else core.NodeSelector(node_selector_terms=terms)
    of_nodes = structs.replace(
        affinity.node_affinity, required_during_scheduling_ignored_during_execution=required
    )
    spec = structs.replace(pod.spec, affinity=structs.replace(affinity, node_affinity=of_nodes))
    return structs.replace(pod, spec=spec)


# --- inside ---------------------------------------------------------------------------------------


def _raw_terms(pod: core.Pod) -> tuple[core.NodeSelectorTerm, ...]:
    affinity = pod.spec.affinity
    required = required_of(affinity.node_affinity) if affinity is not None else None
    return () if required is None else required.node_selector_terms


def _terms(pod: fw.Pod) -> list[NodeTerm]:
    required = required_of(affinity_of(pod))
    if required is None:
        return []
    terms = required.node_selector_terms
    return [compile_term(term, f"[{place}]") for place, term in enumerate(terms)] or [NodeTerm()]


def _least_unmet(terms: Sequence[NodeTerm], node: fw.Node) -> UnmetTerm | None:
    found = [
        UnmetTerm(
            place,
            tuple(one for one in term.requirements if not one.matches(node.labels)),
            term.matches_name(node.name) and not term.is_empty and not term.errors,
        )
        for place, term in enumerate(terms)
    ]
    return min(found, key=lambda unmet: (not unmet.is_named, unmet.count), default=None)


def _values_in_use(nodes: fw.Nodes, key: str) -> list[str]:
    tally = label_tally(nodes, key).tolist()
    values = zip(nodes.label_values(key), tally, strict=False)
    used = [(count, value) for value, count in values if count and value is not None]
    return [value for _, value in sorted(used, key=lambda pair: (-pair[0], pair[1]))]


def nearest(text: str, known: Sequence[str]) -> str | None:
    """The text that this one may be a slip of; of equally near ones that with the same start."""

    def likeness(other: str) -> tuple[float, bool]:
        matcher = SequenceMatcher(None, text.lower(), other.lower())
        return matcher.ratio(), other[:1] == text[:1]

    others = [other for other in known if other and other != text]
    best = max(others, key=likeness, default=None)
    return best if best is not None and likeness(best)[0] >= _NEAR else None


def _satisfying(requirement: LabelRequirement) -> dict[str, str | None]:
    """Labels with which a node would match."""
    match requirement.operator:
        case "In":
            return {requirement.key: min(requirement.values)}
        case "Exists":
            return {requirement.key: "true"}
        case "Gt":
            return {requirement.key: str(requirement.bound + 1)}
        case "Lt":
            return {requirement.key: str(requirement.bound - 1)}
    return {requirement.key: None}
