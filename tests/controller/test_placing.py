"""What `@controller` does for a function, on an embedded cluster and virtual time."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator

import pytest

import mooring.framework as fw
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.controller import NotNow, Options, controller
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox

NAME = "mine"
LEAVING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "leaving", "finalizers": ["example.com/wait"]},
    "spec": {"schedulerName": NAME, "containers": [{"name": "c", "image": "i"}]},
}


@pytest.fixture
def cluster() -> Iterator[Sandbox]:
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        yield sandbox


def binds(cluster: Sandbox) -> list[tuple[str, str]]:
    """Pod and node of every change from now on that gave a pod a node."""
    found: list[tuple[str, str]] = []

    def listen(change: StoreChange) -> None:
        if change.resource == known("pods").key and change.old is not None:
            before, now = change.old.fields["spec.nodeName"], change.new.fields["spec.nodeName"]
            if now and now != before:
                found.append((change.new.name, now))

    cluster.cluster.store.listen(listen)
    return found


@controller(scheduler_name=NAME)
def last(pod: fw.Pod, nodes: fw.Nodes) -> str:
    return max(nodes.names)


def test_binds_its_pods_and_says_so(cluster: Sandbox) -> None:
    cluster.apply(node("a"), node("b"))
    cluster.start_controller(last)
    bound = binds(cluster)
    cluster.apply(pod("p", scheduler=NAME), pod("theirs"))
    cluster.wait_until_bound("p")
    cluster.advance(60)
    assert bound == [("p", "b")]
    assert cluster.node_of("theirs") == ""
    (said,) = cluster.events("p")
    assert (said.type, said.reason, said.source) == ("Normal", "Scheduled", NAME)
    assert said.message == "Successfully assigned default/p to b"


def test_finds_pods_that_were_there_before_it(cluster: Sandbox) -> None:
    cluster.apply(node("a"), *[pod(f"p{i}", scheduler=NAME) for i in range(5)])
    cluster.start_controller(last)
    cluster.wait_until_bound()


def test_takes_async_functions_and_nodes_for_answers(cluster: Sandbox) -> None:
    @controller(scheduler_name=NAME)
    async def choose(pod: fw.Pod, nodes: fw.Nodes) -> fw.Node:
        await asyncio.sleep(3)
        return nodes[0]

    cluster.apply(node("a"), pod("p", scheduler=NAME))
    cluster.start_controller(choose)
    cluster.advance(2.9)
    assert cluster.node_of("p") == ""
    cluster.advance(0.2)
    assert cluster.node_of("p") == "a"


def test_leaves_pods_alone_that_are_gated_bound_or_on_their_way_out(
    cluster: Sandbox,
) -> None:
    asked: list[str] = []

    @controller(scheduler_name=NAME)
    def choose(pod: fw.Pod, nodes: fw.Nodes) -> str:
        asked.append(pod.name)
        return "a"

    cluster.apply(node("a"), LEAVING)
    cluster.delete("pod", "leaving")
    cluster.apply(pod("bound", scheduler=NAME, on="a"), pod("gated", scheduler=NAME, gates=["g"]))
    cluster.start_controller(choose)
    cluster.advance(60)
    assert asked == []

    def lift_gate(value: Object) -> None:
        value["spec"]["schedulingGates"] = []

    cluster.cluster.verbs.modify(known("pods"), "default", "gated", lift_gate)
    cluster.wait_until_bound("gated")
    assert asked == ["gated"]


def test_counts_pods_on_their_way_before_the_watch_shows_them(cluster: Sandbox) -> None:
    seen: list[list[int]] = []

    @controller(scheduler_name=NAME)
    def emptiest(pod: fw.Pod, nodes: fw.Nodes) -> str:
        seen.append(sorted(node.pod_count for node in nodes))
        return min(nodes, key=lambda node: (node.requested("cpu"), node.name)).name

    cluster.apply(*[node(f"n{i}") for i in range(3)])
    cluster.apply(*[pod(f"p{i}", cpu="1", scheduler=NAME) for i in range(6)])
    cluster.start_controller(emptiest, Options(workers=6))
    cluster.wait_until_bound()
    assert seen == [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 1, 2], [1, 2, 2]]


def test_asks_again_later_and_later_when_the_answer_is_none(cluster: Sandbox) -> None:
    asked: list[float] = []

    @controller(scheduler_name=NAME, first_retry=1, longest_retry=8)
    def choose(pod: fw.Pod, nodes: fw.Nodes) -> str | None:
        asked.append(cluster.loop.time())
        return "a" if len(asked) > 6 else None

    cluster.apply(node("a"), pod("p", scheduler=NAME))
    cluster.start_controller(choose)
    cluster.wait_until_bound("p")
    pauses = [after - before for before, after in itertools.pairwise(asked)]
    for pause, whole in zip(pauses, [1, 2, 4, 8, 8, 8], strict=True):
        assert 0.8 * whole <= pause <= whole
    first, *_ = cluster.events("p", "FailedScheduling")
    assert (first.type, first.message) == ("Warning", "no node was chosen")


def test_asks_again_soon_when_a_node_has_changed_or_a_pod_has_left(cluster: Sandbox) -> None:
    asked: list[str] = []

    @controller(scheduler_name=NAME, first_retry=1000, longest_retry=1000)
    def choose(pod: fw.Pod, nodes: fw.Nodes) -> str | None:
        asked.append(pod.name)
        roomy = [node for node in nodes if node.spare("cpu") >= pod.requests("cpu")]
        return roomy[0].name if roomy else None

    cluster.apply(node("a", cpu="1"), pod("big", cpu="1", on="a"))
    cluster.apply(pod("p", cpu="1", scheduler=NAME), pod("q", cpu="1", scheduler=NAME))
    cluster.start_controller(choose)
    cluster.advance(10)
    assert asked == ["p", "q"]
    cluster.delete("pod", "big", grace=0)
    cluster.advance(1)
    assert cluster.node_of("p") == "a"
    assert asked == ["p", "q", "p", "q"]
    cluster.apply(*[node(f"b{i}", cpu="1") for i in range(5)])
    cluster.advance(1)
    assert cluster.node_of("q").startswith("b")
    assert asked == ["p", "q"] * 2 + ["q"]  # many changes at once are one


def test_waits_as_long_and_says_why_as_the_function_wants(cluster: Sandbox) -> None:
    asked: list[float] = []

    @controller(scheduler_name=NAME)
    def choose(pod: fw.Pod, nodes: fw.Nodes) -> str | NotNow:
        asked.append(cluster.loop.time())
        return "a" if len(asked) > 2 else NotNow("the oven is cold", after=30)

    cluster.apply(node("a"), pod("p", scheduler=NAME))
    cluster.start_controller(choose)
    cluster.wait_until_bound("p")
    assert asked == pytest.approx([0, 30, 60])
    assert cluster.events("p", "FailedScheduling")[0].message == "the oven is cold"


def test_does_not_ask_where_there_are_no_nodes(cluster: Sandbox) -> None:
    cluster.apply(pod("p", scheduler=NAME))
    cluster.start_controller(last)
    cluster.advance(5)
    (said,) = cluster.events("p")
    assert said.message == "no nodes available to schedule pods"
    cluster.apply(node("a"))
    cluster.advance(1)
    assert cluster.node_of("p") == "a"


def test_tells_the_pod_what_the_function_raised_and_lives_on(
    cluster: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    @controller(scheduler_name=NAME)
    def choose(pod: fw.Pod, nodes: fw.Nodes) -> str:
        if pod.name.startswith("bad"):
            raise LookupError("no such shelf: 7")
        return "a"

    cluster.apply(node("a"), pod("bad-1", scheduler=NAME), pod("bad-2", scheduler=NAME))
    with caplog.at_level(logging.ERROR):
        cluster.start_controller(choose)
        cluster.apply(pod("good", scheduler=NAME))
        cluster.wait_until_bound("good")
        cluster.advance(60)
    said = cluster.events("bad-1", "FailedScheduling")[0]
    assert (said.type, said.message) == ("Warning", "LookupError: no such shelf: 7")
    assert len(caplog.records) == 1  # two pods, many tries, one place
    assert "no such shelf" in str(caplog.records[0].exc_info)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("nowhere", 'chose node "nowhere", which does not exist'),
        (7, "returned 7, expected the name of a node, or None"),
        ("", "returned '', expected the name of a node, or None"),
    ],
)
def test_tells_the_pod_of_an_answer_that_is_none(cluster: Sandbox, answer: str, told: str) -> None:
    answers = iter([answer])

    @controller(scheduler_name=NAME)
    def choose(pod: fw.Pod, nodes: fw.Nodes) -> str:
        return next(answers, "a")

    cluster.apply(node("a"), pod("p", scheduler=NAME))
    cluster.start_controller(choose)
    cluster.advance(0.1)
    assert cluster.events("p", "FailedScheduling")[0].message == told
    cluster.wait_until_bound("p")


def test_starts_anew_with_a_pod_that_took_the_name_of_another(cluster: Sandbox) -> None:
    uids: list[str] = []

    @controller(scheduler_name=NAME)
    async def choose(pod: fw.Pod, nodes: fw.Nodes) -> str:
        uids.append(pod.uid)
        await asyncio.sleep(5)
        return "a"

    cluster.apply(node("a"), pod("p", scheduler=NAME, uid=""))
    cluster.start_controller(choose)
    first = cluster.get("pod", "p")["metadata"]["uid"]
    cluster.delete("pod", "p", grace=0)
    cluster.apply(pod("p", scheduler=NAME, uid=""))
    second = cluster.get("pod", "p")["metadata"]["uid"]
    cluster.wait_until_bound("p")
    assert uids == [first, second]


def test_binds_nothing_after_it_was_stopped_and_ends_what_is_under_way(cluster: Sandbox) -> None:
    @controller(scheduler_name=NAME)
    async def choose(pod: fw.Pod, nodes: fw.Nodes) -> str:
        await asyncio.sleep(5)
        return "a"

    cluster.apply(node("a"), pod("p", scheduler=NAME), pod("q", scheduler=NAME))
    running = cluster.start_controller(choose, Options(workers=1))
    stopping = cluster.loop.create_task(running.stop())
    cluster.advance(20)
    assert stopping.done()
    assert cluster.placements() == {"p": "a", "q": ""}
    assert [said.reason for said in cluster.events()] == ["Scheduled"]


def test_ends_although_the_function_does_not(cluster: Sandbox) -> None:
    @controller(scheduler_name=NAME)
    async def choose(pod: fw.Pod, nodes: fw.Nodes) -> str:
        await asyncio.sleep(1e6)
        return "a"

    cluster.apply(node("a"), pod("p", scheduler=NAME))
    running = cluster.start_controller(choose, Options(grace=20))
    stopping = cluster.loop.create_task(running.stop())
    cluster.advance(30)
    assert stopping.done()
    assert running.runner.view.cache.assumed_count == 0
