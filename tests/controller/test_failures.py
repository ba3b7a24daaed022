"""Lost answers, rivals, missing rights and lost leases: each pod is bound exactly once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faulty_transport import Asked, Fault, FaultyTransport, Refuse, Vanish

import mooring.framework as fw
from mooring.api.core import Binding
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.client.client import ApiClient
from mooring.client.errors import ConflictError
from mooring.client.transport import Transport
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import StoreChange
from mooring.controller import Election, Options, Runner, controller
from mooring.testing import pod
from mooring.testing.sandbox import Sandbox

NAME = "mine"
PATIENCE = 1000.0
LOST_REQUEST = Vanish()
LOST_ANSWER = Vanish("connection reset by peer", done=True)
BROKEN = Refuse(500, message="etcdserver: request timed out")
BROKEN_AFTER = Refuse(500, message="etcdserver: request timed out", done=True)
FATES = (None, LOST_REQUEST, LOST_ANSWER, BROKEN, BROKEN_AFTER)


def is_bind(asked: Asked) -> bool:
    return asked.line == "POST binding"


@controller(scheduler_name=NAME)
def anywhere(pod: fw.Pod, nodes: fw.Nodes) -> str:
    return random.Random(pod.name).choice(nodes).name


class Trouble:
    """A cluster whose requests meet a fate, and a record of every bind that was carried out."""

    def __init__(self, nodes: int = 3) -> None:
        self.sandbox: Sandbox = Sandbox(controllers=False, kubelets=False)
        self.fate: Callable[[Asked], Fault | None] = lambda asked: None
        self.bound: Counter[str] = Counter()  # uid -> how often it was given a node
        self.sandbox.cluster.store.listen(self._listen)
        self.sandbox.add_nodes(nodes)

    def connect(self) -> Transport:
        transport = FaultyTransport(self.sandbox.cluster.transport())
        transport.fault = lambda asked: None if asked.verb == "watch" else self.fate(asked)
        return transport

    def start(self, options: Options | None = None) -> Runner:
        loop, clock = self.sandbox.loop, self.sandbox.clock
        runner = Runner(
            anywhere,
            self.connect,
            options,
            clock=clock.now,
            uptime=loop.time,
            rng=random.Random(3),
            host="h",
        )
        task = loop.create_task(runner.run())

        async def stop() -> None:
            runner.stop()
            await task

        self.sandbox.cluster.before_close(stop)
        self.sandbox.settle()
        return runner

    def binds(self, runner: Runner) -> dict[str, float]:
        """What the controller counted."""
        return {labels[1]: child.value for labels, child in runner.metrics.binds}

    def _listen(self, change: StoreChange) -> None:
        if change.resource == known("pods").key:
            before = change.old.fields["spec.nodeName"] if change.old is not None else ""
            now = change.new.fields["spec.nodeName"]
            if change.type != "DELETED" and now != before:
                self.bound[change.new.name] += 1


@pytest.fixture
def trouble() -> Iterator[Trouble]:
    made = Trouble()
    yield made
    made.sandbox.close()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(), share=st.floats(0, 0.9))
def test_binds_each_pod_once_whatever_happens_to_requests(seed: int, share: float) -> None:
    dice = random.Random(seed)
    trouble = Trouble()
    try:
        cluster = trouble.sandbox

        def fate(asked: Asked) -> Fault | None:
            return dice.choice(FATES) if dice.random() < share else None

        trouble.fate = fate
        runner = trouble.start()
        cluster.apply(*[pod(f"p{i}", scheduler=NAME) for i in range(12)])
        cluster.wait_until_bound(seconds=PATIENCE)
        cluster.wait_until(lambda: runner.view.cache.assumed_count == 0, PATIENCE)
        assert set(trouble.bound.values()) == {1}
        expected = {f"p{i}": random.Random(f"p{i}") for i in range(12)}
        names = tuple(f"node-{i}" for i in range(3))
        assert cluster.placements() == {key: d.choice(names) for key, d in expected.items()}
    finally:
        trouble.fate = lambda asked: None
        trouble.sandbox.close()


def test_waits_for_a_server_that_is_away_and_goes_on(trouble: Trouble) -> None:
    cluster = trouble.sandbox
    trouble.start()
    trouble.fate = lambda asked: LOST_REQUEST
    cluster.apply(*[pod(f"p{i}", scheduler=NAME) for i in range(20)])
    cluster.advance(600)
    assert not trouble.bound
    trouble.fate = lambda asked: None
    cluster.wait_until_bound(seconds=60)
    assert set(trouble.bound.values()) == {1}


def test_forgets_a_pod_that_a_rival_has_bound(trouble: Trouble) -> None:
    cluster = trouble.sandbox

    def overtake(asked: Asked) -> None:
        if is_bind(asked):
            name = asked.path.split("/")[-2]
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-0"}}
            cluster.cluster.server.verbs.bind("default", name, binding)

    trouble.fate = overtake
    runner = trouble.start()
    cluster.apply(*[pod(f"p{i}", scheduler=NAME) for i in range(10)])
    cluster.advance(300)
    assert set(cluster.placements().values()) == {"node-0"}
    assert set(trouble.bound.values()) == {1}
    ours = sum(random.Random(f"p{i}").choice(range(3)) == 0 for i in range(10))
    assert trouble.binds(runner) == {"conflict": 10 - ours, "bound": ours}
    assert runner.view.cache.assumed_count == 0
    assert sum(cluster.cluster.store.count(known(kind)) for kind in ["events"]) == ours


def test_forgets_a_pod_that_is_deleted_before_it_could_be_bound(trouble: Trouble) -> None:
    cluster = trouble.sandbox
    runner = trouble.start()
    trouble.fate = lambda asked: LOST_REQUEST if is_bind(asked) else None
    cluster.apply(pod("p", scheduler=NAME))
    cluster.advance(1)
    assert runner.view.cache.assumed_count == 1
    cluster.delete("pod", "p", grace=0)
    trouble.fate = lambda asked: None
    cluster.advance(10)
    assert trouble.binds(runner) == {"gone": 1}
    assert runner.view.cache.assumed_count == 0


def test_says_which_right_is_missing_and_goes_on_when_it_is_there(trouble: Trouble) -> None:
    cluster = trouble.sandbox
    forbidden = Refuse(403, message="pods is forbidden: cannot create pods/binding")
    trouble.fate = lambda asked: forbidden if is_bind(asked) else None
    runner = trouble.start()
    cluster.apply(pod("p", scheduler=NAME))
    cluster.advance(5)
    told = cluster.events("p", "FailedScheduling")[0].message
    assert "could not be bound to node" in told
    assert "cannot create pods/binding" in told
    assert runner.view.cache.assumed_count == 0
    trouble.fate = lambda asked: None
    cluster.wait_until_bound("p", seconds=60)
    assert trouble.bound == {"p": 1}


def test_one_of_two_replicas_works_and_the_other_takes_over(trouble: Trouble) -> None:
    cluster = trouble.sandbox
    options = Options(election=Election(name=NAME))
    first, second = trouble.start(options), trouble.start(options)
    assert first.election is not None
    assert second.election is not None
    cluster.apply(*[pod(f"a{i}", scheduler=NAME) for i in range(5)])
    cluster.wait_until_bound()
    assert (first.election.is_leader, second.election.is_leader) == (True, False)
    assert trouble.binds(first) == {"bound": 5}

    first.stop()
    cluster.apply(*[pod(f"b{i}", scheduler=NAME) for i in range(5)])
    cluster.wait_until_bound(seconds=10)
    assert trouble.binds(second) == {"bound": 5}
    assert set(trouble.bound.values()) == {1}


def test_a_leader_whose_lease_is_lost_sends_nothing_more(trouble: Trouble) -> None:
    cluster = trouble.sandbox
    runner = trouble.start(Options(election=Election(name=NAME)))
    cluster.apply(pod("before", scheduler=NAME))
    cluster.wait_until_bound("before")
    assert runner.election is not None

    # The lease can't be renewed, and a bind is kept waiting until the term is over.
    def fate(asked: Asked) -> Fault | None:
        return LOST_REQUEST if is_bind(asked) or "leases" in asked.path else None

    trouble.fate = fate
    cluster.apply(pod("after", scheduler=NAME))
    cluster.advance(30)
    assert not runner.election.is_leader
    trouble.fate = lambda asked: LOST_REQUEST if "leases" in asked.path else None
    cluster.advance(60)
    assert cluster.node_of("after") == ""
    assert trouble.binds(runner) == {"bound": 1, "fenced": 1}
    assert runner.view.cache.assumed_count == 0

    trouble.fate = lambda asked: None
    cluster.wait_until_bound("after", seconds=60)
    assert trouble.bound == {"before": 1, "after": 1}


def test_a_rival_meets_the_refusal_that_we_would_meet(trouble: Trouble) -> None:
    """That a second Binding is refused is what all of this rests on."""
    cluster = trouble.sandbox
    trouble.start()
    cluster.apply(pod("p", scheduler=NAME))
    cluster.wait_until_bound("p")
    meta = ObjectMeta(name="p", namespace="default")
    second = Binding(metadata=meta, target=ObjectReference(kind="Node", name="node-1"))
    task = cluster.loop.create_task(ApiClient(cluster.cluster.transport()).bind(second))
    cluster.settle()
    assert isinstance(task.exception(), ConflictError)
