from __future__ import annotations

from tests.cluster.virtual_cluster import (
    NAMESPACES,
    PODS,
    VirtualCluster,
    pod,
    virtual_cluster,
    workload,
)

from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.deployments import DEPLOYMENTS
from mooring.cluster.controllers.replicasets import REPLICASETS

CONFIG_MAPS = known("configmaps")


def config_map(name: str, *owners: Object) -> Object:
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
        for owner in owners
    ]
    meta = {"name": name, "namespace": "default", "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def left(cluster: VirtualCluster) -> list[str]:
    return [value["metadata"]["name"] for value in cluster.all(CONFIG_MAPS)]


def test_deletes_what_belongs_to_something_deleted() -> None:
    with virtual_cluster() as cluster:
        cluster.create(config_map("a"))
        cluster.create(config_map("b", cluster.get(CONFIG_MAPS, "a")))
        cluster.create(config_map("c", cluster.get(CONFIG_MAPS, "b")), config_map("free"))
        cluster.settle()
        cluster.verbs.delete(CONFIG_MAPS, "default", "a")
        cluster.settle()
        assert left(cluster) == ["free"]


def test_deletes_what_belongs_to_something_that_never_was() -> None:
    with virtual_cluster() as cluster:
        ghost = {"metadata": {"name": "ghost", "uid": "no-such-uid"}}
        cluster.create(config_map("a", ghost))
        cluster.settle()
        assert left(cluster) == []


def test_keeps_what_has_another_owner() -> None:
    with virtual_cluster() as cluster:
        cluster.create(config_map("a"), config_map("b"))
        both = cluster.get(CONFIG_MAPS, "a"), cluster.get(CONFIG_MAPS, "b")
        cluster.create(config_map("c", *both))
        cluster.verbs.delete(CONFIG_MAPS, "default", "a")
        cluster.settle()
        [owner] = cluster.get(CONFIG_MAPS, "c")["metadata"]["ownerReferences"]
        assert owner["name"] == "b"
        cluster.verbs.delete(CONFIG_MAPS, "default", "b")
        cluster.settle()
        assert left(cluster) == []


def test_deletes_dependents_first_if_asked_to() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(
            workload("Deployment", "web", replicas=2, annotations={"mooring.dev/stop": "5s"})
        )
        cluster.advance(1)
        cluster.verbs.delete(DEPLOYMENTS, "default", "web", propagation="Foreground")
        cluster.advance(1)
        assert len(cluster.all(DEPLOYMENTS)) == len(cluster.all(REPLICASETS)) == 1
        assert all("deletionTimestamp" in found["metadata"] for found in cluster.pods())
        cluster.advance(10)
        assert cluster.all(DEPLOYMENTS) == cluster.all(REPLICASETS) == cluster.pods() == []


def test_leaves_orphans_behind_if_asked_to() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("ReplicaSet", "web", replicas=2))
        cluster.advance(1)
        cluster.verbs.delete(REPLICASETS, "default", "web", propagation="Orphan")
        cluster.advance(60)
        assert cluster.all(REPLICASETS) == []
        assert list(cluster.phases().values()) == ["Running", "Running"]
        assert all("ownerReferences" not in found["metadata"] for found in cluster.pods())


def test_finds_what_was_left_before_it_came() -> None:
    with virtual_cluster(controllers=()) as cluster:
        cluster.create(config_map("a"))
        cluster.create(config_map("b", cluster.get(CONFIG_MAPS, "a")), config_map("c"))
        cluster.create(config_map("d", cluster.get(CONFIG_MAPS, "c")))
        cluster.verbs.delete(CONFIG_MAPS, "default", "a")
        cluster.restart_controllers()
        cluster.settle()
        assert left(cluster) == ["c", "d"]


def test_takes_no_offence_at_a_pod_that_is_gone_already() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("ReplicaSet", "web", replicas=1))
        cluster.advance(1)
        cluster.verbs.delete(PODS, "default", cluster.pod_names()[0], grace=0)
        cluster.verbs.delete(REPLICASETS, "default", "web")
        cluster.create(pod("other"))
        cluster.advance(1)
        assert cluster.pod_names() == ["other"]


