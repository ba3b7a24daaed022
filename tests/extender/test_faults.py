"""Extenders that hang, break or lie: the pod is told, and nobody else is harmed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.extender.cluster_with_extenders import (
    NODES,
    ClusterWithExtenders,
    configuration,
    pod,
)
from tests.extender.scripted_extender import (
    Act,
    Payload,
    ScriptedExtender,
    answering,
    endless,
    hang,
    reset,
    saying,
)

from mooring.cluster.apiserver.store import Object

LIMIT = 64 * 1024 * 1024  # bytes of memory that no answer may cost
DEEP = b'{"Nodes":' + b"[" * 100_000


def everywhere(payload: Payload) -> Payload:
    return {"NodeNames": payload["NodeNames"]}


def twice(payload: Payload) -> Payload:
    return {"NodeNames": payload["NodeNames"] * 2}


def nowhere(payload: Payload) -> Payload:
    return {"NodeNames": ["nowhere", *payload["NodeNames"]]}


FAULTS: dict[str, tuple[Act, str]] = {
    "hangs": (hang, r'Post "\S+/filter": .*no answer within 0.3s'),
    "says 500": (saying(500, b"oops"), r"failed filter with extender at URL \S+/filter, code 500"),
    "resets": (reset, r'Post "\S+/filter": .*(reset|closed|lost)'),
    "says no JSON": (saying(200, b"<html>"), r'Post "\S+/filter": .*not valid JSON'),
    "says nonsense": (saying(200, b'{"NodeNames": 7}'), r'Post "\S+/filter": .*Expected `array`'),
    "says too deep things": (saying(200, DEEP), r'Post "\S+/filter": .*not valid JSON'),
    "names a stranger": (
        answering(nowhere),
        r'extender "\S+" claims a filtered node "nowhere" which is not found in the input node',
    ),
    "sends a gigabyte": (endless(announced=True), r"the answer is longer than \d+ bytes"),
    "sends a gigabyte in chunks": (endless(announced=False), r"longer than \d+ bytes"),
    "reports an error": (answering(lambda _: {"Error": "no luck today"}), r"^no luck today$"),
}


def entry(extender: ScriptedExtender, **own: Any) -> Object:
    return {
        "urlPrefix": extender.url,
        "nodeCacheCapable": True,
        "httpTimeout": "300ms",
        **own,
    }


@contextmanager
def modest() -> Iterator[None]:
    """Checks that what happens meanwhile needs little memory, even for a moment."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _memory("VmRSS")
    yield
    assert _memory("VmHWM") - before < LIMIT


