"""SIGUSR2: cache and queue are written to the log, and compared with what the informers know."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import pytest

from mooring.cluster.embedded import RunningScheduler
from mooring.lens import dump as dumps
from mooring.observe import log as logs
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox


@pytest.fixture
def sandbox(caplog: pytest.LogCaptureFixture) -> Sandbox:
    caplog.set_level(logging.INFO)
    return Sandbox(controllers=False, kubelets=False)


def dump(sandbox: Sandbox, running: RunningScheduler) -> None:
    sandbox.loop.call_soon(running.dumper.request)
    sandbox.advance(2)


def shown(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.getMessage() == message]


def test_nodes_and_queue_are_written_in_kube_schedulers_words(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with sandbox:
        sandbox.apply(
            node("a", cpu="4", memory="8Gi", max_pods=10, resources={"example.com/gpu": "2"})
        )
        running = sandbox.start_scheduler()
        sandbox.apply(
            pod("web", cpu="1500m", memory="1Gi", annotations={"secret": "hush"}),
            pod("big", cpu="16"),
            pod("gated", gates=["example.com/quota"]),
        )
        sandbox.advance(1)
        dump(sandbox, running)
        uid = {key: sandbox.get("pod", key)["metadata"]["uid"] for key in ("web", "big", "gated")}
    [nodes] = shown(caplog, "Dump of cached NodeInfo")
    assert nodes["nodes"].splitlines() == [
        "Node name: a",
        "Deleted: false",
        "Requested Resources: &{MilliCPU:1500 Memory:1073741824 EphemeralStorage:0"
        " AllowedPodNumber:0 ScalarResources:map[]}",
        "Allocatable Resources:&{MilliCPU:4000 Memory:8589934592 EphemeralStorage:0"
        " AllowedPodNumber:10 ScalarResources:map[example.com/gpu:2]}",
        "Scheduled Pods(number: 1):",
        f"name: web, namespace: default, uid: {uid['web']}, phase: Pending, nominated node: ",
    ]
    [queue] = shown(caplog, "Dump of scheduling queue")
    assert queue["summary"] == "activeQ:0; backoffQ:0; unschedulablePods:2"
    assert queue["pods"].splitlines() == [
        f"name: {name}, namespace: default, uid: {uid[name]}, phase: Pending, nominated node: "
        for name in ("big", "gated")
    ]
    assert not shown(caplog, "Cache mismatch")
    assert "hush" not in caplog.text


def test_a_node_that_is_gone_is_shown_as_long_as_it_has_pods(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with sandbox:
        sandbox.apply(node("a", cpu="4"))
        running = sandbox.start_scheduler()
        sandbox.apply(pod("web", cpu="1"), pod("other", cpu="2"))
        sandbox.advance(1)
        sandbox.delete("node", "a")
        dump(sandbox, running)
    [nodes] = shown(caplog, "Dump of cached NodeInfo")
    assert "Node name: a\nDeleted: true\nRequested Resources: &{MilliCPU:3000 " in nodes["nodes"]
    [mismatch] = shown(caplog, "Cache mismatch")  # as kube-scheduler has it
    assert (mismatch["missedNodes"], mismatch["redundantNodes"]) == ([], ["a"])


def test_what_only_one_of_cache_and_store_has_is_named(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with sandbox:
        sandbox.add_nodes(2)
        running = sandbox.start_scheduler()
        cache = running.scheduler.cache
        sandbox.apply(pod("known"), pod("lost"), pod("elsewhere", scheduler="another"))
        sandbox.advance(1)
        cache.remove_node("node-1")
        lost = next(one for one in cache.pods() if one.name == "lost")
        cache.remove_pod(lost)
        known = next(one for one in cache.pods() if one.name == "known")
        ghost = known.assumed_on("node-0")
        cache._pods["ghost"] = ghost
        dump(sandbox, running)
    by_nodes, by_pods = shown(caplog, "Cache mismatch")
    assert by_nodes["missedNodes"] == ["node-1"]
    assert by_pods["missedPods"] == [lost.uid]
    assert by_pods["redundantPods"] == ["ghost"]


def test_a_difference_that_does_not_last_is_none(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with sandbox:
        sandbox.add_nodes(2)
        running = sandbox.start_scheduler()
        cache = running.scheduler.cache
        gone = cache.table.api[cache.table.row_of["node-1"]]
        cache.remove_node("node-1")
        sandbox.loop.call_later(0.5, cache.put_node, gone)
        dump(sandbox, running)
    assert shown(caplog, "Cache comparer finished")
    assert not shown(caplog, "Cache mismatch")


def test_a_large_queue_is_written_in_parts_between_which_others_have_their_turn(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dumps, "_LONGEST", 1_000)
    turns: list[int] = []  # how many parts were in the log at each

    async def take_turns() -> None:
        while True:
            turns.append(len(shown(caplog, "Dump of scheduling queue")))
            await asyncio.sleep(0)

    with sandbox:
        running = sandbox.start_scheduler()
        sandbox.apply(*[pod(f"p{number}") for number in range(100)])
        sandbox.advance(1)
        caplog.clear()
        taking = sandbox.loop.create_task(take_turns())
        sandbox.loop.run_until_complete(_dumped(running))
        taking.cancel()
    parts = shown(caplog, "Dump of scheduling queue")
    assert len(parts) >= 10
    assert {part["summary"] for part in parts} == {"activeQ:0; backoffQ:100; unschedulablePods:0"}
    lines = [line for part in parts for line in part["pods"].splitlines()]
    assert len(lines) == len(set(lines)) == 100
    assert max(after - before for before, after in itertools.pairwise(turns)) <= 1


def test_it_waits_for_the_reader_of_the_log(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "is_behind", lambda: sandbox.loop.time() < 5)
    with sandbox:
        running = sandbox.start_scheduler()
        sandbox.loop.call_soon(running.dumper.request)
        sandbox.advance(4)
        assert not shown(caplog, "Dump of scheduling queue")
        sandbox.advance(2)
        assert len(shown(caplog, "Dump of scheduling queue")) == 1


def test_a_signal_during_a_dump_makes_one_more(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    with sandbox:
        running = sandbox.start_scheduler()

        async def ask() -> None:
            for _ in range(3):
                running.dumper.request()
                await asyncio.sleep(0)

        sandbox.loop.run_until_complete(ask())
        sandbox.advance(1)
    assert len(shown(caplog, "Dump of scheduling queue")) == 2


async def _dumped(running: RunningScheduler) -> None:
    running.dumper.request()
    task = running.dumper._task
    assert task is not None
    await task
