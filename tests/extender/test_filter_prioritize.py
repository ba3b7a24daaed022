"""What plugins say, as schedulers read it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.extender.in_process_server import about, serve

import mooring.framework as fw
from mooring.api import core
from mooring.api.codec import to_builtins
from mooring.errors import ConfigError
from mooring.extender.serving.app import App, Options
from mooring.framework.plugin import Base
from mooring.testing import node, pod

SSD = {"disk": "ssd"}


class OnlySsd(fw.Filter):
    name = "OnlySsd"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if "broken" in pod.labels:
            raise KeyError(pod.name)
        if node.labels.get("disk") == "tape":
            return fw.Status.unresolvable("tape is not for pods", "and never was")
        return fw.OK if node.labels.get("disk") == "ssd" else fw.Status.unschedulable("no ssd")


class Roomy(fw.Filter, fw.Score):
    """Vectorised, and looks at the pods of nodes."""

    name = "Roomy"
    FULL = fw.Status.unschedulable("node is full")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK if node.spare("cpu") >= pod.requests("cpu") else self.FULL

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        return fw.Verdicts.passing(nodes).reject(
            nodes.spare("cpu") < pod.requests("cpu"), self.FULL
        )

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 * max(node.spare("cpu"), 0) // max(node.allocatable("cpu"), 1)


async def test_answers_with_the_very_nodes_that_came_and_the_reasons_of_the_others() -> None:
    async with serve([OnlySsd]) as served:
        nodes = [node("a", labels=SSD), node("b"), node("c", labels=SSD), node("d")]
        asked = about(pod("web"), [*nodes, node("t", labels={"disk": "tape"})])
        for item in asked["Nodes"]["items"]:
            item["status"]["somethingNew"] = {"nested": [1, None]}  # we know nothing of it
        answer = await served.ask("/filter", asked)
        assert answer["Nodes"] == {"metadata": {}, "items": asked["Nodes"]["items"][0:3:2]}
        assert answer["NodeNames"] is None
        assert answer["FailedNodes"] == {"b": "no ssd", "d": "no ssd"}
        reasons = {"t": "tape is not for pods, and never was"}
        assert answer["FailedAndUnresolvableNodes"] == reasons
        assert answer["Error"] == ""


async def test_keeps_every_byte_of_a_node() -> None:
    async with serve([OnlySsd]) as served:
        item = b'{"metadata" : {"name":"a","labels":{"disk":"ssd"}},  "x":1.50}'
        pod_ = msgspec.json.encode(to_builtins(pod("web").api))
        body = b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod_, item)
        reply = await served.post("/filter", body)
        assert item in reply.body


async def test_names_are_enough_for_nodes_that_it_watches() -> None:
    nodes = [node("a", labels=SSD), node("b"), node("c", labels=SSD)]
    async with serve([OnlySsd], objects=nodes) as served:
        answer = await served.filter(pod("web"), ["c", "b", "a", "nobody"])
        assert answer["NodeNames"] == ["c", "a"]  # in the order they were asked in
        assert answer["Nodes"] is None
        assert answer["FailedNodes"] == {"b": "no ssd"}
        unknown = {"nobody": "node is not known to the extender"}
        assert answer["FailedAndUnresolvableNodes"] == unknown


async def test_knows_the_pods_on_nodes_by_its_own_watch() -> None:
    there = [node("a", cpu=4), node("b", cpu=4), pod("old", cpu=3, on="a")]
    async with serve([Roomy], objects=there) as served:
        wanted = pod("web", cpu=2)
        by_name = await served.filter(wanted, ["a", "b"])
        assert (by_name["NodeNames"], by_name["FailedNodes"]) == (["b"], {"a": "node is full"})
        in_full = await served.filter(wanted, [node("a", cpu=4), node("b", cpu=4)])
        assert [item["metadata"]["name"] for item in in_full["Nodes"]["items"]] == ["b"]
        # One that it does not know: all are read from the request, and its pods are still there.
        some = [node("a", cpu=4), node("b", cpu=4), node("new", cpu=4)]
        in_full = await served.filter(wanted, some)
        assert [item["metadata"]["name"] for item in in_full["Nodes"]["items"]] == ["b", "new"]
        assert await served.prioritize(wanted, ["b", "a"]) == {"b": 10, "a": 3}


async def test_waits_a_moment_for_a_node_that_the_scheduler_saw_first() -> None:
    async with serve([OnlySsd], cluster=True) as served:
        asking = asyncio.create_task(served.filter(pod("web"), ["late"]))
        await asyncio.sleep(0)  # let it be asked first
        served.cluster.apply(node("late", labels=SSD))
        assert (await asking)["NodeNames"] == ["late"]


async def test_knows_nothing_but_names_without_a_cluster() -> None:
    class Named(fw.Filter):
        name = "Named"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
            return fw.OK if node.name == "this" else fw.Status.unschedulable("not this")

    async with serve([Named]) as served:
        answer = await served.filter(pod("web"), ["that", "this"])
        assert (answer["NodeNames"], answer["FailedNodes"]) == (["this"], {"that": "not this"})


async def test_reads_what_kubernetes_1_15_wrote() -> None:
    async with serve([OnlySsd]) as served:
        asked = about(pod("web"), [node("a", labels=SSD), node("b")])
        old = {"pod": asked["Pod"], "nodes": asked["Nodes"], "nodenames": None}
        answer = await served.ask("/filter", old)
        assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["a"]


# --- points --------------------------------------------------------------------------------------


class Fixed(fw.Score):
    name = "Fixed"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return int(node.labels["points"])


class Half(fw.Score, fw.PreScore):
    """Remembers something from PreScore, and gives half of the best to everybody."""

    name = "Half"
    COUNT: fw.StateKey[int] = fw.StateKey("count")

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if "skip" in pod.labels:
            return fw.SKIP
        state[self.COUNT] = len(nodes)
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 1000 * state[self.COUNT]

    def normalize_score(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, scores: fw.IntArray
    ) -> fw.IntArray:
        return np.full_like(scores, 50)


def scored(**points: int) -> list[fw.Node]:
    return [node(name, labels={"points": str(value)}) for name, value in points.items()]


async def test_points_are_tenths_of_those_of_a_plugin() -> None:
    async with serve([Fixed]) as served:
        nodes = scored(a=0, b=44, c=45, d=100)
        assert await served.prioritize(pod("web"), nodes) == {"a": 0, "b": 4, "c": 5, "d": 10}
        assert await served.prioritize(pod("web"), []) == {}
        alias = await served.ask("/priority", about(pod("web"), scored(a=70)))
        assert alias == [{"Host": "a", "Score": 7}]


WEIGHTED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      score:
        enabled: [{name: Fixed, weight: 3}]
"""


