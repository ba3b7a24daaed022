from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.virtual_cluster import PODS, VirtualCluster, names, virtual_cluster, workload

from mooring.cluster.apiserver.resources import CLAIMS
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.statefulsets import STATEFULSETS


def database(replicas: int, **spec: Any) -> Object:
    return workload("StatefulSet", "db", replicas=replicas, serviceName="db", **spec)


def set_image(cluster: VirtualCluster, image: str) -> None:
    def change(value: Object) -> None:
        value["spec"]["template"]["spec"]["containers"][0]["image"] = image

    cluster.verbs.modify(STATEFULSETS, "default", "db", change)


def images(cluster: VirtualCluster) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in cluster.pods()]


def test_makes_one_pod_after_the_other() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(3))
        cluster.settle()
        assert cluster.pod_names() == ["db-0"]
        cluster.advance(0.7)
        assert cluster.pod_names() == ["db-0", "db-1"]
        cluster.advance(2)
        assert cluster.phases() == {"db-0": "Running", "db-1": "Running", "db-2": "Running"}
        first = cluster.get(PODS, "db-0")
        assert first["spec"]["hostname"] == "db-0"
        assert first["spec"]["subdomain"] == "db"
        labels = first["metadata"]["labels"]
        assert labels["statefulset.kubernetes.io/pod-name"] == "db-0"
        assert labels["apps.kubernetes.io/pod-index"] == "0"
        status = cluster.get(STATEFULSETS, "db")["status"]
        assert labels["controller-revision-hash"] == status["updateRevision"]
        assert status["currentRevision"] == status["updateRevision"]
        assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 3, 3)


def test_makes_all_pods_at_once_if_the_order_does_not_matter() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(3, podManagementPolicy="Parallel"))
        cluster.settle()
        assert cluster.pod_names() == ["db-0", "db-1", "db-2"]
        cluster.change(STATEFULSETS, "db", replicas=0)
        cluster.advance(0.3)
        assert cluster.pod_names() == []


def test_removes_the_highest_first_and_waits_for_it() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(3, annotations={"mooring.dev/stop": "2s"}))
        cluster.advance(5)
        cluster.change(STATEFULSETS, "db", replicas=1)
        cluster.advance(1)
        assert cluster.pod_names() == ["db-0", "db-1", "db-2"]
        cluster.advance(1.5)
        assert cluster.pod_names() == ["db-0", "db-1"]
        cluster.advance(2)
        assert cluster.pod_names() == ["db-0"]


def test_gives_a_pod_its_name_back() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(2))
        cluster.advance(5)
        before = cluster.get(PODS, "db-1")["metadata"]["uid"]
        cluster.verbs.delete(PODS, "default", "db-1")
        cluster.advance(3)
        assert cluster.phases() == {"db-0": "Running", "db-1": "Running"}
        assert cluster.get(PODS, "db-1")["metadata"]["uid"] != before


def test_replaces_a_pod_that_failed() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, cpu="150m")
        cluster.create(database(2))  # the second one does not fit, and is bound all the same
        cluster.advance(1)
        assert cluster.phases()["db-0"] == "Running"
        cluster.nodes(1)
        cluster.advance(3)
        assert cluster.phases() == {"db-0": "Running", "db-1": "Running"}


def test_makes_claims_that_outlive_their_pods() -> None:
    template = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(2, volumeClaimTemplates=[template]))
        cluster.advance(5)
        assert names(cluster.all(CLAIMS)) == ["data-db-0", "data-db-1"]
        [volume] = cluster.get(PODS, "db-1")["spec"]["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] == "data-db-1"
        cluster.change(STATEFULSETS, "db", replicas=0)
        cluster.advance(5)
        assert cluster.pod_names() == []
        assert names(cluster.all(CLAIMS)) == ["data-db-0", "data-db-1"]
        cluster.change(STATEFULSETS, "db", replicas=1)
        cluster.advance(5)
        assert cluster.pod_names() == ["db-0"]


def test_renews_from_the_highest_down() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(3))
        cluster.advance(5)
        set_image(cluster, "app:2")
        cluster.advance(0.5)
        assert images(cluster)[:2] == ["app:1", "app:1"]
        cluster.advance(10)
        assert images(cluster) == ["app:2"] * 3
        status = cluster.get(STATEFULSETS, "db")["status"]
        assert status["currentRevision"] == status["updateRevision"]


def test_leaves_pods_below_the_partition_alone() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(3, updateStrategy=strategy))
        cluster.advance(5)
        set_image(cluster, "app:2")
        cluster.advance(10)
        assert images(cluster) == ["app:1", "app:1", "app:2"]
        status = cluster.get(STATEFULSETS, "db")["status"]
        assert status["currentRevision"] != status["updateRevision"]
        assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)


def test_leaves_old_pods_alone_if_it_is_told_to_wait() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(database(2, updateStrategy={"type": "OnDelete"}))
        cluster.advance(5)
        set_image(cluster, "app:2")
        cluster.advance(60)
        assert images(cluster) == ["app:1", "app:1"]
        cluster.verbs.delete(PODS, "default", "db-0")
        cluster.advance(5)
        assert images(cluster) == ["app:2", "app:1"]


@pytest.mark.parametrize("start", [0, 5])
def test_counts_from_where_it_is_told_to(start: int) -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(database(2, ordinals={"start": start}))
        cluster.advance(5)
        assert cluster.pod_names() == [f"db-{start}", f"db-{start + 1}"]
