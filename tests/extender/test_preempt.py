"""Whose pods may be evicted, as an extender sees it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.extender.in_process_server import Served, serve

import mooring.framework as fw
from mooring.api.codec import to_builtins
from mooring.extender import Extender
from mooring.plugins.defaultpreemption import DefaultPreemption
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.testing import node, pod

HIGH = pod("high", cpu=2, priority=100)
VICTIMS = [
    pod("low-1", uid="u1", cpu=1, on="a", priority=1),
    pod("low-2", uid="u2", cpu=1, on="a", priority=2),
    pod("db", uid="u3", cpu=2, on="b", priority=1, labels={"app": "db"}),
]
NODES = [node("a", cpu=2), node("b", cpu=2)]


def offered(*victims: fw.Pod, full: bool = True) -> dict[str, Any]:
    """ExtenderPreemptionArgs, as kube-scheduler writes them."""
    by_node: dict[str, Any] = {}
    for victim in victims:
        by_node.setdefault(victim.node_name, {"Pods": [], "NumPDBViolations": 1})
        entry = to_builtins(victim.api) if full else {"UID": victim.uid}
        by_node[victim.node_name]["Pods"].append(entry)
    return {
        "Pod": to_builtins(HIGH.api),
        "NodeNameToVictims": by_node if full else None,
        "NodeNameToMetaVictims": None if full else by_node,
    }


def tell(served: Served, *nodes: fw.Node) -> None:
    """Let the extender know nodes and victims, as if its watches had; none without a cluster."""
    cluster = served.app.cluster
    if cluster.is_connected:
        for one in nodes:
            cluster.cache.put_node(one.api)
        for victim in VICTIMS:
            cluster.cache.put_pod(victim)


def answered(**nodes: list[str]) -> dict[str, Any]:
    return {
        "NodeNameToMetaVictims": {
            name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 1}
            for name, uids in nodes.items()
        }
    }


@pytest.mark.parametrize("full", [True, False])
async def test_functions_take_nodes_and_victims_away(full: bool) -> None:
    extender = Extender()

    @extender.preempt
    def spare_databases(pod: fw.Pod, node_name: str, victims: tuple[fw.Pod, ...]) -> str | bool:
        return "a database" if any(v.labels.get("app") == "db" for v in victims) else True

    @extender.preempt
    async def only_the_least(
        pod: fw.Pod, node_name: str, victims: tuple[fw.Pod, ...]
    ) -> list[fw.Pod]:
        return [min(victims, key=lambda victim: victim.priority)]

    async with serve(extender, cluster=not full) as served:
        tell(served, *NODES)
        answer = await served.ask("/preempt", offered(*VICTIMS, full=full))
        assert answer == answered(a=["u1"])


async def test_a_node_of_which_a_function_takes_no_victim_is_left_out() -> None:
    extender = Extender()

    @extender.preempt
    def not_on_a(pod: fw.Pod, node_name: str, victims: tuple[fw.Pod, ...]) -> list[fw.Pod]:
        return [] if node_name == "a" else list(victims)

    async with serve(extender) as served:
        assert await served.ask("/preempt", offered(*VICTIMS)) == answered(b=["u3"])


class Prefers(fw.PostFilter):
    name = "Prefers"

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> fw.Status | fw.Nominate:
        assert {verdicts.status(row).code for row in range(len(nodes))} == {fw.Code.UNSCHEDULABLE}
        wanted = pod.labels.get("wants", "")
        if not wanted:
            return fw.Status.unschedulable("nobody may go")
        there = nodes.get(wanted)
        victims = there.pods[:1] if there is not None and "one" in pod.labels else ()
        return fw.Nominate(wanted, victims=victims)


def asking(labels: dict[str, str], full: bool) -> dict[str, Any]:
    asked = offered(*VICTIMS, full=full)
    asked["Pod"]["metadata"]["labels"] = labels
    return asked


@pytest.mark.parametrize("full", [True, False])
async def test_a_post_filter_plugin_chooses_one_of_the_nodes(full: bool) -> None:
    async with serve([Prefers], cluster=not full) as served:
        tell(served, *NODES, node("c"))
        assert await served.ask("/preempt", asking({"wants": "b"}, full)) == answered(b=["u3"])
        everybody = await served.ask("/preempt", asking({"wants": "a"}, full))
        assert everybody == answered(a=["u1", "u2"])
        one = await served.ask("/preempt", asking({"wants": "a", "one": ""}, full))
        assert one == answered(a=["u1"])
        assert await served.ask("/preempt", asking({}, full)) == answered()
        strange = await served.post("/preempt", asking({"wants": "c"}, full))
        assert strange.status == 500
        told = 'PostFilter nominated node "c", which was not offered'
        assert strange.json["Error"] == told


async def test_a_plugin_cannot_choose_a_victim_that_was_not_offered() -> None:
    async with serve([Prefers], cluster=True) as served:
        tell(served, *NODES)
        asked = asking({"wants": "a", "one": ""}, full=False)
        asked["NodeNameToMetaVictims"]["a"]["Pods"] = [{"UID": "u2"}]  # and the plugin wants u1
        reply = await served.post("/preempt", asked)
        assert reply.status == 500
        told = 'PostFilter chose no pod on node "a" that was offered as a victim'
        assert reply.json["Error"] == told


class Broken(Prefers, fw.PreFilter):
    name = "Broken"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if pod.labels.get("breaks") == "PreFilter":
            raise ValueError("boom")
        return fw.OK

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> fw.Status | fw.Nominate:
        if pod.labels.get("breaks") == "PostFilter":
            raise ValueError("boom")
        return super().post_filter(state, pod, nodes, verdicts)


@pytest.mark.parametrize("point", ["PreFilter", "PostFilter"])
async def test_a_plugin_that_breaks_is_an_error_and_no_refusal(point: str) -> None:
    async with serve([Broken]) as served:
        assert await served.ask("/preempt", asking({"wants": "b"}, True)) == answered(b=["u3"])
        reply = await served.post("/preempt", asking({"wants": "b", "breaks": point}, True))
        assert reply.status == 500
        assert reply.json["Error"] == f'running {point} plugin "Broken": ValueError: boom'


async def test_default_preemption_picks_the_least_harm_among_the_offers() -> None:
    async with serve([NodeResourcesFit, DefaultPreemption], cluster=True) as served:
        tell(served, *NODES)
        answer = await served.ask("/preempt", offered(*VICTIMS, full=False))
        assert answer == answered(b=["u3"])  # where the most important victim is the least so


async def test_leaves_out_a_node_whose_victims_it_does_not_know() -> None:
    extender = Extender()

    @extender.preempt
    def fine(pod: fw.Pod, node_name: str, victims: tuple[fw.Pod, ...]) -> bool:
        return True

    async with serve(extender, cluster=True) as served:
        tell(served, *NODES)
        gone = pod("gone", uid="u9", on="a")
        answer = await served.ask("/preempt", offered(*VICTIMS, gone, full=False))
        assert answer == answered(b=["u3"])


async def test_needs_a_cluster_for_victims_that_are_only_named() -> None:
    async with serve([Prefers]) as served:
        tell(served, *NODES)
        reply = await served.post("/preempt", offered(*VICTIMS, full=False))
        assert reply.status == 500
        assert "the extender has no cluster to look in" in reply.json["Error"]
