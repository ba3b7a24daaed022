"""Every status code at every point after the choice of a node."""

import asyncio
from typing import Any, NamedTuple

import pytest
from tests.scheduler.recording import (
    Log,
    after,
    notes,
    place,
    probe,
    reason,
    rejectors,
    world,
)

from mooring.framework import OK, SKIP, Code, Status
from mooring.framework._internal import InternalPlugin
from mooring.testing.builders import node, pod

UNDONE = "Second.unreserve First.unreserve"
POST_BOUND = "First.post_bind Second.post_bind"
BOUND = f"First.bind Second.bind {POST_BOUND}"
PRE_BOUND = f"First.pre_bind Second.pre_bind {BOUND}"
PERMITTED = f"First.pre_flight Second.pre_flight {PRE_BOUND}"


class Row(NamedTuple):
    """What follows from a code: the calls, where the pod is, why, and who may wake it."""

    calls: str
    place: str
    why: str = ""
    reason: str = ""
    rejectors: str = ""


def error(calls: str, why: str) -> Row:
    return Row(f"{calls} {UNDONE}", "error backoff", why, "SchedulerError")


def refusal(calls: str, rejectors: str = "First") -> Row:
    why = "0/1 nodes are available: 1 no way."
    return Row(f"{calls} {UNDONE}", "unschedulable", why, "Unschedulable", rejectors)


def late_refusal(calls: str) -> Row:
    """After Permit nobody is to be woken by an event: the pod is tried again after a while."""
    return Row(f"{calls} {UNDONE}", "error backoff", "no way", "Unschedulable")


RESERVED = "First.reserve Second.reserve First.permit Second.permit"
RESERVE_ERROR = error("First.reserve", 'running Reserve plugin "First": no way')
PERMIT_ERROR = error("First.permit", 'running Permit plugin "First": no way')
PRE_BIND_ERROR = error("First.pre_bind", 'running PreBind plugin "First": no way')
BIND_ERROR = error("First.bind", 'running Bind plugin "First": no way')


def unsupported(code: Code) -> Row:
    text = f'PreBindPreFlight First returned "{code.label}", which is unsupported. '
    return error(
        "First.pre_flight", text + "It is supposed to return Success, Skip, or Error status"
    )


