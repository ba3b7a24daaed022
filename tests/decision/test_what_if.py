"""Nodes as they might be: asked about one by one or many at once, the filters say the same."""

from __future__ import annotations

from typing import ClassVar

import pytest
from tests.decision.engine import evaluator_of

import mooring.framework as fw
from mooring.cache.cache import Cache
from mooring.decision.whatif import WhatIfs
from mooring.framework.plugin import Base
from mooring.queue.nominator import NominatedPods
from mooring.testing import node, pod

FULL = fw.Status.unschedulable("node(s) full")


class Room(fw.Filter):
    """A node has room for two pods."""

    name = "Room"
    depends_on = fw.NODE_AND_PODS

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if node.pod_count < 2 else FULL


class RoomByColumn(Room):
    """Likewise, with an answer about all nodes at once."""

    name = "RoomByColumn"

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        return fw.Verdicts.passing(nodes).reject(nodes.pod_counts >= 2, FULL)


class Breaks(Room):
    """Likewise, but with two pods on a node the answer can't be had."""

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if node.pod_count < 2 else fw.Status.error("no figures")


class Undeclared(fw.Filter):
    """Says nothing about what its answers depend on."""

    name = "Undeclared"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


COUNT: fw.StateKey[int] = fw.StateKey("Counted/count")


class Counted(fw.PreFilter, fw.Filter):
    """At most three pods in the cluster, by a number that has to be kept true."""

    name = "Counted"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        state[COUNT] = int(nodes.pod_counts.sum())
        return fw.SKIP if pod.labels.get("counted") == "no" else fw.OK

    def add_pod(self, state: fw.CycleState, pod: fw.Pod, added: fw.Pod, node: fw.Node) -> fw.Status:
        if added.labels.get("counted") == "odd":
            return fw.Status.error("can't be counted")
        state[COUNT] += 1
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if state[COUNT] < 3 else FULL


class Rig:
    """Nodes a, b and c with two pods, one and none."""

    def __init__(self, *plugins: type[Base]) -> None:
        self.cache = Cache()
        for name in "abc":
            self.cache.put_node(node(name).api)
        for name in ("a1", "a2", "b1"):
            self.cache.put_pod(pod(name, uid=name, on=name[0]))
        self.nominator = NominatedPods()
        self.evaluator = evaluator_of(self.cache, *plugins, nominator=self.nominator)
        self.what_if: WhatIfs = self.evaluator.what_if

    def remove(self, name: str) -> None:
        self.cache.remove_pod(pod(name, uid=name, on=name[0]))

    def nominate(self, on: str, priority: int, name: str = "important", **labels: str) -> None:
        self.nominator.nominate(pod(name, uid=name, priority=priority, labels=labels), on)

    def begin(self, new: fw.Pod) -> fw.CycleState:
        state = fw.CycleState()
        self.evaluator.begin(state, new, self.cache.nodes)
        return state

    def fitting(self, new: fw.Pod) -> str:
        """The nodes that a pod fits on, asked about one by one."""
        state, nodes = self.begin(new), self.cache.nodes
        return "".join(one.name for one in nodes if self.what_if.fits(state, new, one).ok)

    def fitting_at_once(self, new: fw.Pod) -> str | None:
        """Likewise at once; None if they have to be asked about one by one."""
        state, nodes = self.begin(new), self.cache.nodes
        hypothetical = self.what_if.without_pods(state, new, nodes, [0, 1, 2], [(), (), ()])
        verdicts = None if hypothetical is None else self.what_if.fits_all(state, new, hypothetical)
        if verdicts is None:
            return None
        return "".join(nodes.names[row] for row in verdicts.passed.nonzero()[0].tolist())

    def fitting_after_filter(self, new: fw.Pod) -> str:
        evaluation = self.evaluator.begin(fw.CycleState(), new, self.cache.nodes)
        evaluation.filter()
        assert evaluation.status.ok
        return "".join(self.cache.nodes.names[row] for row in evaluation.rows.tolist())


class Asked(fw.Filter):
    """Refuses the nodes with a label, and notes what it is asked about."""

    name = "Asked"
    depends_on = fw.NODE
    names: ClassVar[list[str]] = []

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        self.names.append(node.name)
        return FULL if "closed" in node.labels else fw.OK


NEW = pod("new", uid="new", priority=5)
both_forms = pytest.mark.parametrize("room", [Room, RoomByColumn])


@both_forms
def test_a_pod_fits_where_it_does_with_and_without_those_that_have_a_claim(
    room: type[Base],
) -> None:
    rig = Rig(room)
    assert rig.fitting(NEW) == rig.fitting_at_once(NEW) == rig.fitting_after_filter(NEW) == "bc"
    rig.nominate("c", priority=5)
    assert rig.fitting(NEW) == rig.fitting_at_once(NEW) == rig.fitting_after_filter(NEW) == "bc"
    rig.nominate("b", priority=5)
    assert rig.fitting(NEW) == rig.fitting_at_once(NEW) == rig.fitting_after_filter(NEW) == "c"