def blocking(value: Object) -> Object:
    for owner in value["metadata"]["ownerReferences"]:
        owner["blockOwnerDeletion"] = True
    return value


def test_foreground_deletion_keeps_what_has_another_owner() -> None:
    with virtual_cluster() as cluster:
        cluster.create(config_map("a"), config_map("b"))
        both = cluster.get(CONFIG_MAPS, "a"), cluster.get(CONFIG_MAPS, "b")
        cluster.create(blocking(config_map("dep", *both)))
        cluster.create(blocking(config_map("own", both[0])))
        cluster.settle()
        cluster.verbs.delete(CONFIG_MAPS, "default", "a", propagation="Foreground")
        cluster.settle()
        assert left(cluster) == ["b", "dep"]
        [owner] = cluster.get(CONFIG_MAPS, "dep")["metadata"]["ownerReferences"]
        assert owner["name"] == "b"
        cluster.verbs.delete(CONFIG_MAPS, "default", "b", propagation="Foreground")
        cluster.settle()
        assert left(cluster) == []


def test_foreground_deletion_of_both_owners_deletes_the_dependent() -> None:
    with virtual_cluster() as cluster:
        cluster.create(config_map("a"), config_map("b"))
        both = cluster.get(CONFIG_MAPS, "a"), cluster.get(CONFIG_MAPS, "b")
        held = blocking(config_map("dep", *both))
        held["metadata"]["finalizers"] = ["example.com/wait"]
        cluster.create(held)
        cluster.settle()
        for name in ("a", "b"):
            cluster.verbs.delete(CONFIG_MAPS, "default", name, propagation="Foreground")
        cluster.settle()
        assert left(cluster) == ["a", "b", "dep"]  # both wait for it

        def free(value: Object) -> None:
            value["metadata"]["finalizers"] = []

        cluster.verbs.modify(CONFIG_MAPS, "default", "dep", free)
        cluster.settle()
        assert left(cluster) == []


def test_collects_a_circle_of_owners() -> None:
    with virtual_cluster() as cluster:
        for name in "abc":
            cluster.create(config_map(name))

        def own(name: str, owner: str) -> None:
            made = blocking(config_map(name, cluster.get(CONFIG_MAPS, owner)))
            references = made["metadata"]["ownerReferences"]

            def change(value: Object) -> None:
                value["metadata"]["ownerReferences"] = references

            cluster.verbs.modify(CONFIG_MAPS, "default", name, change)

        for name, owner in (("a", "c"), ("b", "a"), ("c", "b")):
            own(name, owner)
        cluster.settle()
        assert left(cluster) == ["a", "b", "c"]
        cluster.verbs.delete(CONFIG_MAPS, "default", "a", propagation="Foreground")
        cluster.settle()
        assert left(cluster) == []


def test_deletes_the_pods_of_a_namespace_first() -> None:
    with virtual_cluster() as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        held = {"finalizers": ["example.com/wait"], "namespace": "new"}
        last = pod("last")
        last["metadata"] |= held
        cluster.create(last, {**config_map("m"), "metadata": {"name": "m", "namespace": "new"}})
        cluster.settle()
        cluster.verbs.delete(NAMESPACES, "", "new")
        cluster.settle()
        assert "deletionTimestamp" not in cluster.get(CONFIG_MAPS, "m", "new")["metadata"]
        said = {one["type"]: one for one in cluster.get(NAMESPACES, "new")["status"]["conditions"]}
        assert said["NamespaceContentRemaining"]["status"] == "True"
        assert "pods. has 1 resource instances" in said["NamespaceContentRemaining"]["message"]
        assert said["NamespaceFinalizersRemaining"]["message"] == (
            "Some content in the namespace has finalizers remaining: "
            "example.com/wait in 1 resource instances"
        )

        def free(value: Object) -> None:
            value["metadata"]["finalizers"] = []

        cluster.verbs.modify(PODS, "new", "last", free)
        cluster.advance(1)
        assert [one["metadata"]["name"] for one in cluster.all(NAMESPACES)] == [
            "default",
            "kube-system",
        ]
