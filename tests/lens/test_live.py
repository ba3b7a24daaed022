"""Explanations and snapshots of a running scheduler."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pytest

from mooring import config as cfg
from mooring.api import codec
from mooring.api.scheduling import PriorityClass
from mooring.client.component import Component
from mooring.client.lease import Election
from mooring.cluster.embedded import RunningScheduler
from mooring.framework import PostFilter, Status
from mooring.lens import live, live_explanations
from mooring.lens.explainer import Explainer
from mooring.lens.explanation import plain
from mooring.lens.live import LiveLens
from mooring.lens.live_explanations import NO_PREEMPTION, ExplanationQuery
from mooring.lens.reading import snapshot_of
from mooring.lens.slices import STANDING_BY, Busy
from mooring.lens.snapshot import Snapshot
from mooring.lens.stepwise import StepwisePostFilter
from mooring.observe.metrics import Metrics
from mooring.preemption.all_victims import FEW_NODES
from mooring.scheduler.connected import ConnectedScheduler
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox


def started(
    *objects: Any, record_size: int = 0, **options: Any
) -> tuple[Sandbox, RunningScheduler]:
    sandbox = Sandbox(controllers=False, kubelets=False, **options)
    sandbox.apply(*objects)
    running = sandbox.start_scheduler(record_size=record_size)
    sandbox.advance(1)
    return sandbox, running


def explain(sandbox: Sandbox, lens: LiveLens, key: str, **options: Any) -> Any:
    found = sandbox.loop.create_task(lens.explain(key, ExplanationQuery(**options)))
    for _ in range(100):  # on a busy machine an explanation takes longer, and the pause after it
        sandbox.advance(1)
        if found.done():
            break
    body = found.result()
    return None if body is None else json.loads(body)


def take(sandbox: Sandbox, lens: LiveLens) -> Snapshot:
    async def read() -> bytes:
        return b"".join([chunk async for chunk in lens.snapshot()])

    found = sandbox.loop.create_task(read())
    sandbox.advance(60)
    return snapshot_of(found.result(), "the scheduler")


# --- explanations --------------------------------------------------------------------------------


def test_a_refused_pod_is_explained_by_groups_of_nodes_and_the_queue() -> None:
    sandbox, running = started(
        node("a", cpu=1),
        node("b", cpu=1),
        node("c", taints=["gpu:NoSchedule"]),
        pod("big", cpu=2),
    )
    with sandbox:
        found = explain(sandbox, running.lens, "default/big")
        assert found["format"] == "mooring-explanation"
        groups = {group["said"]["plugin"]: group["nodes"] for group in found["groups"]}
        assert groups == {"NodeResourcesFit": 2, "TaintToleration": 1}
        assert sandbox.why("big") == found["message"]
        assert (found["queue"]["queue"], found["queue"]["attempts"]) == ("unschedulable", 1)
        assert found.get("remedies") is None
        assert found["preemption"]["helps"] is False
        assert found["notes"] == []
        assert found["replica"]["leader"] is True
        brief = explain(sandbox, running.lens, "default/big", preemption=False)
        assert brief["preemption"] is None
        assert brief["notes"] == [NO_PREEMPTION]
        assert sandbox.why("big").startswith(brief["message"])
        assert explain(sandbox, running.lens, "default/absent") is None


def crowded(count: int) -> list[Any]:
    """Nodes that are full, and a pod more important than most that is not tried yet."""
    classes = [
        codec.convert({"metadata": {"name": f"c{value}"}, "value": value}, PriorityClass)
        for value in range(10)
    ]
    nodes = [node(f"n{number:02}", cpu=4) for number in range(count)]
    pods = [
        pod(f"p{number:02}-{half}", cpu=2, on=f"n{number:02}", spec=_of_class(7 * number + half))
        for number in range(count)
        for half in range(2)
    ]
    vip = pod("vip", cpu=3, gates=["wait"], spec=_of_class(9))
    return [*classes, *nodes, *pods, vip]


def _of_class(number: int) -> dict[str, Any]:
    return {"priorityClassName": f"c{number % 10}"}


@pytest.mark.parametrize("count", [live_explanations.AT_ONCE, 60])
def test_evictions_are_tried_out_on_every_node(count: int) -> None:
    """Also where that takes several turns; the answer is that of a snapshot."""
    sandbox, running = started(*crowded(count))
    with sandbox:
        found = explain(sandbox, running.lens, "default/vip")
        snapshot = take(sandbox, running.lens)
        (vip,) = (one for one in snapshot.cluster.pods if one.name == "vip")
        offline = plain(Explainer(snapshot).explain(vip))
        assert found["preemption"]["helps"]
        for field in ("node", "message", "decidedBy", "count"):
            assert found["preemption"][field] == offline["preemption"][field], field
        assert found["message"] == offline["message"]
        assert bool(found["notes"]) == (count > live_explanations.AT_ONCE)
        if found["notes"]:
            assert f"tried out on {count} nodes" in found["notes"][0]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes are left to try after each step."""
    untried: list[int] = []
    step = StepwisePostFilter.step

    def watched(self: StepwisePostFilter, evaluation: Any) -> bool:
        more = step(self, evaluation)
        untried.append(self.untried)
        return more

    monkeypatch.setattr(StepwisePostFilter, "step", watched)
    return untried


