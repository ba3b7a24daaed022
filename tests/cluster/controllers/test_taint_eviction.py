from __future__ import annotations

from typing import Any

from tests.cluster.virtual_cluster import NODES, PODS, VirtualCluster, pod, virtual_cluster

from mooring.cluster.apiserver.store import Object

TAINT = {"key": "maintenance", "effect": "NoExecute"}


def tolerating(seconds: int | None = None, key: str = "maintenance") -> dict[str, Any]:
    found: dict[str, Any] = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def test_evicts_pods_that_do_not_tolerate_the_taint() -> None:
    with virtual_cluster(warnings_only=False) as cluster:
        cluster.nodes(2)
        cluster.create(
            pod("gone", node="n0"),
            pod("later", node="n0", tolerations=[tolerating(10)]),
            pod("stays", node="n0", tolerations=[tolerating()]),
            pod("elsewhere", node="n1"),
        )
        cluster.advance(1)
        seen: list[Object] = []
        cluster.store.listen(
            lambda change: seen.append(change.new.decoded()) if change.resource == "pods" else None
        )
        cluster.change(NODES, "n0", taints=[TAINT])
        cluster.advance(2)
        assert cluster.pod_names() == ["elsewhere", "later", "stays"]
        conditions = next(one for one in seen if "deletionTimestamp" in one["metadata"])["status"]
        [reason] = [
            one["reason"] for one in conditions["conditions"] if one["type"] == "DisruptionTarget"
        ]
        assert reason == "DeletionByTaintManager"
        [event] = cluster.events("TaintManagerEviction")
        assert event["message"] == "Marking for deletion Pod default/gone"
        cluster.advance(10)
        assert cluster.pod_names() == ["elsewhere", "stays"]


def test_spares_pods_if_the_taint_goes_in_time() -> None:
    with virtual_cluster(warnings_only=False) as cluster:
        cluster.nodes(1)
        cluster.create(pod("p", node="n0", tolerations=[tolerating(10), tolerating(30, "other")]))
        cluster.advance(1)
        cluster.change(NODES, "n0", taints=[TAINT])
        cluster.advance(8)
        cluster.change(NODES, "n0", taints=[])
        cluster.advance(60)
        assert cluster.pod_names() == ["p"]
        assert "Cancelling" in cluster.events("TaintManagerEviction")[0]["message"]
        # A new taint, a new time; the shortest of two counts.
        cluster.change(NODES, "n0", taints=[TAINT, {**TAINT, "key": "other"}])
        cluster.advance(9)
        assert cluster.pod_names() == ["p"]
        cluster.advance(2)
        assert cluster.pod_names() == []


def fail(cluster: VirtualCluster, status: str) -> None:
    def report(value: Object) -> None:
        value["status"]["conditions"][-1]["status"] = status

    cluster.verbs.modify(NODES, "", "n0", report, subresource="status")


def test_evicts_from_a_node_that_is_not_ready_after_five_minutes() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(pod("p", node="n0"))
        cluster.advance(1)
        fail(cluster, "Unknown")
        cluster.advance(299)
        assert "deletionTimestamp" not in cluster.get(PODS, "p")["metadata"]
        cluster.advance(2)
        # No kubelet confirms that it has ended.
        assert "deletionTimestamp" in cluster.get(PODS, "p")["metadata"]
        fail(cluster, "True")
        cluster.advance(1)
        assert cluster.pod_names() == []