@both_forms
@pytest.mark.parametrize(("priority", "expected"), [(4, "bc"), (5, "c"), (6, "c")])
def test_a_claim_counts_unless_its_pod_has_less_priority(
    room: type[Base], priority: int, expected: str
) -> None:
    rig = Rig(room)
    rig.nominate("b", priority=priority)
    assert rig.fitting(NEW) == rig.fitting_at_once(NEW) == expected
    assert rig.fitting_after_filter(NEW) == expected


@both_forms
def test_a_pod_does_not_stand_in_its_own_way(room: type[Base]) -> None:
    rig = Rig(room)
    rig.nominate("b", priority=5, name="new")
    assert rig.fitting(NEW) == rig.fitting_at_once(NEW) == rig.fitting_after_filter(NEW) == "bc"


@both_forms
def test_nodes_without_some_pods_are_asked_about_at_once(room: type[Base]) -> None:
    rig = Rig(room)
    rig.nominate("a", priority=5)
    nodes, state = rig.cache.nodes, rig.begin(NEW)
    on_a = nodes[0].pods
    for gone, fits in ((on_a, True), (on_a[:1], False)):
        hypothetical = rig.what_if.without_pods(state, NEW, nodes, [2, 0], [(), gone])
        assert hypothetical is not None
        verdicts = rig.what_if.fits_all(state, NEW, hypothetical)
        assert verdicts is not None
        assert verdicts.passed.tolist() == [True, fits]


@both_forms
@pytest.mark.parametrize("other", [Undeclared, Counted])
def test_a_filter_that_looks_at_more_than_the_node_is_asked_node_by_node(
    room: type[Base], other: type[Base]
) -> None:
    rig = Rig(room, other)
    assert rig.fitting_at_once(NEW) is None
    rig.nominate("b", priority=5)
    assert rig.fitting_after_filter(pod("new", labels={"counted": "no"})) == "c"


@both_forms
def test_a_claim_of_a_pod_that_is_on_the_node_after_all_counts_once(room: type[Base]) -> None:
    rig = Rig(room)
    rig.nominate("b", priority=5, name="b1")
    assert rig.fitting_at_once(NEW) is None
    assert rig.fitting(NEW) == rig.fitting_after_filter(NEW) == "bc"


def test_a_filter_that_breaks_is_asked_node_by_node() -> None:
    rig = Rig(Breaks)
    assert rig.fitting_at_once(NEW) is None
    rig.remove("a2")
    assert rig.fitting_at_once(NEW) == "abc"
    rig.nominate("b", priority=5)
    assert rig.fitting_at_once(NEW) is None
    evaluation = rig.evaluator.begin(fw.CycleState(), NEW, rig.cache.nodes)
    evaluation.filter()
    assert evaluation.status.message == 'running "Room" filter plugin: no figures'


def test_a_plugin_is_told_of_pods_that_have_a_claim_unless_it_is_skipped() -> None:
    rig = Rig(Counted)
    rig.remove("a2")
    assert rig.fitting(NEW) == rig.fitting_after_filter(NEW) == "abc"
    rig.nominate("b", priority=5)
    assert rig.fitting(NEW) == rig.fitting_after_filter(NEW) == "ac"
    uncounted = pod("uncounted", labels={"counted": "no"})
    rig.nominate("b", priority=5, counted="odd")
    assert rig.fitting(uncounted) == rig.fitting_after_filter(uncounted) == "abc"
    state, on_b = rig.begin(NEW), rig.cache.nodes[1]
    status = rig.what_if.fits(state, NEW, on_b)
    assert status.code is fw.Code.ERROR
    assert "can't be counted" in status.message
    evaluation = rig.evaluator.begin(fw.CycleState(), NEW, rig.cache.nodes)
    evaluation.filter()
    assert evaluation.status == status


def test_no_filter_is_asked_about_a_node_that_is_refused_beside_nominated_pods() -> None:
    rig = Rig(Asked, Room)
    rig.nominate("a", priority=5)
    nodes, state = rig.cache.nodes, rig.begin(NEW)
    for rows, asked in (([0], "a"), ([0, 2], "aac")):
        Asked.names.clear()
        without: list[tuple[fw.Pod, ...]] = [nodes[row].pods[:1] for row in rows]
        hypothetical = rig.what_if.without_pods(state, NEW, nodes, rows, without)
        assert hypothetical is not None
        verdicts = rig.what_if.fits_all(state, NEW, hypothetical)
        assert verdicts is not None
        assert verdicts.each() == [FULL.by("Room"), fw.OK][: len(rows)]
        assert "".join(Asked.names) == asked


@both_forms
def test_a_filter_that_passes_every_node_is_not_asked_again_for_nominated_pods(
    room: type[Base],
) -> None:
    rig = Rig(Asked, room)
    rig.nominate("b", priority=5)
    for name in ("first", "second", "third"):  # results are kept from the second pod on
        Asked.names.clear()
        assert rig.fitting_after_filter(pod(name, priority=5)) == "c"
    assert Asked.names == []
    rig.cache.put_node(node("b", labels={"closed": "yes"}).api)
    evaluation = rig.evaluator.begin(fw.CycleState(), NEW, rig.cache.nodes)
    evaluation.filter()
    assert evaluation.verdicts().status(1) == FULL.by("Asked")


def test_every_pod_is_ours_unless_a_process_says_otherwise() -> None:
    assert Rig(Room).what_if.is_ours(NEW)
