from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.stage import PODS, Stage, conditions, stage, workload

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.jobs import INDEX, JOBS, _gathered, _spread


def job(duration: str = "2s", code: str = "0", policy: str = "Never", **spec: Any) -> Object:
    said = {"mooring.dev/duration": duration, "mooring.dev/exit-code": code}
    inner = {"restartPolicy": policy}
    return workload("Job", "work", group="batch/v1", annotations=said, pod=inner, **spec)


def status(play: Stage) -> Object:
    found: Object = play.get(JOBS, "work")["status"]
    return found


def test_runs_one_pod_to_its_end() -> None:
    with stage() as play:
        play.nodes()
        play.create(job())
        play.advance(1)
        assert (status(play)["active"], status(play)["ready"]) == (1, 1)
        [pod] = play.pods()
        assert pod["metadata"]["labels"]["job-name"] == "work"
        play.advance(3)
        assert conditions(play.get(JOBS, "work")) == {
            "SuccessCriteriaMet": "True",
            "Complete": "True",
        }
        found = status(play)
        assert found["succeeded"] == 1
        assert "active" not in found
        assert found["completionTime"] >= found["startTime"]


def test_runs_no_more_pods_at_a_time_than_allowed() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(job(completions=5, parallelism=2))
        most = 0
        for _ in range(100):
            play.advance(0.1)
            most = max(most, sum(phase != "Succeeded" for phase in play.phases().values()))
        assert most == 2
        assert status(play)["succeeded"] == 5
        assert len(play.pods()) == 5


def test_tries_again_after_a_failure_later_each_time() -> None:
    with stage() as play:
        play.nodes()
        play.create(job(code="1", backoffLimit=2))
        made: list[int] = []
        for time in range(60):
            play.advance(1)
            if len(play.pods()) > len(made):
                made.append(time)
        first, second, third = made
        assert second - first in (12, 13)  # 2.5 s of life, then 10 s
        assert third - second in (22, 23)
        found = status(play)
        assert found["failed"] == 3
        failed = found["conditions"][-1]
        assert (failed["type"], failed["reason"]) == ("Failed", "BackoffLimitExceeded")


def test_counts_restarts_of_containers_as_failures() -> None:
    with stage() as play:
        play.nodes()
        play.create(job(duration="1s", code="1", policy="OnFailure", backoffLimit=1))
        play.advance(60)
        assert conditions(play.get(JOBS, "work"))["Failed"] == "True"
        assert play.pods() == []


def test_counts_a_pod_that_was_taken_away_as_failed() -> None:
    with stage() as play:
        play.nodes()
        play.create(job(duration="1h"))
        play.advance(1)
        play.verbs.delete(PODS, "default", play.pod_names()[0], grace=0)
        play.advance(12)
        assert status(play)["failed"] == 1
        assert list(play.phases().values()) == ["Running"]


def test_still_counts_pods_that_were_deleted_after_they_ended() -> None:
    with stage() as play:
        play.nodes()
        play.create(job(completions=2, parallelism=1))
        play.advance(3)
        play.verbs.delete(PODS, "default", play.pod_names()[0])
        play.advance(5)
        assert status(play)["succeeded"] == 2
        assert conditions(play.get(JOBS, "work"))["Complete"] == "True"


def test_gives_up_at_the_deadline() -> None:
    with stage() as play:
        play.nodes()
        play.create(job(duration="1h", activeDeadlineSeconds=30))
        play.advance(29)
        assert len(play.pods()) == 1
        play.advance(3)
        assert play.pods() == []
        assert status(play)["conditions"][-1]["reason"] == "DeadlineExceeded"


def test_ends_a_work_queue_when_one_has_succeeded_and_the_others_are_done() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(job(parallelism=3))
        play.advance(5)
        assert len(play.pods()) == 3
        assert status(play)["succeeded"] == 3
        assert conditions(play.get(JOBS, "work"))["Complete"] == "True"


def test_runs_every_index_once() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(job(completions=4, parallelism=2, completionMode="Indexed"))
        play.advance(2)
        assert [pod["metadata"]["annotations"][INDEX] for pod in play.pods()] == ["0", "1"]
        assert play.pods()[0]["spec"]["hostname"] == "work-0"
        play.advance(10)
        assert status(play)["completedIndexes"] == "0-3"
        assert status(play)["succeeded"] == 4


def test_waits_while_it_is_suspended() -> None:
    with stage() as play:
        play.nodes()
        play.create(job(suspend=True))
        play.advance(5)
        assert play.pods() == []
        assert conditions(play.get(JOBS, "work")) == {"Suspended": "True"}
        play.change(JOBS, "work", suspend=False)
        play.advance(5)
        assert conditions(play.get(JOBS, "work"))["Complete"] == "True"


def test_is_deleted_some_time_after_its_end() -> None:
    with stage() as play:
        play.nodes()
        play.create(job(ttlSecondsAfterFinished=100))
        play.advance(90)
        assert len(play.all(JOBS)) == 1
        play.advance(20)
        assert play.all(JOBS) == play.pods() == []


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 5, 7, 8), "0-2,5,7-8")]
)
def test_writes_indexes_as_kubernetes_does(indexes: tuple[int, ...], text: str) -> None:
    assert _gathered(indexes) == text
    assert tuple(_spread(text)) == indexes