def _memory(which: str) -> int:
    found = re.search(rf"^{which}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_in_filter_fails_the_pod_and_says_why(fault: str) -> None:
    act, expected = FAULTS[fault]

    async with (
        ScriptedExtender(filter=act) as extender,
        ClusterWithExtenders(configuration(entry(extender, filterVerb="filter"))) as env,
    ):
        env.cluster.apply(pod("a"))
        with modest():
            note = await env.note("a")
        assert re.search(expected, note), note
        extender.acts["filter"] = answering(everywhere)
        env.cluster.apply(pod("next"))
        await env.bound("next")


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_in_filter_does_not_count_if_the_extender_is_ignorable(fault: str) -> None:
    async with ScriptedExtender(filter=FAULTS[fault][0]) as extender:
        config = configuration(entry(extender, filterVerb="filter", ignorable=True))
        async with ClusterWithExtenders(config) as env:
            with modest():
                env.cluster.apply(pod("a"))
                await env.bound("a")
            assert env.notes("a") == []


@pytest.mark.parametrize("ignorable", [False, True])
@pytest.mark.parametrize(
    "fault", ["hangs", "says 500", "resets", "says no JSON", "sends a gigabyte"]
)
async def test_a_fault_in_prioritize_never_counts(fault: str, ignorable: bool) -> None:
    async with ScriptedExtender(prioritize=FAULTS[fault][0]) as extender:
        own = {"prioritizeVerb": "prioritize", "weight": 1, "ignorable": ignorable}
        async with ClusterWithExtenders(configuration(entry(extender, **own))) as env:
            with modest():
                env.cluster.apply(pod("a"))
                await env.bound("a")
            assert env.notes("a") == []


@pytest.mark.parametrize("score", [10**9, 2**63 - 1, -(2**63), 10**30])
async def test_scores_beyond_all_measure_are_cut_and_harm_nobody(score: int) -> None:
    scores = [{"Host": name, "Score": score} for name in (*NODES, "nowhere")]
    async with ScriptedExtender(prioritize=answering(lambda _: scores)) as extender:
        own = {"prioritizeVerb": "prioritize", "weight": 100_000}
        async with ClusterWithExtenders(configuration(entry(extender, **own))) as env:
            env.cluster.apply(pod("a"), pod("b"))
            await env.bound("a", "b")


async def test_a_node_that_is_named_twice_counts_once() -> None:
    async with (
        ScriptedExtender(filter=answering(twice)) as extender,
        ClusterWithExtenders(configuration(entry(extender, filterVerb="filter"))) as env,
    ):
        env.cluster.apply(pod("a"))
        await env.bound("a")


@pytest.mark.parametrize("ignorable", [False, True])
@pytest.mark.parametrize("fault", ["hangs", "says 500", "resets", "says no JSON"])
async def test_a_fault_in_bind_fails_the_pod_or_leaves_it_to_the_plugins(
    fault: str, ignorable: bool
) -> None:
    async with ScriptedExtender(bind=FAULTS[fault][0]) as extender:
        own = {"bindVerb": "bind", "ignorable": ignorable}
        async with ClusterWithExtenders(configuration(entry(extender, **own))) as env:
            env.cluster.apply(pod("a"))
            if ignorable:
                await env.bound("a")
            else:
                assert "bind" in await env.note("a")
                assert env.node_of("a") == ""


STRANGE: dict[str, Any] = {
    "a stranger": {"node-0": {"Pods": [{"UID": "unknown"}]}},
    "an unknown node": {"nowhere": {"Pods": [{"UID": "unknown"}]}},
    "no victims": {"node-0": {"Pods": []}},
}


@pytest.mark.parametrize("ignorable", [False, True])
@pytest.mark.parametrize("what", STRANGE)
async def test_evictions_that_make_no_sense_are_refused(what: str, ignorable: bool) -> None:
    answer = {"NodeNameToMetaVictims": STRANGE[what]}
    async with ScriptedExtender(preempt=answering(lambda _: answer)) as extender:
        own = {"preemptVerb": "preempt", "ignorable": ignorable}
        async with ClusterWithExtenders(
            configuration(entry(extender, **own)), nodes=1, cpu="2"
        ) as env:
            env.cluster.apply(pod("old", requests={"cpu": "1500m"}))
            await env.bound("old")
            urgent = {"priorityClassName": "system-cluster-critical"}
            env.cluster.apply(pod("new", requests={"cpu": "1500m"}, **urgent))
            if ignorable and what != "no victims":
                await env.until(lambda: env.notes("old", "Preempted"))
            else:
                note = await env.note("new")
                assert re.search("claims to preempt|expected at least one|no candidate", note)
                assert env.notes("old", "Preempted") == []


async def test_a_gap_of_an_extender_does_not_stop_pods_that_it_is_not_asked_about() -> None:
    async with ScriptedExtender(filter=hang) as extender:
        managed = [{"name": "example.com/fpga"}]
        own = {"filterVerb": "filter", "managedResources": managed}
        async with ClusterWithExtenders(configuration(entry(extender, **own))) as env:
            fpga = {"example.com/fpga": "1"}
            env.cluster.add_nodes(1, name="fpga-{i}", resources={"example.com/fpga": "4"})
            env.cluster.apply(pod("stuck", requests=fpga, limits=fpga))
            env.cluster.apply(*[pod(f"p{i}") for i in range(20)])
            await env.bound(*[f"p{i}" for i in range(20)])
            assert env.node_of("stuck") == ""
