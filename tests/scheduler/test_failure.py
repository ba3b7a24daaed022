"""What happens to a pod after an attempt that failed, and to the others because of it."""

from typing import Any

import pytest
from tests.scheduler.recording import Log, notes, place, probe, reason, rejectors, world

import mooring.framework as fw
from mooring.api.meta import Condition
from mooring.client.errors import Fenced
from mooring.client.event_series import truncated
from mooring.errors import ApiError
from mooring.framework import OK, SKIP, Status, Wait
from mooring.simulator import Simulation
from mooring.testing.builders import node, pod

FIT = ("PrioritySort", "NodeResourcesFit", "DefaultBinder")


def refuse_to_patch(sim: Simulation) -> None:
    """The API server takes no status any more."""

    async def broken(pod: fw.Pod, condition: Condition | None, nominated_node: str | None) -> None:
        raise ApiError("not now")

    sim.cluster.patch_pod_status = broken  # type: ignore[method-assign]  # the server is replaced


async def tomorrow(self: Any, *_: Any) -> Status:
    await self.handle.clock.sleep(5)
    return OK


def test_queues_the_latest_version_of_the_pod_again() -> None:
    log: Log = []

    def late(self: Any, state: Any, pod: Any, node_name: str) -> Any:
        async def wait() -> Status:
            await self.handle.clock.sleep(5)
            return Status.error("broke")

        return wait()

    with world(probe("First", log, pre_bind=late)) as sim:
        refuse_to_patch(sim)  # what is written would come back as a version of its own
        sim.schedule(pod("p", uid="1", labels={"v": "old"}))
        sim.apply(pod("p", uid="1", labels={"v": "new"}))
        sim.settle()
        sim.advance(5)
        assert place(sim, "p") == "error backoff"
        [waiting] = sim.scheduler.queue.pending()["backoff"]
        assert waiting.labels == {"v": "new"}
        sim.advance(2)
        assert sim.attempts[-1].pod.labels == {"v": "new"}
        assert sim.attempts[-1].number == 2


def test_says_nothing_about_a_pod_that_was_deleted_meanwhile_and_does_not_queue_it() -> None:
    log: Log = []
    with world(probe("First", log, pre_bind=tomorrow), nodes=["a"]) as sim:
        goner = pod("p", cpu=3)
        sim.schedule(goner)
        sim.delete(goner)
        sim.settle()
        assert sim.scheduler.cache.nodes.requested("cpu").tolist() == [0]
        sim.advance(60)
        assert len(sim.scheduler.queue) == 0
        assert len(sim.attempts) == 1
        assert notes(sim, "p") == []
        assert "First.unreserve" in log


def test_says_nothing_about_a_pod_whose_name_belongs_to_another_now() -> None:
    log: Log = []
    with world(probe("First", log, pre_bind=tomorrow), nodes=["a"]) as sim:
        sim.schedule(pod("p", uid="old", cpu=3))
        sim.apply(pod("p", uid="new", cpu=1))
        sim.settle()
        assert sim.scheduler.cache.nodes.requested("cpu").tolist() == [1000]
        sim.advance(5)
        assert sim.node_of("p") == "a"
        assert sim.scheduler.cache.nodes.requested("cpu").tolist() == [1000]
        assert log.count("First.unreserve") == 1
        assert notes(sim, "p") == ["Scheduled: Successfully assigned default/p to a"]
        assert sim.why("p") == ""


def test_does_not_queue_a_pod_again_that_somebody_else_bound() -> None:
    log: Log = []
    with world(probe("First", log, pre_bind=tomorrow), nodes=["a", "b"]) as sim:
        sim.schedule(pod("p", uid="1", cpu=1))
        sim.apply(pod("p", uid="1", cpu=1, on="b"))
        sim.settle()
        sim.advance(60)
        assert len(sim.scheduler.queue) == 0
        assert len(sim.attempts) == 1
        assert sim.scheduler.cache.nodes.requested("cpu").tolist() == [0, 1000]


