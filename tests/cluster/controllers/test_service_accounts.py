from __future__ import annotations

from tests.cluster.virtual_cluster import names, virtual_cluster, workload

from mooring.cluster.apiserver.resources import NAMESPACES
from mooring.cluster.controllers.service_accounts import SERVICE_ACCOUNTS


def test_gives_every_namespace_an_account() -> None:
    with virtual_cluster() as cluster:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        cluster.settle()
        for namespace in ("default", "kube-system", "new"):
            assert names(cluster.all(SERVICE_ACCOUNTS, namespace)) == ["default"]


def test_makes_the_account_anew() -> None:
    with virtual_cluster() as cluster:
        cluster.settle()
        cluster.verbs.delete(SERVICE_ACCOUNTS, "default", "default")
        cluster.settle()
        assert names(cluster.all(SERVICE_ACCOUNTS)) == ["default"]


def test_ends_with_all_that_is_in_it() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        value = workload("Deployment", "web", replicas=3)
        value["metadata"]["namespace"] = "new"
        cluster.create(value)
        cluster.advance(1)
        assert len(cluster.pods("new")) == 3
        cluster.verbs.delete(NAMESPACES, "", "new")
        cluster.advance(2)
        assert cluster.pods("new") == []
        assert names(cluster.all(NAMESPACES)) == ["default", "kube-system"]
