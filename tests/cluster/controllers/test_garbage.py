from __future__ import annotations

from tests.cluster.stage import PODS, Stage, pod, stage, workload

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


def left(play: Stage) -> list[str]:
    return [value["metadata"]["name"] for value in play.all(CONFIG_MAPS)]


def test_deletes_what_belongs_to_something_deleted() -> None:
    with stage() as play:
        play.create(config_map("a"))
        play.create(config_map("b", play.get(CONFIG_MAPS, "a")))
        play.create(config_map("c", play.get(CONFIG_MAPS, "b")), config_map("free"))
        play.settle()
        play.verbs.delete(CONFIG_MAPS, "default", "a")
        play.settle()
        assert left(play) == ["free"]


def test_deletes_what_belongs_to_something_that_never_was() -> None:
    with stage() as play:
        ghost = {"metadata": {"name": "ghost", "uid": "no-such-uid"}}
        play.create(config_map("a", ghost))
        play.settle()
        assert left(play) == []


def test_keeps_what_has_another_owner() -> None:
    with stage() as play:
        play.create(config_map("a"), config_map("b"))
        both = play.get(CONFIG_MAPS, "a"), play.get(CONFIG_MAPS, "b")
        play.create(config_map("c", *both))
        play.verbs.delete(CONFIG_MAPS, "default", "a")
        play.settle()
        [owner] = play.get(CONFIG_MAPS, "c")["metadata"]["ownerReferences"]
        assert owner["name"] == "b"
        play.verbs.delete(CONFIG_MAPS, "default", "b")
        play.settle()
        assert left(play) == []


def test_deletes_dependents_first_if_asked_to() -> None:
    with stage() as play:
        play.nodes()
        play.create(
            workload("Deployment", "web", replicas=2, annotations={"mooring.dev/stop": "5s"})
        )
        play.advance(1)
        play.verbs.delete(DEPLOYMENTS, "default", "web", propagation="Foreground")
        play.advance(1)
        assert len(play.all(DEPLOYMENTS)) == len(play.all(REPLICASETS)) == 1
        assert all("deletionTimestamp" in found["metadata"] for found in play.pods())
        play.advance(10)
        assert play.all(DEPLOYMENTS) == play.all(REPLICASETS) == play.pods() == []


def test_leaves_orphans_behind_if_asked_to() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("ReplicaSet", "web", replicas=2))
        play.advance(1)
        play.verbs.delete(REPLICASETS, "default", "web", propagation="Orphan")
        play.advance(60)
        assert play.all(REPLICASETS) == []
        assert list(play.phases().values()) == ["Running", "Running"]
        assert all("ownerReferences" not in found["metadata"] for found in play.pods())


def test_finds_what_was_left_before_it_came() -> None:
    with stage(controllers=()) as play:
        play.create(config_map("a"))
        play.create(config_map("b", play.get(CONFIG_MAPS, "a")), config_map("c"))
        play.create(config_map("d", play.get(CONFIG_MAPS, "c")))
        play.verbs.delete(CONFIG_MAPS, "default", "a")
        play.restart_controllers()
        play.settle()
        assert left(play) == ["c", "d"]


def test_takes_no_offence_at_a_pod_that_is_gone_already() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("ReplicaSet", "web", replicas=1))
        play.advance(1)
        play.verbs.delete(PODS, "default", play.pod_names()[0], grace=0)
        play.verbs.delete(REPLICASETS, "default", "web")
        play.create(pod("other"))
        play.advance(1)
        assert play.pod_names() == ["other"]
