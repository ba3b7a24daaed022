from __future__ import annotations

from typing import Any

from tests.cluster.virtual_cluster import NODES, PODS, VirtualCluster, pod, virtual_cluster

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.resource_claims import (
    CLAIM_TEMPLATES,
    FINALIZER,
    POD_CLAIM_NAME,
    RESOURCE_CLAIMS,
)

ONE_GPU = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ALLOCATION = {
    "devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}]}
}


def template(name: str = "one-gpu") -> Object:
    meta = {"name": name, "namespace": "default"}
    inner = {"metadata": {"labels": {"team": "ml"}}, "spec": ONE_GPU}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": meta,
        "spec": inner,
    }


def claim(name: str) -> Object:
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": ONE_GPU,
    }


def using(name: str, **entry: str) -> Object:
    return pod(name, resourceClaims=[{"name": "gpu", **entry}])


def claims(cluster: VirtualCluster) -> list[Object]:
    return cluster.all(RESOURCE_CLAIMS)


def allocate(cluster: VirtualCluster, name: str, *users: str) -> None:
    """As a scheduler does: the finalizer first, then the status."""

    def protect(value: Object) -> None:
        value["metadata"]["finalizers"] = [FINALIZER]

    def reserve(value: Object) -> None:
        pods = [cluster.get(PODS, user) for user in users]
        value["status"] = {
            "allocation": ALLOCATION,
            "reservedFor": [
                {"resource": "pods", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]}
                for one in pods
            ],
        }

    cluster.verbs.modify(RESOURCE_CLAIMS, "default", name, protect)
    cluster.verbs.modify(RESOURCE_CLAIMS, "default", name, reserve, subresource="status")


def made(cluster: VirtualCluster) -> str:
    """A pod with a claim from a template; the name of the claim."""
    cluster.create(template(), using("web", resourceClaimTemplateName="one-gpu"))
    cluster.settle()
    [found] = claims(cluster)
    return str(found["metadata"]["name"])


def test_makes_a_claim_of_a_template_and_names_it_in_the_status() -> None:
    with virtual_cluster(binds=False) as cluster:
        name = made(cluster)
        assert name.startswith("web-gpu-")
        [found] = claims(cluster)
        assert found["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"
        assert found["metadata"]["labels"] == {"team": "ml"}
        assert found["metadata"]["annotations"] == {POD_CLAIM_NAME: "gpu"}
        [owner] = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "web", True)
        status = cluster.get(PODS, "web")["status"]
        assert status["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": name}]


def test_a_missing_template_is_told_and_awaited() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.create(using("web", resourceClaimTemplateName="one-gpu"))
        cluster.settle()
        assert claims(cluster) == []
        [event] = cluster.events("FailedResourceClaimCreation")
        assert 'ResourceClaimTemplate "one-gpu" not found' in event["message"]
        cluster.create(template())
        cluster.settle()
        assert len(claims(cluster)) == 1


def test_a_claim_that_was_made_before_a_crash_is_used() -> None:
    with virtual_cluster(binds=False) as cluster:
        name = made(cluster)

        def forget(value: Object) -> None:
            del value["status"]["resourceClaimStatuses"]

        cluster.verbs.modify(PODS, "default", "web", forget, subresource="status")
        cluster.settle()
        status = cluster.get(PODS, "web")["status"]["resourceClaimStatuses"]
        assert status == [{"name": "gpu", "resourceClaimName": name}]
        assert len(claims(cluster)) == 1


def test_a_long_name_is_cut() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.create(template(), using("w" * 63, resourceClaimTemplateName="one-gpu"))
        cluster.settle()
        [found] = claims(cluster)
        assert len(found["metadata"]["name"]) <= 63


def test_a_deleted_pod_gives_its_device_back_and_takes_its_claim_along() -> None:
    with virtual_cluster(binds=False) as cluster:
        name = made(cluster)
        allocate(cluster, name, "web")
        cluster.settle()
        assert "allocation" in cluster.get(RESOURCE_CLAIMS, name)["status"]
        cluster.verbs.delete(PODS, "default", "web", grace=0)
        cluster.advance(5)
        assert claims(cluster) == []


def test_a_pod_that_has_ended_takes_its_claim_along() -> None:
    with virtual_cluster(binds=False) as cluster:
        name = made(cluster)
        allocate(cluster, name, "web")
        end(cluster, "web")
        cluster.advance(5)
        assert claims(cluster) == []


def end(cluster: VirtualCluster, name: str) -> None:
    def succeed(value: Object) -> None:
        value["status"]["phase"] = "Succeeded"

    cluster.verbs.modify(PODS, "default", name, succeed, subresource="status")


def test_a_shared_claim_is_given_back_with_its_last_user() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.create(claim("shared"))
        cluster.create(*(using(name, resourceClaimName="shared") for name in "ab"))
        allocate(cluster, "shared", "a", "b")
        cluster.verbs.delete(PODS, "default", "a", grace=0)
        cluster.settle()
        found = cluster.get(RESOURCE_CLAIMS, "shared")
        assert [user["name"] for user in found["status"]["reservedFor"]] == ["b"]
        assert "allocation" in found["status"]
        end(cluster, "b")
        cluster.settle()
        found = cluster.get(RESOURCE_CLAIMS, "shared")
        assert found.get("status", {}) == {}
        assert found["metadata"].get("finalizers", []) == []


def test_a_claim_that_is_allocated_and_used_by_no_pod_yet_stays() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.create(claim("early"))
        allocate(cluster, "early")
        cluster.settle()
        assert "allocation" in cluster.get(RESOURCE_CLAIMS, "early")["status"]
        cluster.verbs.delete(RESOURCE_CLAIMS, "default", "early")
        cluster.settle()
        assert claims(cluster) == []


def test_a_claim_that_a_scheduler_is_about_to_allocate_stays_protected() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.create(claim("next"))

        def protect(value: Object) -> None:
            value["metadata"]["finalizers"] = [FINALIZER]

        cluster.verbs.modify(RESOURCE_CLAIMS, "default", "next", protect)
        cluster.settle()
        assert cluster.get(RESOURCE_CLAIMS, "next")["metadata"]["finalizers"] == [FINALIZER]


def test_other_users_than_pods_keep_a_claim() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.create(claim("kept"))
        allocate(cluster, "kept")

        def reserve(value: Object) -> None:
            user: dict[str, Any] = {"apiGroup": "example.com", "resource": "jobs"}
            value["status"]["reservedFor"] = [{**user, "name": "j", "uid": "u"}]

        cluster.verbs.modify(RESOURCE_CLAIMS, "default", "kept", reserve, subresource="status")
        cluster.advance(5)
        assert "allocation" in cluster.get(RESOURCE_CLAIMS, "kept")["status"]


def test_goes_on_after_a_restart() -> None:
    with virtual_cluster(binds=False) as cluster:
        name = made(cluster)
        allocate(cluster, name, "web")
        cluster.loop.run_until_complete(cluster.controllers.close())
        end(cluster, "web")
        cluster.restart_controllers()
        cluster.advance(5)
        assert claims(cluster) == []


def test_templates_and_nodes_are_left_alone() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.nodes(1)
        made(cluster)
        assert len(cluster.all(CLAIM_TEMPLATES)) == 1
        assert len(cluster.all(NODES)) == 1
