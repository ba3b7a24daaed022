"""An extender made of functions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.extender.in_process_server import about, serve
from tests.unshowable import Parting

import mooring.framework as fw
from mooring.cluster.apiserver.resources import known
from mooring.extender import Extender
from mooring.testing import node, pod


def made(**functions: Any) -> Extender:
    extender = Extender()
    for verb, function in functions.items():
        getattr(extender, verb)(function)
    return extender


async def test_three_lines_are_an_extender() -> None:
    extender = Extender()

    @extender.filter
    def only_ssd(pod: fw.Pod, node: fw.Node) -> bool | str:
        return "ssd" in node.labels or "node has no ssd"

    async with serve(extender) as served:
        answer = await served.filter(pod("web"), [node("a", labels={"ssd": ""}), node("b")])
        assert [item["metadata"]["name"] for item in answer["Nodes"]["items"]] == ["a"]
        assert answer["FailedNodes"] == {"b": "node has no ssd"}
        assert list(served.app.answers) == ["filter"]
    assert only_ssd(pod(), node("a")) == "node has no ssd"  # it is still a function


@pytest.mark.parametrize(
    ("answer", "failed", "hopeless"),
    [
        (True, {}, {}),
        (None, {}, {}),
        ("", {}, {}),
        (fw.OK, {}, {}),
        (False, {"a": "refused by ask"}, {}),
        ("no", {"a": "no"}, {}),
        (fw.Status.unschedulable("x", "y"), {"a": "x, y"}, {}),
        (fw.Status.unresolvable("never"), {}, {"a": "never"}),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_understands(
    answer: Any, failed: dict[str, str], hopeless: dict[str, str], is_async: bool
) -> None:
    extender = Extender()
    if is_async:

        @extender.filter
        async def ask(pod: fw.Pod, node: fw.Node) -> Any:
            await asyncio.sleep(0)
            return answer
    else:

        @extender.filter
        def ask(pod: fw.Pod, node: fw.Node) -> Any:
            return answer

    async with serve(extender) as served:
        found = await served.filter(pod("web"), ["a"])
        assert (found["FailedNodes"], found["FailedAndUnresolvableNodes"]) == (failed, hopeless)
        assert found["NodeNames"] == ([] if failed or hopeless else ["a"])


async def test_points_are_the_mean_and_may_be_fractions() -> None:
    extender = Extender()

    @extender.prioritize
    def by_label(pod: fw.Pod, node: fw.Node) -> float:
        return float(node.labels["points"])

    @extender.prioritize
    async def four(pod: fw.Pod, node: fw.Node) -> int:
        await asyncio.sleep(0)
        return 4

    async with serve(extender) as served:
        nodes = [node(name, labels={"points": name}) for name in ("0", "7.5", "10")]
        assert await served.prioritize(pod("web"), nodes) == {"0": 2, "7.5": 6, "10": 7}
        too_much = await served.post(
            "/prioritize", about(pod("web"), [node("x", labels={"points": "11"})])
        )
        assert too_much.status == 500
        assert "by_label" in too_much.json["Error"]
        assert "returned 11.0, expected a number from 0 to 10" in too_much.json["Error"]


async def test_async_functions_are_asked_side_by_side_about_nodes_that_stand_still() -> None:
    extender = Extender()
    asked: list[str] = []
    everybody, go = asyncio.Event(), asyncio.Event()

    @extender.filter
    async def together(pod: fw.Pod, node: fw.Node) -> bool:
        asked.append(node.name)
        if len(asked) == 3:
            everybody.set()
        await go.wait()
        return node.spare("cpu") >= 1000

    async with serve(extender, objects=[node(name, cpu=4) for name in "abc"]) as served:
        asking = asyncio.create_task(served.filter(pod("web"), ["a", "b", "c"]))
        await everybody.wait()
        cache = served.app.cluster.cache
        cache.put_pod(pod("big", cpu=4, on="a"))
        cache.remove_node("b")  # another node takes its row
        go.set()
        assert (await asking)["NodeNames"] == ["a", "b", "c"]
        answer = await served.filter(pod("web"), ["a", "c"])
        assert answer["NodeNames"] == ["c"]


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
async def test_an_async_function_that_breaks_or_never_ends_is_named(verb: str) -> None:
    async def breaks(pod: fw.Pod, node: fw.Node) -> Any:
        if "hang" in pod.labels:
            await asyncio.get_running_loop().create_future()
        raise LookupError("nothing there")

    async with serve(made(**{verb: breaks}), plugin_seconds=0.1) as served:
        for labels, why in (
            ({}, "LookupError: nothing there"),
            ({"hang": ""}, "its budget of 0.1s"),
        ):
            reply = await served.post(f"/{verb}", about(pod("web", labels=labels), ["a", "b"]))
            assert f'running "breaks" {verb} function: ' in reply.json["Error"]
            assert why in reply.json["Error"]


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind", "preempt"])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Parting(), "Parting: <Parting that can't be shown>"),
        (SystemExit(9), "SystemExit: 9"),
        (ValueError("x" * 20_000_000), "ValueError: xxx"),
    ],
    ids=["words that exit", "exit", "20 MB"],
)
async def test_survives_whatever_a_function_raises(
    verb: str, is_async: bool, error: BaseException, why: str
) -> None:
    def breaks(pod: fw.Pod, *given: object) -> Any:
        raise error

    async def breaks_later(pod: fw.Pod, *given: object) -> Any:
        raise error

    objects = [node("a"), node("b"), pod("web")]
    async with serve(
        made(**{verb: breaks_later if is_async else breaks}), objects=objects
    ) as served:
        for _ in range(2):  # it has survived if it answers again
            (web,) = served.cluster.store.items(known("pods"))
            payload = {
                "filter": about(pod("web"), ["a", "b"]),
                "prioritize": about(pod("web"), ["a", "b"]),
                "bind": {
                    "PodName": "web",
                    "PodNamespace": "default",
                    "PodUID": web.uid,
                    "Node": "a",
                },
                "preempt": {
                    "Pod": about(pod("web"), [])["Pod"],
                    "NodeNameToVictims": {"a": {"Pods": [], "NumPDBViolations": 0}},
                },
            }[verb]
            reply = await served.post(f"/{verb}", payload)
            assert why in reply.json["Error"]
            assert len(reply.json["Error"]) <= 4096


def test_refuses_functions_that_can_not_be_asked() -> None:
    extender = Extender()
    with pytest.raises(TypeError, match=r"@extender.filter: only_pod\(\) must take \(pod, node\)"):

        @extender.filter  # type: ignore[type-var]  # which a type checker sees too
        def only_pod(pod: fw.Pod) -> bool:
            return True

    def twice(pod: fw.Pod, node: fw.Node) -> int:
        return 1

    extender.prioritize(twice)
    with pytest.raises(ValueError, match=r"there is a function twice\(\) already"):
        extender.prioritize(twice)


async def test_says_what_a_function_may_not_return() -> None:
    def odd(pod: fw.Pod, node: fw.Node) -> Any:
        return ["a"]

    async with serve(made(filter=odd)) as served:
        answer = await served.filter(pod("web"), ["a"])
        told = "TypeError: returned ['a'], expected True, a reason, or a Status"
        assert answer["Error"] == f'running "odd" filter plugin: {told}'