def test_a_step_tries_nodes_with_few_pods_together(steps: list[int]) -> None:
    """What a step takes grows with the pods that are added back, on one node after the other."""
    full = [node(f"f{number:02}", cpu=4) for number in range(10)]
    small = [pod(f"s{i:03}", cpu="100m", on=f"f{i // 40:02}") for i in range(400)]
    sandbox, running = started(*crowded(40), *full, *small)
    with sandbox:
        found = explain(sandbox, running.lens, "default/vip")
        assert "tried out on 50 nodes" in found["notes"][0]
    tried = [before - after for before, after in pairwise(steps)]
    assert steps[0] == 50
    assert sum(tried) == 50
    assert max(tried) == FEW_NODES
    assert tried.count(1) >= 9  # one with many pods may be the last beside some with few


def test_a_preemption_that_is_under_way_ends_the_search(steps: list[int]) -> None:
    """The nominated node is tried first, wherever it stands: it decides whether others are."""
    *others, _ = crowded(60)
    vip = pod("vip", cpu=3, gates=["wait"], spec=_of_class(9), nominated="n59")
    sandbox, running = started(*others, vip)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    with sandbox:
        victim = sandbox.get("pod", "p59-0")
        victim["status"]["conditions"] = [target]
        sandbox.apply(victim)
        sandbox.delete("pod", "p59-0")  # no kubelet ends it
        sandbox.advance(1)
        found = explain(sandbox, running.lens, "default/vip")
        assert not found["preemption"]["helps"]
        assert "terminating pod on the nominated node" in found["preemption"]["message"]
    assert len(steps) == 2  # the list of nodes, and the nominated one


def test_decisions_are_made_between_the_steps(steps: list[int]) -> None:
    sandbox, running = started(*crowded(60))
    with sandbox:
        asked = sandbox.loop.create_task(running.lens.explain("default/vip"))
        while not steps:
            sandbox.advance(0.001)
        assert not asked.done()
        sandbox.apply(node("n99", cpu=4), pod("quick", cpu=1))
        sandbox.advance(0.01)
        assert sandbox.node_of("quick") == "n99"
        sandbox.advance(30)
        found = json.loads(asked.result() or b"")
        assert found["feasible"] == 1  # on the new node
        assert len(steps) < 60