async def test_several_plugins_give_their_weighted_mean() -> None:
    async with serve([Fixed, Half], config=WEIGHTED) as served:
        nodes = scored(a=0, b=100)  # (3 * 0 + 1 * 50) / 4, (3 * 100 + 1 * 50) / 4
        assert await served.prioritize(pod("web"), nodes) == {"a": 1, "b": 9}
        alone = pod("web", labels={"skip": ""})  # who skips a pod has no say at all
        assert await served.prioritize(alone, nodes) == {"a": 0, "b": 10}


# --- PreFilter -----------------------------------------------------------------------------------


class Chooses(fw.PreFilter):
    name = "Chooses"

    def pre_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> fw.Status | fw.OnlyNodes:
        assert len(self.handle.nodes) == len(nodes)
        if "never" in pod.labels:
            return fw.Status.unresolvable("never ever")
        return fw.OnlyNodes.of(["a", "c"])


async def test_pre_filter_may_narrow_the_nodes_or_refuse_them_all() -> None:
    async with serve([Chooses, OnlySsd]) as served:
        nodes = [node("a"), node("b", labels=SSD), node("c", labels=SSD)]
        answer = await served.filter(pod("web"), nodes)
        assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["c"]
        assert answer["FailedNodes"] == {"a": "no ssd"}
        elsewhere = {"b": "node(s) didn't satisfy plugin(s) [Chooses]"}
        assert answer["FailedAndUnresolvableNodes"] == elsewhere
        answer = await served.filter(pod("web", labels={"never": ""}), nodes)
        never = dict.fromkeys("abc", "never ever")
        assert (answer["Nodes"]["items"], answer["FailedAndUnresolvableNodes"]) == ([], never)


