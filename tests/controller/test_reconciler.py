"""The reconciler on an embedded cluster and virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unshowable import Parting

from mooring.api import core
from mooring.client.errors import ConflictError
from mooring.controller import (
    Backoff,
    ControllerMetrics,
    LeaderElection,
    Reconciler,
    Requeue,
    TokenBucket,
    WorkQueue,
)
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox


@pytest.fixture
def cluster() -> Iterator[Sandbox]:
    with Sandbox(controllers=False, kubelets=False) as sandbox:
        yield sandbox


class Seen:
    """A reconciler whose work is to write down the keys and do as it is told."""

    def __init__(self, cluster: Sandbox, *, workers: int = 1, takes: float = 0.0) -> None:
        self.keys: list[str] = []
        self.times: list[float] = []
        self.most: int = 0  # at work at once
        self.answers: list[Requeue | Exception | None] = []
        self.metrics: ControllerMetrics = ControllerMetrics()
        self._takes = takes
        self._busy: Counter[str] = Counter()
        self._loop = cluster.loop
        queue: WorkQueue[str] = WorkQueue(
            "seen",
            backoff=Backoff(1.0, 60.0, jitter=0.0),
            rate=TokenBucket(0),
            metrics=self.metrics,
        )
        self.reconciler: Reconciler = Reconciler(
            cluster.cluster.client(),
            self._reconcile,
            name="seen",
            workers=workers,
            queue=queue,
            metrics=self.metrics,
        )

    def start(self, cluster: Sandbox) -> asyncio.Task[None]:
        task = cluster.loop.create_task(self.reconciler.run())

        async def stop() -> None:
            self.reconciler.stop()
            await task

        cluster.cluster.before_close(stop)
        cluster.settle()
        return task

    @property
    def results(self) -> dict[str, float]:
        return {labels[1]: child.value for labels, child in self.metrics.reconciles}

    async def _reconcile(self, key: str) -> Requeue | None:
        self.keys.append(key)
        self.times.append(self._loop.time())
        assert not self._busy[key], f"two workers on {key}"
        self._busy[key] += 1
        self.most = max(self.most, self._busy.total())
        try:
            await asyncio.sleep(self._takes)
        finally:
            self._busy[key] -= 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_looks_at_every_object_that_is_new_changes_or_goes(cluster: Sandbox) -> None:
    seen = Seen(cluster)
    nodes = seen.reconciler.watch(core.Node)
    cluster.apply(node("a"), node("b"))
    seen.start(cluster)
    assert sorted(seen.keys) == ["a", "b"]
    assert {value.name for value in nodes} == {"a", "b"}
    cluster.apply(node("c"))
    cluster.settle()
    cluster.delete("node", "a")
    cluster.settle()
    assert seen.keys[2:] == ["c", "a"]
    assert nodes.get("a") is None
    assert seen.results == {"success": 4}


def test_looks_at_another_object_if_that_is_wanted(cluster: Sandbox) -> None:
    seen = Seen(cluster)
    seen.reconciler.watch(core.Pod, key=lambda value: value.spec.node_name)
    seen.start(cluster)
    cluster.apply(node("a"), pod("p", on="a"), pod("q"))
    cluster.settle()
    assert seen.keys == ["a"]


def test_sees_only_what_it_watches(cluster: Sandbox) -> None:
    seen = Seen(cluster)
    seen.reconciler.watch(core.Pod, namespace="other", labels="app=web")
    seen.start(cluster)
    cluster.apply(
        pod("a", labels={"app": "web"}),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}},
        pod("b", namespace="other", labels={"app": "web"}),
        pod("c", namespace="other"),
    )
    cluster.settle()
    assert seen.keys == ["other/b"]


def test_comes_back_when_it_is_told_to(cluster: Sandbox) -> None:
    seen = Seen(cluster)
    seen.reconciler.watch(core.Node)
    seen.answers = [Requeue(after=30), Requeue(), Requeue(), None]
    cluster.apply(node("a"))
    seen.start(cluster)
    cluster.advance(300)
    assert seen.times == pytest.approx([0, 30, 31, 33])
    assert seen.results == {"requeue_after": 1, "requeue": 2, "success": 1}


def test_tries_again_what_failed_and_says_so_once(
    cluster: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen(cluster)
    seen.reconciler.watch(core.Node)
    seen.answers = [
        RuntimeError("oh"),
        RuntimeError("oh"),
        ConflictError("the object has been modified", code=409),
        None,
        RuntimeError("oh"),
    ]
    cluster.apply(node("a"))
    with caplog.at_level(logging.WARNING):
        seen.start(cluster)
        cluster.advance(100)
        seen.reconciler.queue.add("a")
        cluster.advance(100)
    assert seen.times == pytest.approx([0, 1, 3, 7, 100, 101])  # well in between: it begins anew
    assert [(record.levelname, bool(record.exc_info)) for record in caplog.records] == [
        ("ERROR", True),
        ("WARNING", False),
    ]
    assert seen.results == {"error": 4, "success": 2}


def test_tries_again_what_failed_with_words_that_exit(cluster: Sandbox) -> None:
    seen = Seen(cluster)
    seen.reconciler.watch(core.Node)
    seen.answers = [Parting(), Parting(), None]
    seen.start(cluster)
    cluster.apply(node("a"))
    cluster.advance(10)
    assert seen.keys == ["a", "a", "a"]


@settings(max_examples=20, deadline=None)
@given(workers=st.integers(1, 5), keys=st.lists(st.sampled_from("abcdef"), max_size=30))
def test_works_on_as_many_keys_at_once_as_there_are_workers(workers: int, keys: list[str]) -> None:
    with Sandbox(controllers=False, kubelets=False) as cluster:
        seen = Seen(cluster, workers=workers, takes=1.0)
        seen.start(cluster)
        for key in keys:
            cluster.loop.call_soon(seen.reconciler.queue.add, key)
            cluster.advance(0.1)
        cluster.advance(60)
        assert set(seen.keys) == set(keys)
        assert seen.most <= workers
        assert not len(seen.reconciler.queue)


def test_begins_nothing_before_it_knows_what_there_is(cluster: Sandbox) -> None:
    seen = Seen(cluster)
    seen.reconciler.watch(core.Node)
    cluster.loop.call_soon(seen.reconciler.queue.add, "early")
    work = cluster.loop.create_task(seen.reconciler.run())
    assert seen.keys == []
    cluster.settle()
    assert seen.keys == ["early"]
    seen.reconciler.stop()
    cluster.settle()
    assert work.done()


def test_begins_nothing_while_it_is_held(cluster: Sandbox) -> None:
    seen = Seen(cluster, workers=2)
    seen.reconciler.watch(core.Node)
    seen.start(cluster)
    seen.reconciler.hold("lunch")
    seen.reconciler.hold("rain")
    cluster.apply(node("a"), node("b"), node("c"))
    cluster.advance(60)
    assert seen.keys == []
    seen.reconciler.release("lunch")
    cluster.advance(60)
    assert seen.keys == []
    assert seen.reconciler.holds == {"rain"}
    seen.reconciler.release("rain")
    cluster.settle()
    assert sorted(seen.keys) == ["a", "b", "c"]


def test_ends_what_is_under_way_when_it_is_stopped_and_nothing_else(cluster: Sandbox) -> None:
    seen = Seen(cluster, takes=10.0)
    seen.reconciler.watch(core.Node)
    cluster.apply(node("a"), node("b"))
    work = seen.start(cluster)
    seen.reconciler.stop()
    cluster.advance(9)
    assert not work.done()
    cluster.advance(2)
    assert work.done()
    assert len(seen.keys) == 1


def test_can_be_stopped_while_it_is_held_or_waits_for_a_list(cluster: Sandbox) -> None:
    seen = Seen(cluster)
    seen.reconciler.hold("for ever")
    work = seen.start(cluster)
    seen.reconciler.stop()
    cluster.settle()
    assert work.done()


def test_follows_a_lease(cluster: Sandbox) -> None:
    leading = []
    for number in range(2):
        seen = Seen(cluster)
        seen.reconciler.hold("not leading")
        election = LeaderElection(
            cluster.cluster.client(),
            namespace="kube-system",
            name="seen",
            identity=f"replica-{number}",
            on_started=lambda seen=seen: seen.reconciler.release("not leading"),  # type: ignore[misc]  # a default
            on_stopped=lambda why, seen=seen: seen.reconciler.hold("not leading"),  # type: ignore[misc]  # likewise
            now=cluster.loop.time,
            wall=cluster.clock.now,
        )
        work = cluster.loop.create_task(election.run())

        async def stop(work: asyncio.Task[object] = work) -> None:
            work.cancel()
            await asyncio.wait([work])

        cluster.cluster.before_close(stop)
        seen.reconciler.watch(core.Node)
        seen.start(cluster)
        leading.append(seen)
    cluster.apply(node("a"))
    cluster.advance(5)
    assert [seen.keys for seen in leading] == [["a"], []]


def test_refuses_to_have_nobody_at_work(cluster: Sandbox) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Seen(cluster, workers=0)
