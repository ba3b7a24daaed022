from __future__ import annotations

from tests.cluster.stage import names, stage, workload

from mooring.cluster.controllers.namespaces import NAMESPACES, SERVICE_ACCOUNTS


def test_gives_every_namespace_an_account() -> None:
    with stage() as play:
        play.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        play.settle()
        for namespace in ("default", "kube-system", "new"):
            assert names(play.all(SERVICE_ACCOUNTS, namespace)) == ["default"]


def test_makes_the_account_anew() -> None:
    with stage() as play:
        play.settle()
        play.verbs.delete(SERVICE_ACCOUNTS, "default", "default")
        play.settle()
        assert names(play.all(SERVICE_ACCOUNTS)) == ["default"]


def test_ends_with_all_that_is_in_it() -> None:
    with stage() as play:
        play.nodes(3)
        play.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        value = workload("Deployment", "web", replicas=3)
        value["metadata"]["namespace"] = "new"
        play.create(value)
        play.advance(1)
        assert len(play.pods("new")) == 3
        play.verbs.delete(NAMESPACES, "", "new")
        play.advance(2)
        assert play.pods("new") == []
        assert names(play.all(NAMESPACES)) == ["default", "kube-system"]
