"""What happens to objects, called directly as controllers do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.apiserver.compared_requests import Object, pod
from tests.cluster.apiserver.in_process_server import (
    DEPLOYMENTS,
    LEASES,
    MAPS,
    NAMESPACES,
    PODS,
    InProcessServer,
)

from mooring.client.errors import ConflictError, Forbidden, NotFound, StatusError
from mooring.cluster.apiserver.names import label_faults
from mooring.cluster.apiserver.options import WriteOptions
from mooring.cluster.apiserver.store import StoreChange


@pytest.fixture
def server() -> InProcessServer:
    return InProcessServer()


def template() -> Object:
    return {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def deploy(server: InProcessServer) -> Object:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template()}
    return server.create(DEPLOYMENTS, "d", spec=spec)


def changes(server: InProcessServer) -> list[StoreChange]:
    heard: list[StoreChange] = []
    server.store.listen(heard.append)
    return heard


# --- creating ----------------------------------------------------------------------------------


def test_gives_a_new_object_an_identity_of_the_servers_making(server: InProcessServer) -> None:
    made = server.create(MAPS, "m", metadata={"uid": "mine", "creationTimestamp": "1999"})
    meta = made["metadata"]
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-.{12}", meta["uid"]
    )
    assert meta["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert meta["resourceVersion"] == str(server.store.version)


def test_same_dice_make_the_same_cluster() -> None:
    def uids(seed: int) -> list[str]:
        server = InProcessServer(seed=seed)
        return [server.create(MAPS, f"m{number}")["metadata"]["uid"] for number in range(3)]

    assert uids(1) == uids(1) != uids(2)


def test_makes_up_names_that_are_free(server: InProcessServer) -> None:
    value = {"metadata": {"generateName": "web-"}}
    made = {
        server.verbs.create(
            MAPS, dict(value, metadata=dict(value["metadata"])), namespace="default"
        )["metadata"]["name"]
        for _ in range(200)
    }
    assert len(made) == 200
    assert all(name.startswith("web-") and len(name) == 9 for name in made)


@given(st.text("abc-", min_size=1, max_size=80).filter(lambda text: text[0] != "-"))
def test_a_long_prefix_still_makes_a_name(prefix: str) -> None:
    server = InProcessServer()
    value = {"metadata": {"generateName": prefix}}
    name = server.verbs.create(MAPS, value, namespace="default")["metadata"]["name"]
    assert not label_faults(name)


def test_refuses_a_second_object_of_the_same_name(server: InProcessServer) -> None:
    server.create(MAPS, "m")
    with pytest.raises(ConflictError, match='configmaps "m" already exists') as caught:
        server.create(MAPS, "m")
    assert caught.value.reason == "AlreadyExists"


def test_creates_only_where_there_is_a_namespace(server: InProcessServer) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        server.verbs.create(MAPS, {"metadata": {"name": "m"}}, namespace="nowhere")


def test_a_dry_run_leaves_no_trace(server: InProcessServer) -> None:
    heard = changes(server)
    version = server.store.version
    made = server.verbs.create(
        MAPS, {"metadata": {"name": "m"}}, namespace="default", options=WriteOptions(dry_run=True)
    )
    assert "uid" in made["metadata"]
    assert "resourceVersion" not in made["metadata"]
    server.create(MAPS, "n")
    server.verbs.delete(MAPS, "default", "n", dry_run=True)
    server.verbs.delete(NAMESPACES, "", "kube-node-lease", dry_run=True)
    assert (server.names(MAPS), server.store.version, len(heard)) == (["n"], version + 1, 1)


# --- changing ----------------------------------------------------------------------------------


def put(server: InProcessServer, value: Object, **options: Any) -> Object:
    return server.verbs.replace(
        MAPS, value, namespace="default", name=value["metadata"]["name"], **options
    )


def test_refuses_an_update_of_an_old_version(server: InProcessServer) -> None:
    first = server.create(MAPS, "m")
    second = put(server, {**first, "data": {"a": "1"}})
    with pytest.raises(
        ConflictError, match="the object has been modified; please apply your changes"
    ):
        put(server, {**first, "metadata": {**first["metadata"], "resourceVersion": "1"}})
    meta = {**second["metadata"], "resourceVersion": ""}
    assert put(server, {"metadata": meta, "data": {"a": "2"}})["data"] == {"a": "2"}


def test_an_update_that_changes_nothing_is_no_news(server: InProcessServer) -> None:
    value = server.create(MAPS, "m", data={"a": "b"}, metadata={"labels": {"x": "y"}})
    heard = changes(server)
    version = server.store.version
    again = put(server, {"metadata": {"name": "m", "labels": {"x": "y"}}, "data": {"a": "b"}})
    assert again["metadata"] == value["metadata"]
    assert (server.store.version, heard) == (version, [])


def test_a_lease_says_which_version_it_renews(server: InProcessServer) -> None:
    made = server.verbs.replace(
        LEASES, {"metadata": {"name": "l"}, "spec": {}}, namespace="default", name="l"
    )
    assert made["metadata"]["uid"]
    with pytest.raises(StatusError, match="must be specified for an update"):
        server.verbs.replace(
            LEASES,
            {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}},
            namespace="default",
            name="l",
        )


def test_spec_and_status_have_doors_of_their_own(server: InProcessServer) -> None:
    deploy(server)

    def both(value: Object) -> None:
        value["spec"]["replicas"] = 5
        value["status"] = {"replicas": 2}

    seen = server.verbs.modify(DEPLOYMENTS, "default", "d", both)
    assert (seen["spec"]["replicas"], seen["status"]) == (5, {})
    seen = server.verbs.modify(DEPLOYMENTS, "default", "d", both, subresource="status")
    assert seen["status"] == {"replicas": 2}

    def shrink(value: Object) -> None:
        value["spec"]["replicas"] = 0
        value["status"]["replicas"] = 1

    seen = server.verbs.modify(DEPLOYMENTS, "default", "d", shrink, subresource="status")
    assert (seen["spec"]["replicas"], seen["status"]) == (5, {"replicas": 1})


def test_only_a_new_spec_is_a_new_generation(server: InProcessServer) -> None:
    def generation_after(change: Any, subresource: str = "") -> int:
        seen = server.verbs.modify(DEPLOYMENTS, "default", "d", change, subresource=subresource)
        return int(seen["metadata"]["generation"])

    def relabel(value: Object) -> None:
        value["metadata"]["labels"] = {"x": "y"}

    def report(value: Object) -> None:
        value["status"] = {"replicas": 1}

    def grow(value: Object) -> None:
        value["spec"]["replicas"] = 3

    assert deploy(server)["metadata"]["generation"] == 1
    assert generation_after(relabel) == 1
    assert generation_after(report, "status") == 1
    assert generation_after(grow) == 2
    assert generation_after(grow) == 2


def test_what_comes_back_can_be_changed_without_harm(server: InProcessServer) -> None:
    made = server.create(MAPS, "m", data={"a": "b"})
    made["data"]["a"] = "spoilt"
    server.verbs.get(MAPS, "default", "m")["data"]["a"] = "spoilt"
    assert server.verbs.get(MAPS, "default", "m")["data"] == {"a": "b"}


def test_scales_what_has_replicas(server: InProcessServer) -> None:
    deploy(server)

    def grow(scale: Object) -> Object:
        return {**scale, "spec": {"replicas": 4}}

    scale = server.verbs.modify(DEPLOYMENTS, "default", "d", grow, subresource="scale")
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"] == {"replicas": 0, "selector": "a=b"}
    assert server.verbs.get(DEPLOYMENTS, "default", "d")["spec"]["replicas"] == 4


# --- deleting ----------------------------------------------------------------------------------


def test_a_finalizer_keeps_an_object_until_it_is_taken_away(server: InProcessServer) -> None:
    server.create(MAPS, "m", metadata={"finalizers": ["a.b/c"]})
    marked = server.verbs.delete(MAPS, "default", "m")
    assert marked["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:20Z"
    version = server.store.version
    server.now += 60
    assert server.verbs.delete(MAPS, "default", "m")["metadata"] == marked["metadata"]
    assert server.store.version == version

    def let_go(value: Object) -> None:
        value["metadata"]["finalizers"] = []

    server.verbs.modify(MAPS, "default", "m", let_go)
    assert server.names(MAPS) == []


def test_deletes_only_the_object_that_is_meant(server: InProcessServer) -> None:
    value = server.create(MAPS, "m")
    with pytest.raises(ConflictError, match="does not match the UID in record"):
        server.verbs.delete(MAPS, "default", "m", uid="other")
    with pytest.raises(ConflictError, match="does not match the ResourceVersion in record"):
        server.verbs.delete(MAPS, "default", "m", version="1")
    last = server.verbs.delete(MAPS, "default", "m", uid=value["metadata"]["uid"])
    assert int(last["metadata"]["resourceVersion"]) == server.store.version
    with pytest.raises(NotFound, match='configmaps "m" not found'):
        server.verbs.delete(MAPS, "default", "m")


@pytest.mark.parametrize(
    ("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_leaves_dependents_to_a_garbage_collector(
    server: InProcessServer, propagation: str, finalizer: str
) -> None:
    server.create(MAPS, "m")
    marked = server.verbs.delete(MAPS, "default", "m", propagation=propagation)
    assert marked["metadata"]["finalizers"] == [finalizer]


# --- namespaces --------------------------------------------------------------------------------


def fill(server: InProcessServer, node: str = "") -> None:
    server.create(NAMESPACES, "space")
    for name in "abc":
        server.verbs.create(MAPS, {"metadata": {"name": name}}, namespace="space")
    spec = {"nodeName": node} if node else {}
    server.verbs.create(PODS, pod("p", spec), namespace="space")


def test_a_namespace_takes_everything_along(server: InProcessServer) -> None:
    fill(server)
    seen = server.verbs.delete(NAMESPACES, "", "space")
    assert seen["status"]["phase"] == "Terminating"
    assert "space" not in server.names(NAMESPACES)
    assert (server.names(MAPS), server.names(PODS)) == ([], [])


def test_a_namespace_waits_for_the_last_pod(server: InProcessServer) -> None:
    fill(server, node="n1")
    server.verbs.delete(NAMESPACES, "", "space")
    assert server.names(MAPS) == ["a", "b", "c"]  # after the pods
    with pytest.raises(Forbidden, match="because it is being terminated"):
        server.verbs.create(MAPS, {"metadata": {"name": "late"}}, namespace="space")
    assert server.verbs.delete(NAMESPACES, "", "space")["status"]["phase"] == "Terminating"
    assert "space" in server.names(NAMESPACES)
    server.verbs.delete(PODS, "space", "p", grace=0)
    assert server.names(MAPS) == []
    assert "space" not in server.names(NAMESPACES)


def test_a_namespace_goes_on_ending_after_a_restart(server: InProcessServer) -> None:
    fill(server, node="n1")
    server.verbs.delete(NAMESPACES, "", "space")
    again = InProcessServer(server.store)
    again.verbs.delete(PODS, "space", "p", grace=0)
    assert "space" not in again.names(NAMESPACES)


def test_a_cluster_keeps_what_it_needs(server: InProcessServer) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        server.verbs.delete(NAMESPACES, "", "default")
    assert server.names(NAMESPACES) == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_an_update_creates_a_lease_but_not_in_place_of_one_that_is_gone(
    server: InProcessServer,
) -> None:
    old = server.create(LEASES, "x", spec={"holderIdentity": "a"})
    server.verbs.delete(LEASES, "default", "x")
    with pytest.raises(ConflictError, match=f"UID in precondition: {old['metadata']['uid']}, UID"):
        server.verbs.replace(LEASES, old, namespace="default", name="x")
    del old["metadata"]["uid"]
    new = server.verbs.replace(LEASES, old, namespace="default", name="x")
    assert new["spec"] == {"holderIdentity": "a"}
