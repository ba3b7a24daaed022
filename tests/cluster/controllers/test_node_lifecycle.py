from __future__ import annotations

from tests.cluster.virtual_cluster import NODES, VirtualCluster, pod, virtual_cluster

from mooring.cluster.apiserver.store import Object


def taints(cluster: VirtualCluster) -> list[str]:
    found = cluster.get(NODES, "n0")["spec"].get("taints", ())
    return [f"{one['key']}:{one['effect']}" for one in found]


def test_taints_a_node_that_is_cordoned() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(taints=("mine:NoSchedule",))
        cluster.change(NODES, "n0", unschedulable=True)
        cluster.settle()
        assert taints(cluster) == ["mine:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"]
        cluster.change(NODES, "n0", unschedulable=False)
        cluster.settle()
        assert taints(cluster) == ["mine:NoSchedule"]


def test_taints_a_node_that_is_not_ready() -> None:
    effects = ("NoSchedule", "NoExecute")
    wanted_taints = {
        "False": [f"node.kubernetes.io/not-ready:{effect}" for effect in effects],
        "Unknown": [f"node.kubernetes.io/unreachable:{effect}" for effect in effects],
        "True": [],
    }
    with virtual_cluster() as cluster:
        cluster.nodes()
        for status, wanted in wanted_taints.items():

            def report(value: Object, status: str = status) -> None:
                value["status"]["conditions"][-1]["status"] = status

            cluster.verbs.modify(NODES, "", "n0", report, subresource="status")
            cluster.settle()
            assert taints(cluster) == wanted


def test_deletes_the_pods_of_a_node_that_stays_away() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(2)
        cluster.create(pod("p", node="n0"), pod("q", node="n1"))
        cluster.advance(1)
        cluster.verbs.delete(NODES, "", "n0")
        cluster.advance(30)
        assert cluster.pod_names() == ["p", "q"]
        cluster.advance(15)
        assert cluster.pod_names() == ["q"]


def test_spares_the_pods_of_a_node_that_comes_back() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, name="n0")
        cluster.create(pod("p", node="n0"))
        cluster.advance(1)
        cluster.verbs.delete(NODES, "", "n0")
        cluster.advance(10)
        cluster.nodes(1, name="n0")
        cluster.advance(100)
        assert cluster.phases() == {"p": "Running"}