HOLIDAY = ApiError("etcd is on holiday")


def refuse_to_bind(sim: Simulation, times: int, error: ApiError = HOLIDAY) -> None:
    """The next bindings fail."""
    bind, failures = sim.cluster.bind, iter(range(times))

    async def flaky(binding: Any) -> None:
        if next(failures, None) is not None:
            raise error
        await bind(binding)

    sim.cluster.bind = flaky  # type: ignore[method-assign]  # the server is what we replace


def test_retries_after_a_binding_that_failed_at_longer_and_longer_intervals() -> None:
    log: Log = []
    with world(probe("First", log)) as sim:
        refuse_to_bind(sim, 5)
        sim.schedule(pod("p", cpu=1))
        assert sim.why("p") == 'running Bind plugin "DefaultBinder": etcd is on holiday'
        assert reason(sim, "p") == "SchedulerError"
        assert place(sim, "p") == "error backoff"
        assert rejectors(sim, "p") == ""
        assert "First.unreserve" in log
        assert sim.scheduler.cache.pod_count == 0
        tried: list[int] = []
        for second in range(40):
            while len(sim.attempts) > len(tried):
                tried.append(second)
            sim.advance(1)
        # The second in which a backoff ends still belongs to it.
        assert tried == [0, 2, 5, 10, 19, 30]
        assert sim.node_of("p") == "a"


def test_tells_nobody_of_a_bind_that_was_no_longer_its_own_to_make() -> None:
    with world(probe("First", [])) as sim:
        refuse_to_bind(sim, 1, Fenced("another replica leads"))
        sim.schedule(pod("p", cpu=1))
        assert place(sim, "p") == "error backoff"
        assert sim.scheduler.cache.pod_count == 0
        assert (notes(sim, "p"), sim.why("p")) == ([], "")
        sim.advance(5)
        assert sim.node_of("p") == "a"


def test_writes_the_status_only_when_it_says_something_new() -> None:
    log: Log = []
    with world(probe("First", log, filter=Status.unschedulable("full"))) as sim:
        written: list[tuple[Condition | None, str | None]] = []
        patch = sim.cluster.patch_pod_status

        async def count(
            pod: fw.Pod, condition: Condition | None, nominated_node: str | None
        ) -> None:
            written.append((condition, nominated_node))
            await patch(pod, condition, nominated_node)

        sim.cluster.patch_pod_status = count  # type: ignore[method-assign]  # to listen in
        sim.schedule(pod("p"))
        sim.apply(node("b", labels={"x": "y"}))
        for _ in range(3):
            sim.scheduler.queue.activate(["default/p"])
            sim.settle()
        assert len(sim.attempts) == 4
        assert len(written) == 1
        assert written[0][0] is not None
        assert written[0][0].message == "0/2 nodes are available: 2 full."
        assert written[0][1] is None
        sim.apply(node("c"))
        sim.settle()
        assert [c.message for c, _ in written if c] == [
            "0/2 nodes are available: 2 full.",
            "0/3 nodes are available: 3 full.",
        ]
        assert len(notes(sim, "p")) == 5


def test_a_status_that_cannot_be_written_costs_nothing_else() -> None:
    log: Log = []
    with world(probe("First", log, filter=Status.unschedulable("full"))) as sim:
        refuse_to_patch(sim)
        sim.schedule(pod("p"))
        assert place(sim, "p") == "unschedulable"


def test_an_event_holds_what_fits_and_the_condition_holds_everything() -> None:
    log: Log = []
    reason = "ä" * 1000
    with world(probe("First", log, filter=Status.unschedulable(reason))) as sim:
        sim.schedule(pod("p"))
        full = f"0/2 nodes are available: 2 {reason}."
        assert sim.why("p") == full
        [note] = [event.note for event in sim.events]
        assert note.endswith("ä ...")
        assert len(note.encode()) in (1023, 1024)
        assert full.startswith(note.removesuffix(" ..."))


