"""Our payloads through the types of Kubernetes, and what the real kube-scheduler asked of us."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import golang
from tests.extender.gowire.wire import build, through_go
from tests.extender.in_process_server import Served, serve
from tests.extender.record_requests import DATA
from tests.extender.test_wire import PAYLOADS, reasons, text

import mooring.framework as fw
from mooring.api import codec, core
from mooring.extender import Extender
from mooring.extender.wire import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
    decode,
    encode,
)
from mooring.testing import pod

ASKED: dict[str, type[Any]] = {
    "filter": ExtenderArgs,
    "prioritize": ExtenderArgs,
    "preempt": ExtenderPreemptionArgs,
    "bind": ExtenderBindingArgs,
}
ANSWERED = {
    "filter": "ExtenderFilterResult",
    "prioritize": "HostPriorityList",
    "preempt": "ExtenderPreemptionResult",
    "bind": "ExtenderBindingResult",
}
RECORDED = [(verb, form) for verb in ASKED for form in ("full", "names")]


@pytest.fixture(scope="module", autouse=True)
def _go() -> None:
    try:
        build()
    except golang.GoError as error:
        if os.environ.get("MOORING_REQUIRE_REAL") == "1":
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        pytest.skip(f"{error} (set MOORING_REQUIRE_REAL=1 to make this a failure)")


def recorded(verb: str, form: str) -> bytes:
    return (DATA / f"{verb}-{form}.json").read_bytes()


@pytest.mark.parametrize(("verb", "form"), RECORDED)
def test_nothing_of_what_kube_scheduler_asked_is_lost(verb: str, form: str) -> None:
    body, kind = recorded(verb, form), ASKED[verb]
    original = json.loads(body)
    read = decode(body, kind)
    assert encode(read) == body  # down to the order of the fields
    (by_go,) = through_go([(kind.__name__, json.loads(encode(read)))])
    assert by_go == {"data": original}
    assert decode(json.dumps(by_go["data"]).encode(), kind).__class__ is kind


def everything() -> Extender:
    extender = Extender()

    @extender.filter
    def mostly(pod: fw.Pod, node: fw.Node) -> bool | str | fw.Status:
        if node.name == "a":
            return 'no <"&> \u2028 \U0001f6a2'
        return node.name != "small-2" or fw.Status.unresolvable("never")

    @extender.prioritize
    def by_name(pod: fw.Pod, node: fw.Node) -> int:
        return len(node.name)

    @extender.preempt
    def anybody(pod: fw.Pod, node_name: str, victims: tuple[fw.Pod, ...]) -> bool:
        return True

    @extender.bind
    def never(pod: fw.Pod, node_name: str) -> str:
        return "not today"

    return extender


async def test_our_answers_to_it_are_what_go_expects() -> None:
    async with serve(everything(), cluster=True) as served:
        learn(served)
        answers = []
        for verb, form in RECORDED:
            reply = await served.post(f"/{verb}", recorded(verb, form))
            assert reply.status == 200, reply
            answers.append((ANSWERED[verb], reply.json))
        for (kind, sent), by_go in zip(answers, through_go(answers), strict=True):
            assert by_go == {"data": sent}, kind
        said = dict(zip(RECORDED, (sent for _, sent in answers), strict=True))
        check(said)


def learn(served: Served) -> None:
    """Let the extender know the cluster that was recorded, as if its watches had."""
    cache = served.app.cluster.cache
    for item in json.loads(recorded("filter", "full"))["Nodes"]["items"]:
        cache.put_node(codec.convert(item, core.Node))
    for there in json.loads(recorded("preempt", "full"))["NodeNameToVictims"].values():
        for victim in there["Pods"]:
            cache.put_pod(fw.Pod(codec.convert(victim, core.Pod)))
    for name, there in json.loads(recorded("preempt", "names"))["NodeNameToMetaVictims"].items():
        for victim in there["Pods"]:
            cache.put_pod(pod(f"victim-on-{name}", uid=victim["UID"], on=name))


def check(said: dict[tuple[str, str], Any]) -> None:
    asked = json.loads(recorded("filter", "full"))["Nodes"]
    kept = [item for item in asked["items"] if item["metadata"]["name"] not in ("a", "small-2")]
    full, named = said["filter", "full"], said["filter", "names"]
    assert full["Nodes"] == {**asked, "items": kept}
    assert sorted(named["NodeNames"]) == sorted(item["metadata"]["name"] for item in kept)
    for answer in (full, named):
        assert answer["FailedNodes"].get("a", 'no <"&> \u2028 \U0001f6a2').startswith("no <")
        assert answer["Error"] == ""
    for form in ("full", "names"):
        assert said["preempt", form]["NodeNameToMetaVictims"].keys() == {"a", "b"}
    offered = json.loads(recorded("preempt", "names"))["NodeNameToMetaVictims"]
    assert said["preempt", "names"]["NodeNameToMetaVictims"] == offered
    points = {one["Host"]: one["Score"] for one in said["prioritize", "names"]}
    assert points == {name: len(name) for name in points}
    assert "there is no pod default/fits" in said["bind", "full"]["Error"]


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_we_say_is_read_by_go_and_comes_back(data: st.DataObject) -> None:
    results = [ExtenderPreemptionResult, ExtenderBindingArgs, ExtenderBindingResult]
    sent: list[tuple[str, Any]] = []
    for kind in results:
        drawn = data.draw(st.lists(PAYLOADS[kind], min_size=5, max_size=20))
        sent += [(kind.__name__, json.loads(encode(value))) for value in drawn]
    filtered = st.builds(
        ExtenderFilterResult,
        st.none(),
        st.none() | st.lists(text).map(tuple),
        reasons,
        reasons,
        text,
    )
    drawn = data.draw(st.lists(filtered, min_size=5, max_size=20))
    sent += [("ExtenderFilterResult", json.loads(encode(value))) for value in drawn]
    points = st.lists(st.builds(HostPriority, text, st.integers(0, 10))).map(tuple)
    sent += [("HostPriorityList", json.loads(encode(data.draw(points))))]
    for (name, value), by_go in zip(sent, through_go(sent), strict=True):
        assert by_go == {"data": value}, name