MATRIX = {
    "reserve": {
        Code.SUCCESS: Row(f"{RESERVED} {PERMITTED}", "a"),
        Code.ERROR: RESERVE_ERROR,
        Code.UNSCHEDULABLE: refusal("First.reserve"),
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE: refusal("First.reserve"),
        Code.WAIT: RESERVE_ERROR,
        Code.SKIP: RESERVE_ERROR,
        Code.PENDING: refusal("First.reserve", "[First]"),
    },
    "permit": {
        Code.SUCCESS: Row(f"First.permit Second.permit {PERMITTED}", "a"),
        Code.ERROR: PERMIT_ERROR,
        Code.UNSCHEDULABLE: refusal("First.permit"),
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE: refusal("First.permit"),
        # A status can't say how long to wait, so the time is over at once.
        Code.WAIT: refusal(
            "First.permit Second.permit First.pre_flight Second.pre_flight"
        )._replace(
            why="0/1 nodes are available: "
            "1 rejected due to timeout after waiting 0s at plugin First."
        ),
        Code.SKIP: PERMIT_ERROR,
        Code.PENDING: refusal("First.permit", "[First]"),
    },
    "pre_flight": {
        Code.SUCCESS: Row(PERMITTED, "a"),
        Code.ERROR: error("First.pre_flight", 'running PreBindPreFlight "First": no way'),
        Code.UNSCHEDULABLE: unsupported(Code.UNSCHEDULABLE),
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE: unsupported(Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        Code.WAIT: unsupported(Code.WAIT),
        Code.SKIP: Row(f"First.pre_flight Second.pre_flight Second.pre_bind {BOUND}", "a"),
        Code.PENDING: unsupported(Code.PENDING),
    },
    "pre_bind": {
        Code.SUCCESS: Row(PRE_BOUND, "a"),
        Code.ERROR: PRE_BIND_ERROR,
        Code.UNSCHEDULABLE: late_refusal("First.pre_bind"),
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE: late_refusal("First.pre_bind"),
        Code.WAIT: PRE_BIND_ERROR,
        Code.SKIP: PRE_BIND_ERROR,
        Code.PENDING: late_refusal("First.pre_bind"),
    },
    "bind": {
        Code.SUCCESS: Row(f"First.bind {POST_BOUND}", "None"),
        Code.ERROR: BIND_ERROR,
        Code.UNSCHEDULABLE: late_refusal("First.bind"),
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE: late_refusal("First.bind"),
        Code.WAIT: BIND_ERROR,
        Code.SKIP: Row(BOUND, "a"),
        Code.PENDING: late_refusal("First.bind"),
    },
    "post_bind": {code: Row(POST_BOUND, "a") for code in Code},
}


@pytest.mark.parametrize("code", Code)
@pytest.mark.parametrize("point", MATRIX)
def test_each_code_has_its_consequence_at_each_point(point: str, code: Code) -> None:
    log: Log = []
    row = MATRIX[point][code]
    first = probe("First", log, **{point: Status(code, ("no way",))})
    with world(first, probe("Second", log)) as sim:
        sim.schedule(pod("p", cpu=1))
        assert after(log, point) == row.calls
        assert str(place(sim, "p")) == row.place
        assert sim.why("p") == row.why
        assert reason(sim, "p") == row.reason
        assert rejectors(sim, "p") == row.rejectors
        assert "First.post_filter" not in log
        failed = bool(row.why)
        assert sim.scheduler.cache.pod_count == (0 if failed else 1)
        assert notes(sim, "p") == [
            f"FailedScheduling: {row.why}"
            if failed
            else "Scheduled: Successfully assigned default/p to a"
        ]


@pytest.mark.parametrize("point", ["reserve", "permit"])
def test_the_second_plugin_is_undone_as_well_when_it_fails_itself(point: str) -> None:
    log: Log = []
    second = probe("Second", log, **{point: Status.unschedulable("no way")})
    with world(probe("First", log), second, probe("Third", log)) as sim:
        sim.schedule(pod("p"))
        assert after(log, point) == (
            f"First.{point} Second.{point} Third.unreserve Second.unreserve First.unreserve"
        )
        assert rejectors(sim, "p") == "Second"


def test_unreserve_reaches_everybody_although_one_raises() -> None:
    log: Log = []

    def raising(*_: Any) -> None:
        raise SystemExit("me first")

    second = probe("Second", log, unreserve=raising)
    first = probe("First", log, permit=Status.unschedulable("no way"))
    with world(first, second) as sim:
        sim.schedule(pod("p"))
        assert after(log, "permit") == "First.permit Second.unreserve First.unreserve"
        assert sim.why("p") == "0/1 nodes are available: 1 no way."
        assert sim.scheduler.cache.pod_count == 0


def test_binds_nobody_when_every_bind_plugin_skips() -> None:
    log: Log = []
    with world(probe("First", log), probe("Second", log), with_plugins=["PrioritySort"]) as sim:
        sim.schedule(pod("p"))
        assert after(log, "bind") == f"First.bind Second.bind {UNDONE}"
        assert place(sim, "p") == "error backoff"
        assert reason(sim, "p") == "SchedulerError"
        assert "skipped" in sim.why("p")


def test_skips_pre_bind_altogether_when_every_plugin_has_nothing_to_do() -> None:
    log: Log = []
    first, second = probe("First", log, pre_flight=SKIP), probe("Second", log, pre_flight=SKIP)
    with world(first, second) as sim:
        sim.schedule(pod("p"))
        assert after(log, "pre_flight") == f"First.pre_flight Second.pre_flight {BOUND}"


def test_a_plugin_that_does_not_apply_is_left_out_from_pre_filter_to_pre_bind() -> None:
    log: Log = []
    first = probe("First", log)
    second = probe("Second", log)
    first.applies_to = lambda self, pod: pod.name != "p"  # type: ignore[method-assign] # of a class
    with world(first, second) as sim:
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "a"
        for point in ("pre_filter", "filter", "reserve", "permit", "pre_flight", "pre_bind"):
            assert f"First.{point}" not in log
            assert f"Second.{point}" in log
        sim.schedule(pod("q"))
        assert "First.reserve" in log


def test_a_plugin_whose_skip_is_final_has_nothing_to_reserve_or_to_prepare() -> None:
    log: Log = []
    first = probe("First", log, pre_filter=SKIP)
    final = type("First", (InternalPlugin, first), {"skip_is_final": True})
    with world(final, probe("Second", log, pre_filter=SKIP)) as sim:
        sim.schedule(pod("p"))
        assert sim.node_of("p") == "a"
    for point in ("reserve", "permit", "pre_flight", "pre_bind"):
        assert f"First.{point}" not in log
        assert f"Second.{point}" in log


def test_announces_the_node_only_when_binding_will_take_a_while() -> None:
    seen: list[str] = []
    log: Log = []

    def look(self: Any, state: Any, pod: Any, node_name: str) -> Status:
        seen.append(sim.pod(pod.name).status.nominated_node_name)
        return SKIP

    for flight in (OK, SKIP):
        with world(probe("First", log, pre_flight=flight, bind=look)) as sim:
            sim.schedule(pod("p"))
            assert sim.node_of("p") == "a"
            assert sim.pod("p").status.nominated_node_name == ""
    assert seen == ["a", ""]


def sleeping(seconds: float, answer: Status = OK) -> Any:
    async def pre_bind(self: Any, *_: Any) -> Status:
        try:
            await self.handle.clock.sleep(seconds)
        except asyncio.CancelledError:
            self.log.append(f"{self.name}.cancelled")
            raise
        self.log.append(f"{self.name}.done")
        return answer

    return pre_bind


def test_runs_neighbours_that_allow_it_at_the_same_time() -> None:
    log: Log = []
    names = (("A", True), ("B", True), ("C", False), ("D", True))
    classes = [
        probe(name, log, parallel=parallel, pre_bind=sleeping(1)) for name, parallel in names
    ]
    with world(*classes) as sim:
        sim.schedule(pod("p"))
        sim.advance(2.5)
        assert after(log, "pre_bind") == (
            "A.pre_bind B.pre_bind A.done B.done C.pre_bind C.done D.pre_bind"
        )
        sim.advance(1)
        assert sim.node_of("p") == "a"


def test_a_skipped_plugin_that_stands_alone_still_divides_its_neighbours() -> None:
    log: Log = []
    classes = [
        probe("A", log, parallel=True, pre_bind=sleeping(1)),
        probe("B", log, pre_flight=SKIP),
        probe("C", log, parallel=True, pre_bind=sleeping(1)),
    ]
    with world(*classes) as sim:
        sim.schedule(pod("p"))
        sim.advance(1.5)
        assert after(log, "pre_bind") == "A.pre_bind A.done C.pre_bind"


def test_the_first_failure_of_a_group_cancels_the_others() -> None:
    log: Log = []
    slow = probe("Slow", log, parallel=True, pre_bind=sleeping(9))
    quick = probe("Quick", log, parallel=True, pre_bind=sleeping(1, Status.error("no way")))
    later = probe("Later", log)
    with world(slow, quick, later) as sim:
        sim.schedule(pod("p"))
        sim.advance(1)
        assert after(log, "pre_bind") == (
            "Slow.pre_bind Quick.pre_bind Quick.done Slow.cancelled "
            "Later.unreserve Quick.unreserve Slow.unreserve"
        )
        assert sim.why("p") == 'running PreBind plugin "Quick": no way'
        assert place(sim, "p") == "error backoff"


def test_decides_for_the_next_pod_while_one_is_being_bound() -> None:
    log: Log = []
    with world(probe("First", log, pre_bind=sleeping(5)), nodes=[]) as sim:
        sim.apply(node("a", max_pods=2))
        sim.schedule(pod("p"), pod("q"))
        assert [attempt.pod.name for attempt in sim.attempts] == ["p", "q"]
        assert sim.placements() == {"p": "", "q": ""}
        sim.advance(5)
        assert sim.placements() == {"p": "a", "q": "a"}
