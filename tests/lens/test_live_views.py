"""State, queue, nodes, records and stream of a running scheduler; and what callers may not see."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.lens.test_live import started

from mooring.cluster.embedded import RunningScheduler
from mooring.lens import stream as streaming
from mooring.lens.api import ResetFrame
from mooring.lens.live_explanations import ExplanationQuery
from mooring.lens.live_views import RecordQuery, plugin_times
from mooring.lens.sight import WHOLE, Sight
from mooring.lens.slices import Busy
from mooring.observe.metrics import Metrics
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox

SHOP = Sight(nodes=False, pods=False, namespace="shop")
NODES_ONLY = Sight(nodes=True, pods=False)
SPACES = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for name in ("shop", "treasury")
]
SECRETS = ("treasury", "vault", "node-a", "node-b", "gpu-pool")


@pytest.fixture(scope="module")
def world() -> Any:
    sandbox, running = started(
        *SPACES,
        node("node-a", cpu=4, labels={"pool": "gpu-pool"}),
        node("node-b", cpu=1, taints=["gpu-pool:NoSchedule"]),
        pod("vault", cpu=1, namespace="treasury"),
        pod("vault-big", cpu=9, namespace="treasury"),
        pod("web", cpu=1, namespace="shop"),
        pod("web-big", cpu=9, namespace="shop"),
        record_size=100,
    )
    with sandbox:
        yield sandbox, running


def started_recording(*objects: Any) -> tuple[Sandbox, RunningScheduler]:
    return started(*SPACES, *objects, record_size=100)


def run(sandbox: Sandbox, work: Any) -> Any:
    task = sandbox.loop.create_task(work)
    sandbox.advance(5)
    body = task.result()
    return None if body is None else json.loads(body)


def test_the_state(world: Any) -> None:
    sandbox, running = world
    found = run(sandbox, running.lens.views.state(WHOLE))
    assert (found["version"], found["source"], found["seq"]) == (1, "cluster", 4)
    assert sorted(found["nodes"]["names"]) == ["node-a", "node-b"]
    row = found["nodes"]["names"].index("node-a")
    assert found["nodes"]["pods"][row] == 2
    assert found["queue"]["unschedulable"] == 2
    assert found["rates"]["p50Us"] > 0
    assert found["shown"] == {"nodes": "all", "pods": "all", "namespace": ""}
    assert found["scheduler"]["profiles"] == ["default-scheduler"]


def test_the_queue_and_a_node(world: Any) -> None:
    sandbox, running = world
    found = run(sandbox, running.lens.views.queue(WHOLE))
    assert {one["name"]: one["place"] for one in found["pods"]} == {
        "vault-big": "unschedulable",
        "web-big": "unschedulable",
    }
    row = found["pods"][0]
    assert (row["shape"], row["attempts"]) == ("9 cpu", 1)
    assert row["plugins"] == ["NodeResourcesFit", "TaintToleration"]
    page = run(sandbox, running.lens.views.node("node-a", WHOLE))
    assert {one["name"] for one in page["pods"]} == {"vault", "web"}
    assert run(sandbox, running.lens.views.node("nowhere", WHOLE)) is None


def test_the_records(world: Any) -> None:
    sandbox, running = world
    found = run(sandbox, running.lens.views.records(WHOLE, RecordQuery(limit=2)))
    assert [row["seq"] for row in found["rows"]] == [4, 3]
    assert found["next"] == 3
    rest = run(sandbox, running.lens.views.records(WHOLE, RecordQuery(before=3)))
    assert ([row["seq"] for row in rest["rows"]], rest["next"]) == ([2, 1], None)
    one = run(sandbox, running.lens.views.records(WHOLE, RecordQuery(pod="shop/web")))
    assert [row["bind"] for row in one["rows"]] == ["ok"]
    query = RecordQuery(outcome="unschedulable")
    refused = run(sandbox, running.lens.views.records(WHOLE, query))
    assert {row["pod"] for row in refused["rows"]} == {"web-big", "vault-big"}
    later = RecordQuery(since="2999-01-01T00:00:00Z")
    assert run(sandbox, running.lens.views.records(WHOLE, later))["rows"] == []


def all_bytes(world: Any, sight: Sight) -> dict[str, str]:
    sandbox, running = world
    views, query = running.lens.views, ExplanationQuery(sight=sight)
    asked = {
        "state": views.state(sight),
        "queue": views.queue(sight),
        "records": views.records(sight, RecordQuery()),
        "web": running.lens.explain("shop/web", query),
        "web-big": running.lens.explain("shop/web-big", query),
    }
    return {name: json.dumps(run(sandbox, work)) for name, work in asked.items()}


def test_a_reader_of_one_namespace_sees_no_foreign_name(world: Any) -> None:
    found = all_bytes(world, SHOP)
    for name, text in found.items():
        for secret in SECRETS:
            if secret == "gpu-pool" and name != "state":
                continue  # kube-scheduler's own sentence in the pod's condition has it
            assert secret not in text, (name, secret)
    state = json.loads(found["state"])
    assert (state["nodes"]["count"], state["nodes"]["names"]) == (2, [])
    assert state["shown"] == {"nodes": "anonymous", "pods": "namespace", "namespace": "shop"}
    queue = json.loads(found["queue"])
    assert [one["name"] for one in queue["pods"]] == ["web-big"]
    assert {row["pod"] for row in json.loads(found["records"])["rows"]} == {"web", "web-big"}
    assert {row["node"] for row in json.loads(found["records"])["rows"]} == {"a node", ""}
    web = json.loads(found["web"])
    assert (web["kind"], web["node"]) == ("scheduled", "a node")
    big = json.loads(found["web-big"])
    assert sum(group["nodes"] for group in big["groups"]) == 2
    assert big["message"].startswith("0/2 nodes are available")


def test_a_reader_of_nodes_sees_no_pod(world: Any) -> None:
    sandbox, running = world
    views = running.lens.views
    texts = [
        json.dumps(run(sandbox, work))
        for work in (
            views.state(NODES_ONLY),
            views.queue(NODES_ONLY),
            views.node("node-a", NODES_ONLY),
        )
    ]
    for text in texts:
        assert not [word for word in ("vault", "treasury", "web", "shop") if word in text]
    assert json.loads(texts[1])["counts"]["unschedulable"] == 2
    assert (json.loads(texts[2])["count"], json.loads(texts[2])["pods"]) == (2, [])


# --- the stream -----------------------------------------------------------------------------------


def events(text: str) -> list[tuple[str, Any]]:
    found = []
    for part in text.split("\n\n"):
        lines = part.split("\n")
        if lines[0].startswith("event: "):
            found.append((lines[0][7:], json.loads(lines[1][6:])))
    return found


class Follower:
    def __init__(self, sandbox: Sandbox, running: RunningScheduler, sight: Sight = WHOLE) -> None:
        self.text = ""
        self.task = sandbox.loop.create_task(self._read(running.lens.views.stream(sight)))

    async def _read(self, frames: Any) -> None:
        async for frame in frames:
            self.text += frame.decode()


def test_changes_come_as_frames_and_names_stay_where_they_belong() -> None:
    sandbox, running = started_recording(node("node-a", cpu=4), node("node-b", cpu=4))
    with sandbox:
        whole, shop = Follower(sandbox, running), Follower(sandbox, running, SHOP)
        sandbox.advance(1)
        assert ("reset", {}) not in events(whole.text)
        sandbox.apply(
            pod("web", cpu=1, namespace="shop"), pod("vault", cpu=2, namespace="treasury")
        )
        sandbox.advance(2)
        requested = running.scheduler.cache.nodes.requested("cpu").tolist()
        told = [0, 0]
        for name, frame in events(whole.text):
            if name == "nodes":
                for row, cpu in zip(frame["rows"], frame["requested"]["cpu"], strict=True):
                    told[row] = cpu
        assert told == requested
        rows = [
            row for name, frame in events(whole.text) if name == "records" for row in frame["rows"]
        ]
        assert {(row["pod"], row["bind"]) for row in rows} >= {("web", "ok"), ("vault", "ok")}
        assert not [word for word in SECRETS if word in shop.text]
        assert '"web"' in shop.text
        counts = [frame["counts"] for name, frame in events(whole.text) if name == "queue"]
        assert counts
        # A node that comes changes the rows: the state has to be read again.
        sandbox.apply(node("node-c"))
        sandbox.advance(2)
        assert events(whole.text)[-1][0] in ("reset", "queue")
        assert ("reset", {}) in events(whole.text)
        for follower in (whole, shop):
            follower.task.cancel()
        sandbox.advance(1)


def test_streams_have_limits() -> None:
    sandbox, running = started_recording(node("a"))
    with sandbox:
        followers = [Follower(sandbox, running) for _ in range(streaming.MAX_STREAMS)]
        sandbox.advance(1)
        over = Follower(sandbox, running)
        sandbox.advance(1)
        assert isinstance(over.task.exception(), Busy)
        sandbox.advance(streaming.LONGEST)
        assert all(follower.task.done() for follower in followers)
        again = Follower(sandbox, running)
        sandbox.advance(1)
        assert not again.task.done()
        again.task.cancel()
        sandbox.advance(1)


def test_a_reader_that_does_not_keep_up_is_told_to_begin_anew() -> None:
    reader = streaming._Reader(WHOLE)
    for number in range(9):
        reader.offer(b"%d" % number)
    assert reader.frames.get_nowait() == streaming.encoded_frame("reset", ResetFrame())


def test_a_slow_loop_is_not_needed_for_answers_that_were_just_given() -> None:
    sandbox, running = started_recording(node("a"))
    with sandbox:
        views = running.lens.views

        async def twice() -> bool:
            first, second = await asyncio.gather(views.state(WHOLE), views.state(WHOLE))
            return first is second

        task = sandbox.loop.create_task(twice())
        sandbox.advance(1)
        assert task.result()


def test_the_slowest_plugins_come_first() -> None:
    metrics = Metrics()
    for plugin, status, seconds in (
        ("Fit", "Success", 0.002),
        ("Fit", "Unschedulable", 0.004),
        ("Taints", "Success", 0.001),
    ):
        for _ in range(2):
            metrics.plugin_duration.labels(plugin, "Filter", status).observe(seconds)
    metrics.plugin_duration.labels("Never", "Filter", "Success")
    first, second = plugin_times(metrics)
    assert (first.plugin, first.point, first.calls, first.mean_us) == ("Fit", "Filter", 4, 3000.0)
    assert (second.plugin, second.mean_us, first.share + second.share) == ("Taints", 1000.0, 1.0)
