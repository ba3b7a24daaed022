"""The record: every attempt, whichever way it was decided, and nothing changed by it."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.framework.status import OK, Status
from mooring.lens import record as recording
from mooring.lens.api import RecordRow
from mooring.lens.record import DecisionRecord
from mooring.lens.record_entry import RecordEntry, row_of
from mooring.lens.state import at_once
from mooring.simulator import Simulation
from mooring.testing import node, pod


def recorded(sim: Simulation, **options: Any) -> DecisionRecord:
    found = DecisionRecord(sim.clock.now, **options)
    sim.scheduler.ledger = found
    return found


def rows(record: DecisionRecord, limit: int = 1_000_000, **options: Any) -> list[RecordRow]:
    return at_once(record.select(lambda row: True, limit, **options))


def test_a_bound_pod_has_one_row_with_its_bind() -> None:
    with Simulation(keep_attempts=False) as sim:
        record = recorded(sim, margins=True)
        sim.apply(node("a", cpu=4), node("b", cpu=2))
        sim.advance(5)
        sim.schedule(pod("web", cpu=1, namespace="shop"))
        (row,) = rows(record)
    assert (row.namespace, row.pod, row.node, row.outcome) == ("shop", "web", "a", "scheduled")
    assert (row.seq, row.attempt, row.evaluated, row.feasible) == (1, 1, 2, 2)
    assert (row.way, row.woken_by, row.profile) == (
        "class",
        "UnschedulablePodAdd",
        "default-scheduler",
    )
    assert (row.runner_up, row.bind, row.message) == ("b", "ok", "")
    assert row.margin is not None
    assert row.margin > 0
    assert row.bind_us is not None
    assert row.queued_at is not None
    assert row.queued_at <= row.at


def test_refusals_nominations_and_nominated_pods() -> None:
    with Simulation(keep_attempts=False) as sim:
        record = recorded(sim)
        sim.apply(node("a", cpu=2))
        sim.schedule(pod("low", cpu=2, priority=1))
        sim.schedule(pod("never", cpu=8))
        sim.schedule(pod("vip", cpu=2, priority=9))
        sim.advance(60)
        found = {(row.pod, row.attempt): row for row in rows(record)}
    never = found["never", 1]
    assert (never.outcome, never.refused_by) == ("unschedulable", ("NodeResourcesFit",))
    assert never.reasons == {"Insufficient cpu": 1}
    assert never.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (never.bind, never.bind_us, never.node) == ("", None, "")
    vip = found["vip", 1]
    assert (vip.outcome, vip.nominated, vip.victims) == ("nominated", "a", 1)
    then = found["vip", 2]
    assert (then.outcome, then.way, then.node) == ("scheduled", "nominated", "a")
    assert then.woken_by == "AssignedPodDelete"


@pytest.mark.parametrize("margins", [False, True])
def test_placements_are_the_same_and_by_class(margins: bool) -> None:
    def placed(keep: bool) -> tuple[dict[str, str], float]:
        with Simulation(keep_attempts=False, seed=3) as sim:
            if keep:
                recorded(sim, margins=margins)
            sim.apply(*(node(f"n{i}", cpu=8, zone=f"z{i % 3}") for i in range(40)))
            pods = [
                pod(f"p{i}", cpu=1 + i % 2, labels={"app": f"a{i % 5}"}, spread={"zone": 1})
                for i in range(200)
            ]
            sim.apply(*pods)
            sim.settle()
            by_class = sim.scheduler.metrics.decisions.labels("class").value
            return {one.name: sim.node_of(one.name) or "" for one in pods}, by_class

    without, by_class = placed(False)
    assert placed(True) == (without, by_class)
    assert by_class > 150


def test_margins_are_those_of_the_scores() -> None:
    def margins(keep_attempts: bool) -> dict[str, tuple[int | None, str]]:
        with Simulation(keep_attempts=keep_attempts) as sim:
            record = recorded(sim, margins=True)
            sim.apply(*(node(f"n{i}", cpu=4 + i, zone=f"z{i % 2}") for i in range(12)))
            for i in range(60):
                spread = {"zone": 1} if i % 3 else None
                selector = {"topology.kubernetes.io/zone": "z1"} if i % 7 == 1 else None
                labels = {"app": f"a{i % 2}"}
                sim.schedule(
                    pod(f"p{i}", cpu=1, labels=labels, spread=spread, node_selector=selector)
                )
            found = {row.pod: row for row in rows(record)}
            for attempt in sim.attempts:
                scores, told = attempt.decision.scores, found[attempt.pod.name]
                if scores is None:
                    assert (told.margin, told.runner_up) == (None, "")
                    continue
                by_node = dict(zip(attempt.decision.feasible, scores.totals.tolist(), strict=True))
                best = by_node.pop(told.node)
                second = max(by_node.values())
                assert (told.margin, by_node[told.runner_up]) == (best - second, second)
            return {name: (row.margin, row.node) for name, row in found.items()}

    by_class = margins(keep_attempts=False)
    in_full = margins(keep_attempts=True)
    for name, (margin, chosen) in by_class.items():
        # None: of a class, with more restrictions than the class has.
        assert (margin is None or margin == in_full[name][0], chosen) == (True, in_full[name][1])
    assert sum(margin is not None for margin, _ in by_class.values()) > 40


def fill(record: DecisionRecord, count: int, **fields: Any) -> list[RecordEntry]:
    from mooring.framework.results import QueuedPod
    from mooring.scheduler.cycle import Decision

    found = []
    for i in range(count):
        queued = QueuedPod(pod(fields.get("name", f"p{i}"), namespace=f"s{i % 3}"), 1.0)
        if i % 10 == 9:
            decision = Decision(Status.unschedulable(f"no room {i % 20}"))
        else:
            decision = Decision(OK, f"n{i % 7}", evaluated=9, found=5)
        found.append(record.decided(queued, decision, None, i * 1e-6))
    return found


def test_old_entries_are_packed_and_read_back_as_they_were() -> None:
    count = recording.NEWEST + 4 * recording.BLOCK
    record = DecisionRecord(lambda: 7.5)
    entries = fill(record, count)
    expected = [row_of(entry) for entry in reversed(entries)]
    assert rows(record) == expected
    assert len(record._newest) < count
    assert rows(record, 10, before=300) == expected[count - 299 : count - 289]
    one = expected[-5]
    assert rows(record, pod=f"{one.namespace}/{one.pod}") == [one]
    assert rows(record, pod="s9/p1") == []


def test_a_bind_that_ends_late_is_in_its_row() -> None:
    record = DecisionRecord(lambda: 7.5)
    entries = fill(record, recording.NEWEST + 2 * recording.BLOCK)
    record.permitted(entries[3], 5.0)
    record.ended(entries[3], OK, 9.0)
    record.ended(entries[4], Status.error("gone"), 9.0)
    found = {row.seq: row for row in rows(record)}
    assert found[4].bind == "ok"
    assert found[4].bind_us == pytest.approx(9e6, rel=1e-3)
    assert found[4].permit_us == pytest.approx(5e6, rel=1e-3)
    assert (found[5].bind, found[5].message) == ("refused", "gone")


@pytest.mark.parametrize("size", [10, 1_000, recording.NEWEST + 600])
def test_no_more_than_its_size_is_kept(size: int) -> None:
    record = DecisionRecord(lambda: 7.5, size=size)
    fill(record, size + 3 * recording.BLOCK)
    found = rows(record)
    assert size - recording.BLOCK <= len(found) <= size
    assert found[0].seq == size + 3 * recording.BLOCK
    assert len(record) <= size


def test_long_names_do_not_break_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 200_000)
    record = DecisionRecord(lambda: 7.5)
    fill(record, recording.NEWEST + 10 * recording.BLOCK, name="x" * 250)
    assert sum(block.size for block in record._blocks) <= 200_000
    assert len(rows(record)) < recording.NEWEST + 10 * recording.BLOCK


def test_rates() -> None:
    now = [0.0]
    record = DecisionRecord(lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        for entry in fill(record, 2):
            record.ended(entry, OK, 0.001)
    found = record.rates(100.0)
    assert found.decisions_per_second == pytest.approx(2, rel=0.05)
    assert found.bound_per_second == found.decisions_per_second
    assert record.rates(1_000.0).decisions_per_second == 0
