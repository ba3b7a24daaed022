from __future__ import annotations

from typing import Any

from tests.cluster.virtual_cluster import PODS, VirtualCluster, pod, virtual_cluster

from mooring.cluster.apiserver.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from mooring.cluster.apiserver.store import Object

WEB = {"app": "web"}


def service(name: str = "web", **spec: Any) -> Object:
    meta = {"name": name, "namespace": "default", "labels": {"tier": "front"}}
    body = {"selector": WEB, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": body}


def web(name: str, **more: Any) -> Object:
    value = pod(name, labels=WEB, **more)
    value["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "name": "http"}]
    return value


def slices(cluster: VirtualCluster) -> list[Object]:
    return cluster.all(ENDPOINT_SLICES)


def test_lists_the_pods_that_a_service_selects() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, zones=("a",))
        cluster.create(service(), web("one"), pod("other"))
        cluster.advance(2)
        running = cluster.get(PODS, "one")
        where = running["status"]["podIP"]
        target = {"kind": "Pod", "namespace": "default", "name": "one"}
        target["uid"] = running["metadata"]["uid"]
        found = cluster.get(ENDPOINTS, "web")
        assert found["subsets"] == [
            {
                "addresses": [{"ip": where, "nodeName": "n0", "targetRef": target}],
                "ports": [{"port": 8080, "protocol": "TCP"}],
            }
        ]
        managed = {"tier": "front", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
        assert found["metadata"]["labels"] == managed
        [one] = slices(cluster)
        assert one["metadata"]["name"].startswith("web-")
        assert one["metadata"]["labels"] == {
            "tier": "front",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }
        assert one["metadata"]["ownerReferences"][0]["name"] == "web"
        assert one["addressType"] == "IPv4"
        assert one["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
        assert one["endpoints"] == [
            {
                "addresses": [where],
                "conditions": {"ready": True, "serving": True, "terminating": False},
                "targetRef": target,
                "nodeName": "n0",
                "zone": "a",
            }
        ]


def test_follows_pods_as_they_come_and_go() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(service(), web("one"))
        cluster.advance(2)
        cluster.create(web("two"))
        cluster.advance(2)
        [subset] = cluster.get(ENDPOINTS, "web")["subsets"]
        assert [one["targetRef"]["name"] for one in subset["addresses"]] == ["one", "two"]
        cluster.verbs.delete(PODS, "default", "one")
        cluster.advance(2)
        [subset] = cluster.get(ENDPOINTS, "web")["subsets"]
        assert [one["targetRef"]["name"] for one in subset["addresses"]] == ["two"]
        [one] = slices(cluster)
        assert [end["targetRef"]["name"] for end in one["endpoints"]] == ["two"]
        cluster.verbs.delete(PODS, "default", "two")
        cluster.advance(2)
        assert "subsets" not in cluster.get(ENDPOINTS, "web")
        [one] = slices(cluster)
        assert not one.get("endpoints")


def test_says_which_pods_are_not_ready() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(service(), service("eager", publishNotReadyAddresses=True), web("one"))
        cluster.advance(2)

        def fail(value: Object) -> None:
            for condition in value["status"]["conditions"]:
                if condition["type"] == "Ready":
                    condition["status"] = "False"

        cluster.verbs.modify(PODS, "default", "one", fail, subresource="status")
        cluster.advance(1)
        [subset] = cluster.get(ENDPOINTS, "web")["subsets"]
        assert [one["targetRef"]["name"] for one in subset["notReadyAddresses"]] == ["one"]
        assert "addresses" not in subset
        [subset] = cluster.get(ENDPOINTS, "eager")["subsets"]
        assert "notReadyAddresses" not in subset
        ready = {
            one["metadata"]["labels"]["kubernetes.io/service-name"]: one["endpoints"][0][
                "conditions"
            ]["ready"]
            for one in slices(cluster)
        }
        assert ready == {"web": False, "eager": True}


def test_splits_many_endpoints_into_slices() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(service(clusterIP="None"))
        for number in range(130):
            cluster.create(web(f"p{number:03}", cpu="1m"))
        cluster.advance(3)
        assert sorted(len(one["endpoints"]) for one in slices(cluster)) == [30, 100]
        assert all(
            one["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
            for one in slices(cluster)
        )
        for number in range(40):
            cluster.verbs.delete(PODS, "default", f"p{number:03}")
        cluster.advance(2)
        assert [len(one["endpoints"]) for one in slices(cluster)] == [90]


def test_restores_what_is_deleted_and_ends_with_the_service() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(service(), web("one"))
        cluster.advance(2)
        cluster.verbs.delete(ENDPOINTS, "default", "web")
        [one] = slices(cluster)
        cluster.verbs.delete(ENDPOINT_SLICES, "default", one["metadata"]["name"])
        cluster.settle()
        assert cluster.get(ENDPOINTS, "web")["subsets"]
        assert len(slices(cluster)) == 1
        cluster.verbs.delete(SERVICES, "default", "web")
        cluster.settle()
        assert cluster.all(ENDPOINTS) == []
        assert slices(cluster) == []


def test_leaves_services_without_a_selector_alone() -> None:
    with virtual_cluster() as cluster:
        cluster.create(service("manual", selector=None))
        subsets = [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 80}]}]
        meta = {"name": "manual", "namespace": "default"}
        value = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets}
        cluster.create(value)
        cluster.settle()
        [subset] = cluster.get(ENDPOINTS, "manual")["subsets"]
        assert subset["addresses"] == [{"ip": "1.2.3.4"}]
        [mirrored] = slices(cluster)
        assert (
            "mirroring" in mirrored["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
        )


def test_leaves_out_pods_that_are_terminating() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(service(), web("one", annotations={"mooring.dev/stop": "10s"}))
        cluster.advance(2)
        cluster.verbs.delete(PODS, "default", "one")
        cluster.advance(2)
        assert "subsets" not in cluster.get(ENDPOINTS, "web")
        [one] = slices(cluster)
        assert one["endpoints"][0]["conditions"] == {
            "ready": False,
            "serving": True,
            "terminating": True,
        }