# --- accidents -----------------------------------------------------------------------------------


class Unlucky(fw.Score):
    name = "Unlucky"
    answer: Any = 7

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        if "broken" in pod.labels:
            raise ZeroDivisionError("points")
        return 1000 if "much" in pod.labels else 70


async def test_an_exception_names_its_plugin_and_the_next_pod_is_fine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = pod("web", labels={"broken": ""})

    with caplog.at_level(logging.ERROR):
        async with serve([OnlySsd, Unlucky]) as served:
            nodes = [node("a", labels=SSD)]
            for _ in range(3):
                answer = await served.filter(broken, nodes)
                assert answer["Error"] == "running \"OnlySsd\" filter plugin: KeyError: 'web'"
                assert answer["Nodes"] is None
            reply = await served.post("/prioritize", about(broken, nodes))
            assert reply.status == 500
            assert 'plugin "Unlucky" failed with: ZeroDivisionError: points' in reply.json["Error"]
            reply = await served.post("/prioritize", about(pod("web", labels={"much": ""}), nodes))
            assert reply.status == 500
            assert '"Unlucky" returns an invalid score 1000' in reply.json["Error"]
            assert (await served.filter(pod("web"), nodes))["Error"] == ""
            assert await served.prioritize(pod("web"), nodes) == {"a": 7}
            page = (await served.request("GET", "/metrics")).text
            assert 'mooring_extender_errors_total{plugin="OnlySsd",verb="filter"} 3' in page
            assert 'mooring_extender_errors_total{plugin="Unlucky",verb="prioritize"} 2' in page
    told = [record for record in caplog.records if record.getMessage() == "plugin failed"]
    assert len(told) == 2  # once per place, however often


class Unready(Unlucky, fw.PreFilter):
    name = "Unready"

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        raise OSError("not yet")


async def test_a_pre_filter_that_breaks_is_an_error_and_no_refusal() -> None:
    async with serve([Unready]) as served:
        told = 'running PreFilter plugin "Unready": OSError: not yet'
        answer = await served.filter(pod("web"), [node("a")])
        assert (answer["Error"], answer["FailedNodes"]) == (told, None)
        reply = await served.post("/prioritize", about(pod("web"), [node("a")]))
        assert (reply.status, reply.json["Error"]) == (500, told)


async def test_a_pod_that_can_not_be_read_is_an_error_that_says_where() -> None:
    async with serve([OnlySsd]) as served:
        asked = about(pod("web"), [node("a")])
        asked["Pod"]["spec"]["priority"] = "high"
        answer = await served.ask("/filter", asked)
        told = "the pod of the request can't be read: Pod default/web: spec.priority: expected int"
        assert answer["Error"].startswith(told)
        nowhere = await served.ask(
            "/filter", {**asked, "Pod": about(pod(), [])["Pod"], "Nodes": None}
        )
        assert nowhere["Error"] == "the request names no nodes: both Nodes and NodeNames are null"


# --- what can't be served ------------------------------------------------------------------------


class Late(fw.PostBind):
    name = "Late"

    async def post_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None: ...


class Reads(OnlySsd):
    name = "Reads"
    reads = (core.Service,)


@pytest.mark.parametrize(
    ("plugins", "why"),
    [
        ([Late], "plugin Late: no verb of an extender serves its extension points: postBind"),
        ([Reads], "plugins look up Service: that needs a cluster"),
        ([], "there is nothing to serve: no plugin, no function"),
    ],
)
def test_refuses_to_start_with(plugins: list[type[Base]], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        App(plugins, options=Options(cluster=False))


def test_refuses_to_bind_without_a_cluster() -> None:
    with pytest.raises(ConfigError, match="binding pods needs a cluster"):
        App([OnlySsd], options=Options(cluster=False, serve_bind=True))
