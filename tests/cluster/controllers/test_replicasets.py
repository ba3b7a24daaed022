from __future__ import annotations

from tests.cluster.stage import PODS, stage, workload

from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.replicasets import REPLICASETS

REPLICATION_CONTROLLERS = known("replicationcontrollers")


def test_makes_as_many_pods_as_there_should_be() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("ReplicaSet", "web", replicas=4))
        play.settle()
        owner = play.get(REPLICASETS, "web")
        assert len(play.pods()) == 4
        for pod in play.pods():
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
        play.advance(1)
        status = play.get(REPLICASETS, "web")["status"]
        assert status == {
            "replicas": 4,
            "fullyLabeledReplicas": 4,
            "readyReplicas": 4,
            "availableReplicas": 4,
            "observedGeneration": 1,
        }


def test_replaces_pods_that_are_deleted_or_fail() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("ReplicaSet", "web", replicas=2))
        play.advance(1)
        first, second = play.pod_names()
        play.verbs.delete(PODS, "default", first)
        play.verbs.modify(
            PODS,
            "default",
            second,
            lambda pod: pod["status"].update(phase="Failed"),
            subresource="status",
        )
        play.advance(2)
        phases = play.phases()
        assert first not in phases
        assert phases.pop(second) == "Failed"
        assert list(phases.values()) == ["Running", "Running"]


def test_deletes_those_first_that_are_missed_least() -> None:
    with stage(binds=False) as play:
        play.nodes(2)
        play.create(workload("ReplicaSet", "web", replicas=4))
        play.settle()
        lost, slow, *_ = play.pod_names()
        for name in play.pod_names()[2:]:
            play.bind(name, "n0")
        play.advance(1)
        play.bind(slow, "n1")
        play.settle()
        play.change(REPLICASETS, "web", replicas=3)
        play.advance(0.3)
        assert lost not in play.pod_names()
        play.change(REPLICASETS, "web", replicas=2)
        play.advance(0.3)
        assert slow not in play.pod_names()


def test_obeys_the_cost_of_a_deletion() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("ReplicaSet", "web", replicas=3))
        play.advance(1)
        dear, cheap, _ = play.pod_names()
        for name, cost in ((dear, "100"), (cheap, "-5")):

            def mark(pod: Object, cost: str = cost) -> None:
                key = "controller.kubernetes.io/pod-deletion-cost"
                pod["metadata"]["annotations"] = {key: cost}

            play.verbs.modify(PODS, "default", name, mark)
        play.change(REPLICASETS, "web", replicas=1)
        play.advance(1)
        assert play.pod_names() == [dear]


def test_counts_as_available_what_has_been_ready_for_long_enough() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("ReplicaSet", "web", replicas=1, minReadySeconds=30))
        play.advance(10)
        status = play.get(REPLICASETS, "web")["status"]
        assert status["readyReplicas"] == 1
        assert "availableReplicas" not in status
        play.advance(25)
        assert play.get(REPLICASETS, "web")["status"]["availableReplicas"] == 1


def test_makes_many_pods_turn_by_turn() -> None:
    with stage(kubelets=False, binds=False) as play:
        play.create(workload("ReplicaSet", "web", replicas=250))
        play.settle()
        assert len(play.pods()) == 250
        play.change(REPLICASETS, "web", replicas=10)
        play.settle()
        assert len(play.pods()) == 10


def test_serves_replication_controllers_too() -> None:
    with stage() as play:
        play.nodes()
        value = workload("ReplicationController", "old", group="v1", replicas=2)
        value["spec"]["selector"] = {"app": "old"}
        play.create(value)
        play.advance(1)
        assert play.get(REPLICATION_CONTROLLERS, "old")["status"]["readyReplicas"] == 2


def test_tells_what_it_does_if_asked_to() -> None:
    with stage(terse=False) as play:
        play.nodes()
        play.create(workload("ReplicaSet", "web", replicas=1))
        play.settle()
        [event] = play.events("SuccessfulCreate")
        assert event["message"] == f"Created pod: {play.pod_names()[0]}"
        assert event["involvedObject"]["name"] == "web"


def test_takes_its_time_with_replacing_pods_that_their_node_turns_away() -> None:
    with stage() as play:
        play.nodes(cpu="150m")
        play.create(workload("ReplicaSet", "web", replicas=2))
        play.advance(60)
        phases = list(play.phases().values())
        assert phases.count("Running") == 1
        assert 5 < phases.count("Failed") < 20
        play.nodes(3)
        play.advance(30)
        assert list(play.phases().values()).count("Running") == 2
