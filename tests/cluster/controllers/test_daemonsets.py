from __future__ import annotations

from tests.cluster.stage import NODES, PODS, Stage, stage, workload

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.daemonsets import DAEMONSETS


def hosts(play: Stage) -> dict[str, str]:
    return {pod["spec"]["nodeName"]: pod["status"]["phase"] for pod in play.pods()}


def test_puts_one_pod_on_every_node() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("DaemonSet", "agent"))
        play.advance(1)
        assert hosts(play) == {"n0": "Running", "n1": "Running", "n2": "Running"}
        status = play.get(DAEMONSETS, "agent")["status"]
        assert status == {
            "currentNumberScheduled": 3,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 3,
            "numberReady": 3,
            "updatedNumberScheduled": 3,
            "numberAvailable": 3,
            "observedGeneration": 1,
        }


def test_leaves_the_binding_to_the_scheduler() -> None:
    with stage(binds=False) as play:
        play.nodes(2)
        play.create(workload("DaemonSet", "agent"))
        play.settle()
        assert len(play.pods()) == 2
        for pod in play.pods():
            assert "nodeName" not in pod["spec"]
            required = pod["spec"]["affinity"]["nodeAffinity"]
            [term] = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            [test] = term["matchFields"]
            assert (test["key"], test["operator"]) == ("metadata.name", "In")
            tolerated = {(one["key"], one["effect"]) for one in pod["spec"]["tolerations"]}
            assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
            assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated


def test_follows_nodes_that_come_and_go() -> None:
    with stage() as play:
        play.nodes(1)
        play.create(workload("DaemonSet", "agent"))
        play.advance(1)
        play.nodes(1, name="new")
        play.advance(1)
        assert hosts(play) == {"n0": "Running", "new": "Running"}
        play.verbs.delete(NODES, "", "n0")
        play.advance(60)
        assert hosts(play) == {"new": "Running"}


def test_only_goes_where_it_may() -> None:
    with stage() as play:
        play.nodes(1, name="tainted", taints=("special:NoSchedule",))
        play.nodes(1, name="ssd", labels={"disk": "ssd"})
        play.nodes(1, name="plain")
        play.create(workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}}))
        play.create(workload("DaemonSet", "other"))
        play.advance(1)
        found = {(pod["metadata"]["labels"]["app"], pod["spec"]["nodeName"]) for pod in play.pods()}
        assert found == {("agent", "ssd"), ("other", "ssd"), ("other", "plain")}


def test_leaves_when_the_node_no_longer_suits() -> None:
    with stage() as play:
        play.nodes(2, labels={"disk": "ssd"})
        play.create(workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}}))
        play.advance(1)

        def move(node: Object) -> None:
            del node["metadata"]["labels"]["disk"]

        play.verbs.modify(NODES, "", "n0", move)
        play.advance(1)
        assert hosts(play) == {"n1": "Running"}


def test_stays_on_a_node_that_is_cordoned() -> None:
    with stage() as play:
        play.nodes(1)
        play.create(workload("DaemonSet", "agent"))
        play.advance(1)
        play.change(NODES, "n0", unschedulable=True)
        play.advance(1)
        assert hosts(play) == {"n0": "Running"}
        play.verbs.delete(PODS, "default", play.pod_names()[0])
        play.advance(1)
        assert hosts(play) == {"n0": "Running"}


def test_renews_one_pod_at_a_time() -> None:
    def change(value: Object) -> None:
        value["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"

    with stage() as play:
        play.nodes(3)
        play.create(workload("DaemonSet", "agent"))
        play.advance(1)
        play.verbs.modify(DAEMONSETS, "default", "agent", change)
        for _ in range(100):
            play.advance(0.1)
            ready = sum(
                "running" in pod["status"].get("containerStatuses", [{"state": {}}])[0]["state"]
                and "deletionTimestamp" not in pod["metadata"]
                for pod in play.pods()
            )
            assert ready >= 2
        assert {pod["spec"]["containers"][0]["image"] for pod in play.pods()} == {"app:2"}
        assert play.get(DAEMONSETS, "agent")["status"]["updatedNumberScheduled"] == 3


def test_serves_many_nodes_turn_by_turn() -> None:
    with stage(kubelets=False) as play:
        play.nodes(250)
        play.create(workload("DaemonSet", "agent"))
        play.settle()
        assert len(hosts(play)) == 250


def test_takes_its_time_with_replacing_a_pod_that_its_node_turns_away() -> None:
    with stage(terse=False) as play:
        play.nodes(cpu="50m")
        play.create(workload("DaemonSet", "agent"))
        play.advance(60)
        assert len(play.events("SuccessfulCreate")) == 6  # after 1, 2, 4, 8 and 16 seconds
