from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cluster.virtual_cluster import VirtualCluster, names, virtual_cluster, workload

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.cron_schedule import parse_schedule
from mooring.cluster.controllers.cronjobs import CRONJOBS
from mooring.cluster.controllers.jobs import JOBS

QUICK = {"mooring.dev/duration": "5s"}


def cron_job(schedule: str = "*/2 * * * *", *, pod: Object | None = None, **spec: Any) -> Object:
    job = workload(
        "Job",
        "x",
        group="batch/v1",
        annotations=QUICK,
        pod={"restartPolicy": "Never", **(pod or {})},
    )
    template = {"metadata": {"labels": {"app": "cron"}}, "spec": job["spec"]}
    meta = {"name": "tick", "namespace": "default"}
    body = {"schedule": schedule, "jobTemplate": template, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": body}


def jobs(cluster: VirtualCluster) -> list[str]:
    return names(cluster.all(JOBS))


def test_runs_a_job_at_each_time() -> None:
    with virtual_cluster(warnings_only=False) as cluster:
        cluster.nodes(1)
        cluster.create(cron_job())
        cluster.settle()
        assert jobs(cluster) == []
        for _ in range(120):
            if not jobs(cluster):
                cluster.advance(1)
        [job] = cluster.all(JOBS)
        due = int(cluster.clock.now()) // 120 * 2
        assert job["metadata"]["name"] == f"tick-{due}"
        assert job["metadata"]["labels"]["app"] == "cron"
        assert job["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
        at = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        status = cluster.get(CRONJOBS, "tick")["status"]
        assert status["lastScheduleTime"] == at
        assert [one["name"] for one in status["active"]] == [job["metadata"]["name"]]
        cluster.advance(20)
        status = cluster.get(CRONJOBS, "tick")["status"]
        assert "active" not in status
        assert status["lastSuccessfulTime"]
        cluster.advance(120 * 5)
        assert len(jobs(cluster)) == 3  # the others are history
        assert cluster.events("SuccessfulCreate")


def test_suspends_and_goes_on() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(cron_job("* * * * *", suspend=True, startingDeadlineSeconds=1))
        cluster.advance(300)
        assert jobs(cluster) == []
        cluster.change(CRONJOBS, "tick", suspend=False)
        cluster.advance(61)
        assert len(jobs(cluster)) == 1


@pytest.mark.parametrize(("policy", "running"), [("Forbid", 1), ("Replace", 1), ("Allow", 3)])
def test_heeds_the_concurrency_policy(policy: str, running: int) -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        made = cron_job("* * * * *", concurrencyPolicy=policy)
        del made["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"]
        cluster.create(made)
        cluster.advance(60)
        [first] = jobs(cluster)
        cluster.advance(120)
        assert len(jobs(cluster)) == running
        assert (first in jobs(cluster)) == (policy != "Replace")


def test_says_that_a_schedule_can_not_be_read() -> None:
    with virtual_cluster() as cluster:
        cluster.create(cron_job("every day"))
        cluster.settle()
        [event] = cluster.events("UnparseableSchedule")
        assert "expected exactly 5 fields, found 2" in event["message"]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/15 * * * *", "2026-01-01 00:00", "2026-01-01 00:15"),
        ("0 3 * * *", "2026-01-01 03:00", "2026-01-02 03:00"),
        ("30 4 1,15 * *", "2026-01-02 00:00", "2026-01-15 04:30"),
        ("0 0 29 2 *", "2026-01-01 00:00", "2028-02-29 00:00"),
        ("0 12 * * mon-fri", "2026-01-02 13:00", "2026-01-05 12:00"),
        ("0 0 13 * 5", "2026-02-01 00:00", "2026-02-06 00:00"),  # either of the two
        ("0 0 * * 7", "2026-01-01 00:00", "2026-01-04 00:00"),
        ("5-20/5 1 * jan *", "2026-01-01 01:10", "2026-01-01 01:15"),
        ("50/5 * * * *", "2026-01-01 01:51", "2026-01-01 01:55"),
        ("@hourly", "2026-01-01 01:10", "2026-01-01 02:00"),
        ("@weekly", "2026-01-01 01:10", "2026-01-04 00:00"),
    ],
)
def test_reads_schedules(schedule: str, after: str, expected: str) -> None:
    assert parse_schedule(schedule).next_after(moment(after)) == moment(expected)


def test_has_no_time_for_a_day_that_never_comes() -> None:
    assert parse_schedule("0 0 31 2 *").next_after(moment("2026-01-01 00:00")) is None


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("60 * * * *", "end of range (60) above maximum (59)"),
        ("* * 0 * *", "beginning of range (0) below minimum (1)"),
        ("5-1 * * * *", "beyond end of range"),
        ("*/0 * * * *", "positive number"),
        ("x * * * *", "minute: expected a number, got 'x'"),
        ("*/x * * * *", "minute: expected a number after /, got 'x'"),
        ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
    ],
)
def test_says_what_is_wrong_with_a_schedule(schedule: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        parse_schedule(schedule)


def test_keeps_to_a_time_zone() -> None:
    pytest.importorskip("zoneinfo").ZoneInfo("Europe/Berlin")
    schedule = parse_schedule("30 2 * * *", "Europe/Berlin")
    assert schedule.next_after(moment("2026-01-01 12:00")) == moment("2026-01-02 01:30")
    # That hour does not exist on the day the clocks change.
    assert schedule.next_after(moment("2026-03-28 12:00")) == moment("2026-03-30 00:30")
    with pytest.raises(ValueError, match="unknown time zone Nowhere"):
        parse_schedule("* * * * *", "Nowhere")


def test_runs_the_latest_of_many_missed_times_once() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(cron_job("* * * * *", suspend=True))
        cluster.advance(3 * 3600)
        cluster.change(CRONJOBS, "tick", suspend=False)
        cluster.settle()
        assert jobs(cluster) == [f"tick-{int(cluster.clock.now()) // 60}"]
        [event] = cluster.events("TooManyMissedTimes")
        assert "Set or decrease .spec.startingDeadlineSeconds" in event["message"]


def test_goes_on_if_another_job_has_the_name() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(cron_job("* * * * *"))
        taken = f"tick-{int(cluster.clock.now()) // 60 + 1}"
        other = workload("Job", taken, group="batch/v1", pod={"restartPolicy": "Never"})
        cluster.create(other)
        cluster.advance(60)
        assert jobs(cluster) == [taken]
        assert "ownerReferences" not in cluster.get(JOBS, taken)["metadata"]
        assert "lastScheduleTime" in cluster.get(CRONJOBS, "tick")["status"]  # not tried again
        cluster.advance(60)
        assert len(jobs(cluster)) == 2


def test_starts_nothing_while_it_is_deleted() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        made = cron_job("* * * * *")
        made["metadata"]["finalizers"] = ["example.com/wait"]
        cluster.create(made)
        cluster.verbs.delete(CRONJOBS, "default", "tick")
        cluster.advance(180)
        assert jobs(cluster) == []


@pytest.mark.parametrize(
    ("sunday", "monday"),
    [
        ("2026-03-28 23:00", "2026-03-29 22:00"),  # has 23 hours
        ("2026-10-24 22:00", "2026-10-25 23:00"),  # has 25
    ],
)
def test_begins_at_midnight_after_the_clocks_change(sunday: str, monday: str) -> None:
    schedule = parse_schedule("0 0 * * mon", "Europe/Berlin")
    assert schedule.next_after(moment(sunday)) == moment(monday)
