from __future__ import annotations

from tests.cluster.virtual_cluster import PODS, VirtualCluster, pod, virtual_cluster, workload

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