def test_a_search_that_would_begin_with_a_long_step_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To count the pods below a priority takes long in a large cluster; an attempt has done so."""
    monkeypatch.setattr(live_explanations, "_FEW_PODS", 10)
    sandbox, running = started(*crowded(60), pod("tried", cpu=3))
    with sandbox:
        assert explain(sandbox, running.lens, "default/vip")["notes"] == [NO_PREEMPTION]
        assert explain(sandbox, running.lens, "default/tried")["preemption"] is not None


class Watching(PostFilter):
    """A plugin of a user that counts its calls."""

    name = "Watching"
    wakes_on = ()
    calls = 0

    def post_filter(self, state: Any, pod: Any, nodes: Any, verdicts: Any) -> Status:
        type(self).calls += 1
        return Status.unschedulable("seen")


def test_post_filter_of_a_user_is_called_in_attempts_alone() -> None:
    enabled = "plugins: {multiPoint: {enabled: [{name: Watching}]}}"
    config = f"{{apiVersion: {cfg.API_VERSION}, kind: {cfg.KIND}, profiles: [{{{enabled}}}]}}"
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        sandbox.apply(node("a", cpu=1), pod("big", cpu=2))
        running = sandbox.start_scheduler(cfg.load_text(config), [Watching])
        sandbox.advance(1)
        before = Watching.calls
        assert before > 0
        found = explain(sandbox, running.lens, "default/big")
        assert found["notes"] == [NO_PREEMPTION]
        assert Watching.calls == before


def test_a_bound_pod_is_explained_and_stays_where_it_is() -> None:
    sandbox, running = started(node("a", cpu=4), node("b", cpu=8), pod("web", cpu=2))
    with sandbox:
        before = running.scheduler.cache.nodes.requested("cpu").tolist()
        found = explain(sandbox, running.lens, "default/web")
        assert (found["kind"], found["node"]) == ("scheduled", "b")
        assert found["feasible"] == 2
        assert running.scheduler.cache.nodes.requested("cpu").tolist() == before
        assert running.scheduler.cache.pod_count == 1


def test_the_matrix_has_a_column_for_each_plugin() -> None:
    sandbox, running = started(
        node("a", cpu=1),
        node("b", cpu=4, taints=["gpu:NoSchedule"]),
        node("c", cpu=4),
        node("d", cpu=8),
        pod("web", cpu=2),
    )
    with sandbox:
        found = explain(sandbox, running.lens, "default/web", matrix=True)["matrix"]
        nodes = found["nodes"]
        assert sorted(nodes) == ["a", "b", "c", "d"]
        refused = {
            name: [node for node, reason in zip(nodes, one["nodes"], strict=True) if reason]
            for name, one in found["refusals"].items()
        }
        assert refused == {"NodeResourcesFit": ["a"], "TaintToleration": ["b"]}
        assert found["refusals"]["NodeResourcesFit"]["reasons"] == ["Insufficient cpu"]
        feasible = [nodes[row] for row in found["feasible"]]
        assert sorted(feasible) == ["c", "d"]
        best = feasible[found["totals"].index(max(found["totals"]))]
        assert best == sandbox.node_of("web") == "d"
        weighted = [0, 0]
        for one in found["points"].values():
            points = one["normalized"] * (2 if len(one["normalized"]) == 1 else 1)
            weighted = [
                sum_ + each * one["weight"] for sum_, each in zip(weighted, points, strict=True)
            ]
        assert weighted == found["totals"]


def test_a_pod_of_another_scheduler_is_explained_with_a_note() -> None:
    sandbox, running = started(node("a"), pod("theirs", scheduler="another"))
    with sandbox:
        found = explain(sandbox, running.lens, "default/theirs")
        assert found["feasible"] == 1
        assert any('"another"' in note for note in found["notes"])


def test_explaining_changes_no_decision_and_no_metric() -> None:
    def placements(*, asks: bool) -> tuple[dict[str, str], float]:
        rng = random.Random(7)
        sandbox, running = started(*[node(f"n{number}", cpu=8) for number in range(10)])
        with sandbox:
            for number in range(60):
                sandbox.apply(pod(f"p{number}", cpu=rng.choice(["500m", "1", "2"])))
                sandbox.advance(1)
                if asks:
                    explain(sandbox, running.lens, f"default/p{rng.randrange(number + 1)}")
                else:
                    rng.randrange(number + 1)
                    sandbox.advance(1)
            counted = sum(way.value for _, way in running.scheduler.metrics.decisions)
            return sandbox.placements(), counted

    assert placements(asks=True) == placements(asks=False)


def test_decisions_have_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def tick() -> float:
        now[0] += 0.005
        return now[0]

    monkeypatch.setattr(live.time, "perf_counter", tick)  # type: ignore[attr-defined]
    sandbox, running = started(node("a"), pod("web"))
    with sandbox:
        asked = [
            sandbox.loop.create_task(running.lens.explain("default/web"))
            for _ in range(live.MAX_WAITING)
        ]
        sandbox.settle()
        assert sum(task.done() for task in asked) == 1
        asked.append(sandbox.loop.create_task(running.lens.explain("default/web")))
        sandbox.settle()
        with pytest.raises(Busy, match="16 explanations are asked for"):
            sandbox.loop.run_until_complete(running.lens.explain("default/web"))
        sandbox.advance(0.9)  # each takes 5 ms of 100
        assert sum(task.done() for task in asked) == 10
        sandbox.advance(1)
        assert all(task.done() for task in asked)


def test_a_replica_that_stands_by_answers_and_says_so() -> None:
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        sandbox.apply(node("a", cpu=1), pod("big", cpu=2))

        def start(name: str) -> tuple[ConnectedScheduler, LiveLens, Any]:
            metrics = Metrics()
            component = Component(
                sandbox.cluster.transport,
                metrics,
                election=Election(name="test"),
                clock=sandbox.clock.now,
                uptime=sandbox.loop.time,
            )
            connected = ConnectedScheduler(component, clock=sandbox.clock, metrics=metrics)
            return connected, LiveLens(connected.scheduler, component), connected.run()

        async def both() -> list[tuple[ConnectedScheduler, LiveLens, Any]]:
            return [start("first"), start("second")]

        replicas = sandbox.loop.run_until_complete(both())
        tasks = [sandbox.loop.create_task(run) for _, _, run in replicas]
        sandbox.advance(5)
        answers = [explain(sandbox, lens, "default/big") for _, lens, _ in replicas]
        assert sorted(answer["replica"]["leader"] for answer in answers) == [False, True]
        for answer in answers:
            leads = answer["replica"]["leader"]
            assert (STANDING_BY in answer["notes"]) is not leads
            assert answer["queue"]["queue"] == ("unschedulable" if leads else "active")
        names = [take(sandbox, lens).scheduler for _, lens, _ in replicas]
        assert sorted(name.endswith("standing by") for name in names) == [False, True]
        for connected, _, _ in replicas:
            connected.component.stop()
        sandbox.advance(5)
        assert all(task.done() for task in tasks)


# --- snapshots -----------------------------------------------------------------------------------


def test_a_snapshot_is_the_cluster_of_the_scheduler() -> None:
    sandbox, running = started(
        *[node(f"n{number}", cpu=4, zone="abc"[number % 3]) for number in range(7)],
        pod("web", cpu=1),
        pod("big", cpu=64),
        pod("gated", gates=["example.com/quota"]),
        pod("theirs", scheduler="another"),
    )
    with sandbox:
        sandbox.delete("node", "n2")
        sandbox.apply(node("n9", zone="a"))
        sandbox.advance(1)
        found = take(sandbox, running.lens)
        names = [one.metadata.name for one in found.cluster.pods]
        assert sorted(names) == ["big", "gated", "theirs", "web"]
        bound = {one.metadata.name: one.spec.node_name for one in found.cluster.pods}
        assert bound["web"] == sandbox.node_of("web") != ""
        queue = {one.queue for one in found.queue or ()}
        assert queue == {"unschedulable", "gated"}
        assert found.at == pytest.approx(sandbox.clock.now(), abs=60)
        assert found.seq == 2
        assert found.scheduler.startswith("mooring ")
        # Nodes are in the order in which ties fall.
        listed = running.scheduler.cache.table.order.names()
        assert [one.metadata.name for one in found.cluster.nodes] == listed
        missing = {one.resource for one in found.missing}
        assert "priorityclasses.scheduling.k8s.io" in missing
        assert "pods" not in missing


def test_pods_on_their_way_are_where_they_go() -> None:
    sandbox, running = started(node("a"))
    with sandbox:
        cache = running.scheduler.cache
        sandbox.apply(pod("web", gates=["wait"]))
        sandbox.advance(1)
        queued = running.scheduler.queue.find("default/web")
        assert queued is not None
        cache.assume(queued.pod, "a")
        found = take(sandbox, running.lens)
        assert [one.spec.node_name for one in found.cluster.pods] == ["a"]


def test_no_more_than_two_snapshots_are_made_at_a_time() -> None:
    sandbox, running = started(node("a"))
    with sandbox:

        async def take_three() -> list[bytes]:
            first, second = running.lens.snapshot(), running.lens.snapshot()
            parts = [await anext(first), await anext(second)]
            with pytest.raises(Busy, match="2 snapshots are being made"):
                await anext(running.lens.snapshot())
            await first.aclose()
            parts.append(await anext(running.lens.snapshot()))
            return parts

        assert len(sandbox.loop.run_until_complete(take_three())) == 3
