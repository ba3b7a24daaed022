from __future__ import annotations

from tests.cluster.virtual_cluster import PODS, virtual_cluster, workload

from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.replicasets import REPLICASETS

REPLICATION_CONTROLLERS = known("replicationcontrollers")


def test_makes_as_many_pods_as_there_should_be() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("ReplicaSet", "web", replicas=4))
        cluster.settle()
        owner = cluster.get(REPLICASETS, "web")
        assert len(cluster.pods()) == 4
        for pod in cluster.pods():
            assert pod["metadata"]["generateName"] == "web-"
            assert pod["metadata"]["labels"] == {"app": "web"}
            [reference] = pod["metadata"]["ownerReferences"]
            assert reference == {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        cluster.advance(1)
        status = cluster.get(REPLICASETS, "web")["status"]
        assert status == {
            "replicas": 4,
            "fullyLabeledReplicas": 4,
            "readyReplicas": 4,
            "availableReplicas": 4,
            "observedGeneration": 1,
        }


def test_replaces_pods_that_are_deleted_or_fail() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("ReplicaSet", "web", replicas=2))
        cluster.advance(1)
        first, second = cluster.pod_names()
        cluster.verbs.delete(PODS, "default", first)
        cluster.verbs.modify(
            PODS,
            "default",
            second,
            lambda pod: pod["status"].update(phase="Failed"),
            subresource="status",
        )
        cluster.advance(2)
        phases = cluster.phases()
        assert first not in phases
        assert phases.pop(second) == "Failed"
        assert list(phases.values()) == ["Running", "Running"]


def test_deletes_those_first_that_are_missed_least() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.nodes(2)
        cluster.create(workload("ReplicaSet", "web", replicas=4))
        cluster.settle()
        lost, slow, *_ = cluster.pod_names()
        for name in cluster.pod_names()[2:]:
            cluster.bind(name, "n0")
        cluster.advance(1)
        cluster.bind(slow, "n1")
        cluster.settle()
        cluster.change(REPLICASETS, "web", replicas=3)
        cluster.advance(0.3)
        assert lost not in cluster.pod_names()
        cluster.change(REPLICASETS, "web", replicas=2)
        cluster.advance(0.3)
        assert slow not in cluster.pod_names()


def test_obeys_the_cost_of_a_deletion() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("ReplicaSet", "web", replicas=3))
        cluster.advance(1)
        dear, cheap, unclear = cluster.pod_names()
        for name, cost in ((dear, "100"), (cheap, "-5"), (unclear, "much")):

            def mark(pod: Object, cost: str = cost) -> None:
                key = "controller.kubernetes.io/pod-deletion-cost"
                pod["metadata"]["annotations"] = {key: cost}

            cluster.verbs.modify(PODS, "default", name, mark)
        cluster.change(REPLICASETS, "web", replicas=2)
        cluster.advance(1)
        assert cluster.pod_names() == [dear, unclear]  # that is no number, and so costs nothing
        cluster.change(REPLICASETS, "web", replicas=1)
        cluster.advance(1)
        assert cluster.pod_names() == [dear]


def test_counts_as_available_what_has_been_ready_for_long_enough() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("ReplicaSet", "web", replicas=1, minReadySeconds=30))
        cluster.advance(10)
        status = cluster.get(REPLICASETS, "web")["status"]
        assert status["readyReplicas"] == 1
        assert "availableReplicas" not in status
        cluster.advance(25)
        assert cluster.get(REPLICASETS, "web")["status"]["availableReplicas"] == 1


def test_makes_many_pods_turn_by_turn() -> None:
    with virtual_cluster(kubelets=False, binds=False) as cluster:
        cluster.create(workload("ReplicaSet", "web", replicas=250))
        cluster.settle()
        assert len(cluster.pods()) == 250
        cluster.change(REPLICASETS, "web", replicas=10)
        cluster.settle()
        assert len(cluster.pods()) == 10


def test_serves_replication_controllers_too() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        value = workload("ReplicationController", "old", group="v1", replicas=2)
        value["spec"]["selector"] = {"app": "old"}
        cluster.create(value)
        cluster.advance(1)
        assert cluster.get(REPLICATION_CONTROLLERS, "old")["status"]["readyReplicas"] == 2


def test_tells_what_it_does_if_asked_to() -> None:
    with virtual_cluster(warnings_only=False) as cluster:
        cluster.nodes()
        cluster.create(workload("ReplicaSet", "web", replicas=1))
        cluster.settle()
        [event] = cluster.events("SuccessfulCreate")
        assert event["message"] == f"Created pod: {cluster.pod_names()[0]}"
        assert event["involvedObject"]["name"] == "web"


def test_takes_its_time_with_replacing_pods_that_their_node_turns_away() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(cpu="150m")
        cluster.create(workload("ReplicaSet", "web", replicas=2))
        cluster.advance(60)
        phases = list(cluster.phases().values())
        assert phases.count("Running") == 1
        assert 5 < phases.count("Failed") < 20
        cluster.nodes(3)
        cluster.advance(30)
        assert list(cluster.phases().values()).count("Running") == 2