@pytest.mark.parametrize(
    ("note", "kept"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1020 + " ..."),
        ("ä" * 512, "ä" * 512),
        ("x" + "ä" * 512, "x" + "ä" * 509 + " ..."),
    ],
)
def test_a_note_is_cut_by_bytes_between_letters(note: str, kept: str) -> None:
    assert truncated(note) == kept


def test_a_pod_can_wake_others_when_it_gets_its_place() -> None:
    log: Log = []

    def waker(self: Any, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Status:
        state.pods_to_activate.add("default/sleeper")
        return OK

    def sleepy(self: Any, state: Any, pod: fw.Pod, node: Any) -> Status:
        asleep = pod.name == "sleeper" and log.count("First.reserve") == 0
        return Status.unschedulable("asleep") if asleep else OK

    for point in ("reserve", "pre_bind"):
        log.clear()
        with world(probe("First", log, filter=sleepy, **{point: waker})) as sim:
            sim.schedule(pod("sleeper"))
            assert place(sim, "sleeper") == "unschedulable"
            sim.schedule(pod("prince"))
            assert sim.node_of("sleeper") != ""


def test_does_not_wake_others_when_it_fails() -> None:
    log: Log = []

    def waker(self: Any, state: fw.CycleState, pod: fw.Pod, node_name: str) -> Status:
        state.pods_to_activate.add("default/sleeper")
        return Status.unschedulable("no")

    with world(
        probe("First", log, reserve=waker),
        probe(
            "Gate",
            log,
            pre_enqueue=lambda self, pod: Status.unschedulable() if pod.name == "sleeper" else OK,
        ),
    ) as sim:
        sim.schedule(pod("sleeper"))
        log.clear()
        sim.schedule(pod("p"))
        assert log.count("Gate.pre_enqueue") == 1


def test_a_binding_that_fails_wakes_those_who_need_the_room() -> None:
    log: Log = []

    def late(self: Any, state: Any, pod: fw.Pod, node_name: str) -> Any:
        async def wait() -> Status:
            await self.handle.clock.sleep(5)
            return Status.error("broke")

        return wait() if pod.name == "first" else OK

    with world(probe("First", log, pre_bind=late), nodes=["a"], with_plugins=FIT) as sim:
        sim.schedule(pod("first", cpu=3))
        sim.schedule(pod("second", cpu=3))
        assert place(sim, "second") == "unschedulable"
        sim.advance(5)
        assert sim.node_of("second") == "a"
        assert place(sim, "first") == "error backoff"


def test_a_rejection_while_waiting_wakes_others_but_not_the_pod_itself() -> None:
    log: Log = []
    deletions = (fw.Event.POD_DELETED,)

    def patient(self: Any, state: Any, pod: fw.Pod, node_name: str) -> object:
        return Wait(5) if pod.name == "first" else OK

    first = probe("First", log, permit=patient, wakes_on=deletions)
    with world(first, nodes=["a"], with_plugins=FIT) as sim:
        refuse_to_patch(sim)  # a nomination that is withdrawn would be an event by itself
        sim.schedule(pod("first", cpu=3))
        sim.schedule(pod("second", cpu=3))
        sim.advance(5)
        assert sim.node_of("second") == "a"
        assert place(sim, "first") == "unschedulable"
        assert len(sim.attempts) == 3
        assert rejectors(sim, "first") == "First"


def test_a_rejection_after_permit_is_retried_after_a_while_without_any_event() -> None:
    log: Log = []
    answers = iter([Status.unschedulable("not yet"), SKIP])
    with world(probe("First", log, bind=lambda *_: next(answers))) as sim:
        sim.schedule(pod("p"))
        assert (reason(sim, "p"), sim.why("p")) == ("Unschedulable", "not yet")
        assert place(sim, "p") == "error backoff"
        sim.advance(2)
        assert sim.node_of("p") == "a"
