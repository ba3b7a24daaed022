from __future__ import annotations

from tests.cluster.virtual_cluster import (
    NODES,
    PODS,
    VirtualCluster,
    pod,
    virtual_cluster,
    workload,
)

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.daemonsets import DAEMONSETS


def hosts(cluster: VirtualCluster) -> dict[str, str]:
    return {pod["spec"]["nodeName"]: pod["status"]["phase"] for pod in cluster.pods()}


def test_puts_one_pod_on_every_node() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.advance(1)
        assert hosts(cluster) == {"n0": "Running", "n1": "Running", "n2": "Running"}
        status = cluster.get(DAEMONSETS, "agent")["status"]
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
    with virtual_cluster(binds=False) as cluster:
        cluster.nodes(2)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.settle()
        assert len(cluster.pods()) == 2
        for pod in cluster.pods():
            assert "nodeName" not in pod["spec"]
            required = pod["spec"]["affinity"]["nodeAffinity"]
            [term] = required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
            [test] = term["matchFields"]
            assert (test["key"], test["operator"]) == ("metadata.name", "In")
            tolerated = {(one["key"], one["effect"]) for one in pod["spec"]["tolerations"]}
            assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
            assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated


def test_follows_nodes_that_come_and_go() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.advance(1)
        cluster.nodes(1, name="new")
        cluster.advance(1)
        assert hosts(cluster) == {"n0": "Running", "new": "Running"}
        cluster.verbs.delete(NODES, "", "n0")
        cluster.advance(60)
        assert hosts(cluster) == {"new": "Running"}


def test_only_goes_where_it_may() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, name="tainted", taints=("special:NoSchedule",))
        cluster.nodes(1, name="ssd", labels={"disk": "ssd"})
        cluster.nodes(1, name="plain")
        cluster.create(workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}}))
        cluster.create(workload("DaemonSet", "other"))
        cluster.advance(1)
        found = {
            (pod["metadata"]["labels"]["app"], pod["spec"]["nodeName"]) for pod in cluster.pods()
        }
        assert found == {("agent", "ssd"), ("other", "ssd"), ("other", "plain")}


def test_leaves_when_the_node_no_longer_suits() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(2, labels={"disk": "ssd"})
        cluster.create(workload("DaemonSet", "agent", pod={"nodeSelector": {"disk": "ssd"}}))
        cluster.advance(1)

        def move(node: Object) -> None:
            del node["metadata"]["labels"]["disk"]

        cluster.verbs.modify(NODES, "", "n0", move)
        cluster.advance(1)
        assert hosts(cluster) == {"n1": "Running"}


def test_stays_on_a_node_that_is_cordoned() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.advance(1)
        cluster.change(NODES, "n0", unschedulable=True)
        cluster.advance(1)
        assert hosts(cluster) == {"n0": "Running"}
        cluster.verbs.delete(PODS, "default", cluster.pod_names()[0])
        cluster.advance(1)
        assert hosts(cluster) == {"n0": "Running"}


def test_renews_one_pod_at_a_time() -> None:
    def change(value: Object) -> None:
        value["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"

    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.advance(1)
        cluster.verbs.modify(DAEMONSETS, "default", "agent", change)
        for _ in range(100):
            cluster.advance(0.1)
            ready = sum(
                "running" in pod["status"].get("containerStatuses", [{"state": {}}])[0]["state"]
                and "deletionTimestamp" not in pod["metadata"]
                for pod in cluster.pods()
            )
            assert ready >= 2
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"app:2"}
        assert cluster.get(DAEMONSETS, "agent")["status"]["updatedNumberScheduled"] == 3


def test_serves_many_nodes_turn_by_turn() -> None:
    with virtual_cluster(kubelets=False) as cluster:
        cluster.nodes(250)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.settle()
        assert len(hosts(cluster)) == 250


def test_takes_its_time_with_replacing_a_pod_that_its_node_turns_away() -> None:
    with virtual_cluster(warnings_only=False) as cluster:
        cluster.nodes(cpu="50m")
        cluster.create(workload("DaemonSet", "agent"))
        cluster.advance(60)
        assert len(cluster.events("SuccessfulCreate")) == 6  # after 1, 2, 4, 8 and 16 seconds


def test_knows_the_pods_of_earlier_controllers_that_wait_for_their_node() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.nodes(2)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.settle()
        made = cluster.pod_names()
        cluster.restart_controllers()
        cluster.settle()
        assert cluster.pod_names() == made
        assert cluster.get(DAEMONSETS, "agent")["status"]["currentNumberScheduled"] == 2


def test_keeps_the_oldest_of_the_pods_on_a_node() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload("DaemonSet", "agent"))
        cluster.advance(5)
        [first] = cluster.pods()
        second = pod("a-second", node="n0", labels=first["metadata"]["labels"])
        second["metadata"]["ownerReferences"] = first["metadata"]["ownerReferences"]
        cluster.create(second)
        cluster.advance(60)
        assert cluster.pod_names() == [first["metadata"]["name"]]


def test_leaves_old_pods_alone_if_it_is_told_to_wait() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload("DaemonSet", "agent", updateStrategy={"type": "OnDelete"}))
        cluster.advance(1)
        [old] = cluster.pod_names()
        cluster.change(DAEMONSETS, "agent", template__spec__hostNetwork=True)
        cluster.advance(60)
        assert cluster.pod_names() == [old]
        cluster.verbs.delete(PODS, "default", old)
        cluster.advance(60)
        [new] = cluster.pods()
        assert new["metadata"]["name"] != old
        assert cluster.get(DAEMONSETS, "agent")["status"]["updatedNumberScheduled"] == 1


def test_runs_on_the_network_of_a_node_that_has_none_yet() -> None:
    with virtual_cluster(controllers=["daemonsets"]) as cluster:
        cluster.nodes(1, taints=("node.kubernetes.io/network-unavailable:NoSchedule",))
        cluster.create(workload("DaemonSet", "plugin", pod={"hostNetwork": True}))
        cluster.create(workload("DaemonSet", "agent"))
        cluster.advance(1)
        assert [pod["metadata"]["labels"]["app"] for pod in cluster.pods()] == ["plugin"]


def test_goes_to_the_one_node_that_it_names() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("DaemonSet", "agent", pod={"nodeName": "n1"}))
        cluster.advance(1)
        assert hosts(cluster) == {"n1": "Running"}
