"""Nodes with the same refusals, put together: few groups instead of thousands of nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np

from mooring.api.requests import PODS, quantity_of
from mooring.cache.hypothetical import NodesWithMorePods, NodesWithoutPods
from mooring.cache.internals import listing_of
from mooring.decision.evaluation import Evaluation
from mooring.decision.whatif import WhatIfs
from mooring.framework import Code, CycleState, IntArray, Nodes, Pod, Status, Verdicts
from mooring.framework.explaining import Fact, WaitsFor, listed
from mooring.framework.plugin import Base
from mooring.lens.explanation import NodeGroup, PluginRefusal
from mooring.observe.texts import named

log = logging.getLogger(__name__)

_EXAMPLES: Final = 3
_MOST_WITH_FACTS: Final = 50  # groups; a plugin may have a reason of its own for every node
_RECODE: Final = 2**40
_ORDER: Final[tuple[WaitsFor, ...]] = ("room", "others", "nothing")
_BY_CODE: Final[dict[Code, WaitsFor]] = {Code.UNSCHEDULABLE: "room", Code.PENDING: "others"}

T = TypeVar("T")
Key = tuple[str, tuple[str, ...]]
"""A plugin and its reasons."""


class RefusalColumn(NamedTuple):
    """One plugin's answers: a number per node, 0 if it does not refuse, and what they mean."""

    numbers: IntArray
    refusals: list[Status]  # by number, from 1
    reasons: IntArray  # by number: equal for equal reasons, whatever the code
    beside_nominated: bool = False

    @classmethod
    def of(cls, verdicts: Verdicts, *, beside_nominated: bool = False) -> RefusalColumn:
        numbers = verdicts.index
        if numbers is None:
            numbers = np.zeros(len(verdicts), dtype=np.int64)
        known: dict[Key, int] = {}
        numbered = [
            known.setdefault((status.plugin, status.reasons), len(known) + 1)
            for status in verdicts.statuses
        ]
        return cls(numbers, verdicts.statuses, np.array([0, *numbered]), beside_nominated)

    def at(self, row: int) -> Status | None:
        number = int(self.numbers[row])
        return self.refusals[number - 1] if number else None


