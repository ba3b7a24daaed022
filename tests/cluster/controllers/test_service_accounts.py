from __future__ import annotations

from tests.cluster.virtual_cluster import names, virtual_cluster, workload

from mooring.cluster.apiserver.bootstrap import publish_authority
from mooring.cluster.apiserver.resources import CONFIG_MAPS, NAMESPACES
from mooring.cluster.controllers.service_accounts import ROOT_CA, SERVICE_ACCOUNTS


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


def test_publishes_the_ca_of_the_server_in_every_namespace() -> None:
    with virtual_cluster() as cluster:
        cluster.settle()
        assert cluster.all(CONFIG_MAPS) == []  # without TLS there is none
        publish_authority(cluster.verbs, b"first")
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
        cluster.settle()
        for namespace in ("default", "kube-system", "new"):
            assert cluster.get(CONFIG_MAPS, ROOT_CA, namespace)["data"] == {"ca.crt": "first"}
        cluster.verbs.delete(CONFIG_MAPS, "new", ROOT_CA)
        cluster.verbs.modify(
            CONFIG_MAPS, "default", ROOT_CA, lambda value: {**value, "data": {"ca.crt": "own"}}
        )
        cluster.settle()
        publish_authority(cluster.verbs, b"second")
        cluster.settle()
        for namespace in ("default", "kube-system", "new"):
            assert cluster.get(CONFIG_MAPS, ROOT_CA, namespace)["data"] == {"ca.crt": "second"}
