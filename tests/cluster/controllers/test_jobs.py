from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.virtual_cluster import (
    PODS,
    VirtualCluster,
    conditions,
    virtual_cluster,
    workload,
)

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.jobs import INDEX, JOBS, _format_indexes, _parse_indexes


def job(duration: str = "2s", code: str = "0", policy: str = "Never", **spec: Any) -> Object:
    said = {"mooring.dev/duration": duration, "mooring.dev/exit-code": code}
    inner = {"restartPolicy": policy}
    return workload("Job", "work", group="batch/v1", annotations=said, pod=inner, **spec)


def status(cluster: VirtualCluster) -> Object:
    found: Object = cluster.get(JOBS, "work")["status"]
    return found


def test_runs_one_pod_to_its_end() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job())
        cluster.advance(1)
        assert (status(cluster)["active"], status(cluster)["ready"]) == (1, 1)
        [pod] = cluster.pods()
        assert pod["metadata"]["labels"]["job-name"] == "work"
        cluster.advance(3)
        assert conditions(cluster.get(JOBS, "work")) == {
            "SuccessCriteriaMet": "True",
            "Complete": "True",
        }
        found = status(cluster)
        assert found["succeeded"] == 1
        assert "active" not in found
        assert found["completionTime"] >= found["startTime"]


def test_runs_no_more_pods_at_a_time_than_allowed() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(job(completions=5, parallelism=2))
        most = 0
        for _ in range(100):
            cluster.advance(0.1)
            most = max(most, sum(phase != "Succeeded" for phase in cluster.phases().values()))
        assert most == 2
        assert status(cluster)["succeeded"] == 5
        assert len(cluster.pods()) == 5


def test_tries_again_after_a_failure_later_each_time() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(code="1", backoffLimit=2))
        made: list[int] = []
        for time in range(60):
            cluster.advance(1)
            if len(cluster.pods()) > len(made):
                made.append(time)
        first, second, third = made
        assert second - first in (12, 13)  # 2.5 s of life, then 10 s
        assert third - second in (22, 23)
        found = status(cluster)
        assert found["failed"] == 3
        failed = found["conditions"][-1]
        assert (failed["type"], failed["reason"]) == ("Failed", "BackoffLimitExceeded")


def test_counts_restarts_of_containers_as_failures() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(duration="1s", code="1", policy="OnFailure", backoffLimit=1))
        cluster.advance(60)
        assert conditions(cluster.get(JOBS, "work"))["Failed"] == "True"
        assert cluster.pods() == []


def test_counts_a_pod_that_was_taken_away_as_failed() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(duration="1h"))
        cluster.advance(1)
        cluster.verbs.delete(PODS, "default", cluster.pod_names()[0], grace=0)
        cluster.advance(12)
        assert status(cluster)["failed"] == 1
        assert list(cluster.phases().values()) == ["Running"]


def test_still_counts_pods_that_were_deleted_after_they_ended() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(completions=2, parallelism=1))
        cluster.advance(3)
        cluster.verbs.delete(PODS, "default", cluster.pod_names()[0])
        cluster.advance(5)
        assert status(cluster)["succeeded"] == 2
        assert conditions(cluster.get(JOBS, "work"))["Complete"] == "True"


def test_gives_up_at_the_deadline() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(duration="1h", activeDeadlineSeconds=30))
        cluster.advance(29)
        assert len(cluster.pods()) == 1
        cluster.advance(3)
        assert cluster.pods() == []
        assert status(cluster)["conditions"][-1]["reason"] == "DeadlineExceeded"


def test_ends_a_work_queue_when_one_has_succeeded_and_the_others_are_done() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(job(parallelism=3))
        cluster.advance(5)
        assert len(cluster.pods()) == 3
        assert status(cluster)["succeeded"] == 3
        assert conditions(cluster.get(JOBS, "work"))["Complete"] == "True"


def test_runs_every_index_once() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(job(completions=4, parallelism=2, completionMode="Indexed"))
        cluster.advance(2)
        assert [pod["metadata"]["annotations"][INDEX] for pod in cluster.pods()] == ["0", "1"]
        assert cluster.pods()[0]["spec"]["hostname"] == "work-0"
        cluster.advance(10)
        assert status(cluster)["completedIndexes"] == "0-3"
        assert status(cluster)["succeeded"] == 4


def test_waits_while_it_is_suspended() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(suspend=True))
        cluster.advance(5)
        assert cluster.pods() == []
        assert conditions(cluster.get(JOBS, "work")) == {"Suspended": "True"}
        cluster.change(JOBS, "work", suspend=False)
        cluster.advance(5)
        assert conditions(cluster.get(JOBS, "work"))["Complete"] == "True"


def test_takes_its_pods_away_when_it_is_suspended() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(duration="20s", completions=2, parallelism=2, backoffLimit=0))
        cluster.advance(2)
        assert len(cluster.pods()) == 2
        cluster.change(JOBS, "work", suspend=True)
        cluster.advance(5)
        assert cluster.pods() == []
        assert "active" not in status(cluster)
        assert "failed" not in status(cluster)
        cluster.change(JOBS, "work", suspend=False)
        cluster.advance(25)
        assert conditions(cluster.get(JOBS, "work"))["Complete"] == "True"


def test_takes_pods_away_when_fewer_may_run() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(duration="1h", completions=5, parallelism=3))
        cluster.advance(2)
        cluster.change(JOBS, "work", parallelism=1)
        cluster.advance(5)
        assert len(cluster.pods()) == 1
        assert "failed" not in status(cluster)


def test_starts_no_pod_for_a_queue_whose_work_is_done() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(duration="30s", parallelism=2))
        cluster.advance(2)
        first, second = cluster.pod_names()

        def succeed(value: Object) -> None:
            value["status"]["phase"] = "Succeeded"

        cluster.verbs.modify(PODS, "default", first, succeed, subresource="status")
        cluster.advance(5)
        assert cluster.pod_names() == [first, second]
        assert status(cluster)["active"] == 1
        cluster.advance(30)
        assert conditions(cluster.get(JOBS, "work"))["Complete"] == "True"


def test_may_be_sent_elsewhere_while_it_is_suspended_and_not_changed_otherwise() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(duration="1h", suspend=True))
        with pytest.raises(StatusError, match=r"spec\.template: .*immutable"):  # pods may be left
            cluster.change(JOBS, "work", template__spec__nodeSelector={"disk": "ssd"})
        cluster.advance(1)
        cluster.change(JOBS, "work", template__spec__nodeSelector={"disk": "ssd"})
        with pytest.raises(StatusError, match=r"spec\.template\.spec: .*immutable"):
            cluster.change(JOBS, "work", template__spec__hostNetwork=True)
        cluster.change(JOBS, "work", suspend=False)
        with pytest.raises(StatusError, match=r"spec\.template: .*immutable"):
            cluster.change(JOBS, "work", template__spec__nodeSelector={"disk": "hdd"})
        cluster.advance(1)
        assert cluster.pods()[0]["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_is_deleted_some_time_after_its_end() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(job(ttlSecondsAfterFinished=100))
        cluster.advance(90)
        assert len(cluster.all(JOBS)) == 1
        cluster.advance(20)
        assert cluster.all(JOBS) == cluster.pods() == []


@pytest.mark.parametrize(
    ("indexes", "text"), [((), ""), ((3,), "3"), ((0, 1, 2, 5, 7, 8), "0-2,5,7-8")]
)
def test_writes_indexes_as_kubernetes_does(indexes: tuple[int, ...], text: str) -> None:
    assert _format_indexes(indexes) == text
    assert tuple(_parse_indexes(text)) == indexes