class Grouping:
    """All refusals of an evaluation, node by node and by group."""

    def __init__(
        self, evaluation: Evaluation, what_if: WhatIfs, plugins: Mapping[str, Base]
    ) -> None:
        self._evaluation = evaluation
        self._what_if = what_if
        self._plugins = plugins
        self.nodes: Nodes = evaluation.nodes
        self.problems: list[str] = []  # of plugins that could not say more
        self.members: list[IntArray] = []  # the rows of each group, in listing order
        self._columns: list[RefusalColumn] = []
        beside = what_if.refused_for_nominated(evaluation.state, evaluation.pod, self.nodes)
        if beside is not None and not beside.passed.all():
            self._columns.append(RefusalColumn.of(beside, beside_nominated=True))
        outcome = evaluation.outcome
        if outcome.only is not None:
            outside = ~np.isin(np.array(self.nodes.names), list(outcome.only))
            status = outcome.elsewhere.by(" ".join(outcome.restricted_by))
            verdicts = Verdicts.passing(self.nodes).reject(outside, status)
            self._columns.append(RefusalColumn.of(verdicts))
        refusals = evaluation.refusals_by_plugin()
        self._columns += map(RefusalColumn.of, refusals.values())

    def refusals_at(self, row: int) -> list[Status]:
        """All refusals of one node, the first of them first."""
        return [status for column in self._columns if (status := column.at(row)) is not None]

    def told_at(self, row: int) -> tuple[PluginRefusal, ...]:
        """As `refusals_at`, with the facts about this node alone."""
        return self._told(row, np.array([row], dtype=np.int64), True)

    def groups(self) -> list[NodeGroup]:
        """The largest first."""
        if not len(self.nodes):
            return []
        order = listing_of(self.nodes)
        codes = np.zeros(len(self.nodes), dtype=np.int64)
        for column in self._columns:
            codes = codes * (len(column.refusals) + 1) + column.reasons[column.numbers]
            if int(codes.max(initial=0)) > _RECODE:
                codes = np.unique(codes, return_inverse=True)[1]
        listed_codes = codes[order]
        by_group = np.argsort(listed_codes, kind="stable")  # in each group, in listing order
        starts = np.flatnonzero(np.diff(listed_codes[by_group], prepend=-1))
        members = [order[some] for some in np.split(by_group, starts[1:])]
        members.sort(key=len, reverse=True)
        self.members = members
        return [self._group(rows, place < _MOST_WITH_FACTS) for place, rows in enumerate(members)]

    def _group(self, rows: IntArray, with_facts: bool) -> NodeGroup:
        names = self.nodes.names
        refusals = self._told(int(rows[0]), np.sort(rows), with_facts)
        return NodeGroup(
            nodes=len(rows),
            examples=tuple(names[row] for row in rows[:_EXAMPLES].tolist()),
            said=refusals[0] if refusals else None,
            also=refusals[1:],
            waits_for=self._waits_for(rows, refusals),
        )

    def _waits_for(self, rows: IntArray, refusals: Sequence[PluginRefusal]) -> WaitsFor | None:
        """What can open the first of these nodes: everything that refuses it has to give way."""
        if not refusals:
            return None
        worst = np.zeros(len(rows), dtype=np.int64)
        columns = [column for column in self._columns if column.numbers[rows[0]]]
        for column, refusal in zip(columns, refusals, strict=True):
            said = next((fact.waits_for for fact in refusal.facts if fact.waits_for), None)
            classes = [
                _ORDER.index(said or _BY_CODE.get(status.code, "nothing"))
                for status in column.refusals
            ]
            if column.beside_nominated:
                classes = [_ORDER.index("others")] * len(classes)
            worst = np.maximum(worst, np.array([0, *classes])[column.numbers[rows]])
        return _ORDER[int(worst.min())]

    def _told(self, row: int, rows: IntArray, with_facts: bool) -> tuple[PluginRefusal, ...]:
        told: list[PluginRefusal] = []
        here = self.nodes.take(rows)
        for column in self._columns:
            status = column.at(row)
            if status is None:
                continue
            beside: tuple[str, ...] = ()
            facts: Iterable[Fact] = ()
            if column.beside_nominated:
                others = self._what_if.nominated_on(self.nodes.names[row], self._evaluation.pod)
                beside = tuple(other.key for other in others)
                facts = self._facts_beside(row, others, status) if with_facts else ()
            elif with_facts:
                facts = self.facts_of(status, here, self._evaluation.state)
            told.append(refusal_of(status, facts, beside))
        return tuple(told)

    def _facts_beside(self, row: int, others: Sequence[Pod], status: Status) -> Iterable[Fact]:
        """As the plugin sees the node with the nominated pods on it."""
        found = beside_nominated(self._what_if, self._evaluation, row, others)
        for fact in self.facts_of(status, found.nodes, found.state):
            names = listed(other.key for other in others)
            claim = f"the claim of {names} on {self.nodes.names[row]}"
            if fact.resource and fact.resource != PODS:
                units = sum(other.requests(fact.resource) for other in others)
                size = quantity_of(fact.resource, units)
                text = f"{claim}, {size} {fact.resource}, leaves {fact.offers}; asks {fact.asks}"
            else:
                text = f"{claim}: {fact.text}"
            yield Fact(
                text=text,
                waits_for="others",
                resource=fact.resource,
                asks=fact.asks,
                missing=fact.missing,
                offers=fact.offers,
                pods=tuple(other.key for other in others),
                node=self.nodes.names[row],
            )

    def facts_of(self, status: Status, nodes: Nodes, state: CycleState) -> list[Fact]:
        """What the plugin behind a refusal knows; its reasons if it says no more."""
        plugin = self._plugins.get(status.plugin.partition(" ")[0])
        if plugin is None:
            return []
        pod = self._evaluation.pod
        return ask_more(
            self.problems, plugin, lambda: plugin.facts(state, pod, nodes, status), Fact
        )


class BesideNominated(NamedTuple):
    """One node as it would be with the pods that are nominated for it."""

    nodes: Nodes
    state: CycleState


def beside_nominated(
    what_if: WhatIfs, evaluation: Evaluation, row: int, others: Sequence[Pod]
) -> BesideNominated:
    nodes = evaluation.nodes
    as_it_is = NodesWithoutPods(nodes, np.array([row], dtype=np.int64), [()])
    state = evaluation.state.clone()
    node = nodes[row]
    for other in others:
        node = node.with_pod(other)
        what_if.add_pod(state, evaluation.pod, other, node)
    return BesideNominated(NodesWithMorePods(as_it_is, {0: list(others)}), state)


def ask_more(
    problems: list[str], plugin: Base, ask: Callable[[], Iterable[T]], kind: type[T]
) -> list[T]:
    """What a plugin says beyond its status; a failure to say it does not end an explanation."""
    try:
        found = list(ask())
    except Exception as error:
        log.debug("plugin could not explain itself", extra={"plugin": plugin.name}, exc_info=error)
        problems.append(f"{plugin.name} could not say more about its refusal: {named(error)}")
        return []
    wrong = next((one for one in found if not isinstance(one, kind)), None)
    if wrong is not None:
        problems.append(f"{plugin.name} said {wrong!r}, expected a {kind.__name__}")
        return []
    return found


def refusal_of(
    status: Status, facts: Iterable[Fact] = (), beside: tuple[str, ...] = ()
) -> PluginRefusal:
    return PluginRefusal(
        plugin=status.plugin,
        reasons=status.reasons,
        code=status.code.label,
        facts=tuple(facts),
        beside=beside,
    )
