"""What happens to objects, called directly as controllers do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.apiserver.both import Object, pod
from tests.cluster.apiserver.desk import DEPLOYMENTS, LEASES, MAPS, NAMESPACES, PODS, Desk

from mooring.client.errors import ConflictError, Forbidden, NotFound, StatusError
from mooring.cluster.apiserver.names import label_faults
from mooring.cluster.apiserver.store import Change


@pytest.fixture
def desk() -> Desk:
    return Desk()


def template() -> Object:
    return {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def deploy(desk: Desk) -> Object:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template()}
    return desk.create(DEPLOYMENTS, "d", spec=spec)


def changes(desk: Desk) -> list[Change]:
    heard: list[Change] = []
    desk.store.listen(heard.append)
    return heard


# --- creating ----------------------------------------------------------------------------------


def test_gives_a_new_object_an_identity_of_the_servers_making(desk: Desk) -> None:
    made = desk.create(MAPS, "m", metadata={"uid": "mine", "creationTimestamp": "1999"})
    meta = made["metadata"]
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-.{12}", meta["uid"]
    )
    assert meta["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert meta["resourceVersion"] == str(desk.store.version)


def test_same_dice_make_the_same_cluster() -> None:
    def uids(seed: int) -> list[str]:
        desk = Desk(seed=seed)
        return [desk.create(MAPS, f"m{number}")["metadata"]["uid"] for number in range(3)]

    assert uids(1) == uids(1) != uids(2)


def test_makes_up_names_that_are_free(desk: Desk) -> None:
    value = {"metadata": {"generateName": "web-"}}
    made = {
        desk.verbs.create(MAPS, dict(value, metadata=dict(value["metadata"])), namespace="default")[
            "metadata"
        ]["name"]
        for _ in range(200)
    }
    assert len(made) == 200
    assert all(name.startswith("web-") and len(name) == 9 for name in made)


@given(st.text("abc-", min_size=1, max_size=80).filter(lambda text: text[0] != "-"))
def test_a_long_prefix_still_makes_a_name(prefix: str) -> None:
    desk = Desk()
    value = {"metadata": {"generateName": prefix}}
    name = desk.verbs.create(MAPS, value, namespace="default")["metadata"]["name"]
    assert not label_faults(name)


def test_refuses_a_second_object_of_the_same_name(desk: Desk) -> None:
    desk.create(MAPS, "m")
    with pytest.raises(ConflictError, match='configmaps "m" already exists') as caught:
        desk.create(MAPS, "m")
    assert caught.value.reason == "AlreadyExists"


def test_creates_only_where_there_is_a_namespace(desk: Desk) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        desk.verbs.create(MAPS, {"metadata": {"name": "m"}}, namespace="nowhere")


def test_a_dry_run_leaves_no_trace(desk: Desk) -> None:
    heard = changes(desk)
    version = desk.store.version
    made = desk.verbs.create(MAPS, {"metadata": {"name": "m"}}, namespace="default", dry_run=True)
    assert "uid" in made["metadata"]
    assert "resourceVersion" not in made["metadata"]
    desk.create(MAPS, "n")
    desk.verbs.delete(MAPS, "default", "n", dry_run=True)
    desk.verbs.delete(NAMESPACES, "", "kube-node-lease", dry_run=True)
    assert (desk.names(MAPS), desk.store.version, len(heard)) == (["n"], version + 1, 1)


# --- changing ----------------------------------------------------------------------------------


def put(desk: Desk, value: Object, **options: Any) -> Object:
    return desk.verbs.replace(
        MAPS, value, namespace="default", name=value["metadata"]["name"], **options
    )


def test_refuses_an_update_of_an_old_version(desk: Desk) -> None:
    first = desk.create(MAPS, "m")
    second = put(desk, {**first, "data": {"a": "1"}})
    with pytest.raises(
        ConflictError, match="the object has been modified; please apply your changes"
    ):
        put(desk, {**first, "metadata": {**first["metadata"], "resourceVersion": "1"}})
    meta = {**second["metadata"], "resourceVersion": ""}
    assert put(desk, {"metadata": meta, "data": {"a": "2"}})["data"] == {"a": "2"}


def test_an_update_that_changes_nothing_is_no_news(desk: Desk) -> None:
    value = desk.create(MAPS, "m", data={"a": "b"}, metadata={"labels": {"x": "y"}})
    heard = changes(desk)
    version = desk.store.version
    again = put(desk, {"metadata": {"name": "m", "labels": {"x": "y"}}, "data": {"a": "b"}})
    assert again["metadata"] == value["metadata"]
    assert (desk.store.version, heard) == (version, [])


def test_a_lease_says_which_version_it_renews(desk: Desk) -> None:
    made = desk.verbs.replace(
        LEASES, {"metadata": {"name": "l"}, "spec": {}}, namespace="default", name="l"
    )
    assert made["metadata"]["uid"]
    with pytest.raises(StatusError, match="must be specified for an update"):
        desk.verbs.replace(
            LEASES,
            {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}},
            namespace="default",
            name="l",
        )


def test_spec_and_status_have_doors_of_their_own(desk: Desk) -> None:
    deploy(desk)

    def both(value: Object) -> None:
        value["spec"]["replicas"] = 5
        value["status"] = {"replicas": 2}

    seen = desk.verbs.modify(DEPLOYMENTS, "default", "d", both)
    assert (seen["spec"]["replicas"], seen["status"]) == (5, {})
    seen = desk.verbs.modify(DEPLOYMENTS, "default", "d", both, subresource="status")
    assert seen["status"] == {"replicas": 2}

    def shrink(value: Object) -> None:
        value["spec"]["replicas"] = 0
        value["status"]["replicas"] = 1

    seen = desk.verbs.modify(DEPLOYMENTS, "default", "d", shrink, subresource="status")
    assert (seen["spec"]["replicas"], seen["status"]) == (5, {"replicas": 1})


def test_only_a_new_spec_is_a_new_generation(desk: Desk) -> None:
    def generation_after(change: Any, subresource: str = "") -> int:
        seen = desk.verbs.modify(DEPLOYMENTS, "default", "d", change, subresource=subresource)
        return int(seen["metadata"]["generation"])

    def relabel(value: Object) -> None:
        value["metadata"]["labels"] = {"x": "y"}

    def report(value: Object) -> None:
        value["status"] = {"replicas": 1}

    def grow(value: Object) -> None:
        value["spec"]["replicas"] = 3

    assert deploy(desk)["metadata"]["generation"] == 1
    assert generation_after(relabel) == 1
    assert generation_after(report, "status") == 1
    assert generation_after(grow) == 2
    assert generation_after(grow) == 2


def test_what_comes_back_can_be_changed_without_harm(desk: Desk) -> None:
    made = desk.create(MAPS, "m", data={"a": "b"})
    made["data"]["a"] = "spoilt"
    desk.verbs.get(MAPS, "default", "m")["data"]["a"] = "spoilt"
    assert desk.verbs.get(MAPS, "default", "m")["data"] == {"a": "b"}


def test_scales_what_has_replicas(desk: Desk) -> None:
    deploy(desk)

    def grow(scale: Object) -> Object:
        return {**scale, "spec": {"replicas": 4}}

    scale = desk.verbs.modify(DEPLOYMENTS, "default", "d", grow, subresource="scale")
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"] == {"replicas": 0, "selector": "a=b"}
    assert desk.verbs.get(DEPLOYMENTS, "default", "d")["spec"]["replicas"] == 4


# --- deleting ----------------------------------------------------------------------------------


def test_a_finalizer_keeps_an_object_until_it_is_taken_away(desk: Desk) -> None:
    desk.create(MAPS, "m", metadata={"finalizers": ["a.b/c"]})
    marked = desk.verbs.delete(MAPS, "default", "m")
    assert marked["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:20Z"
    version = desk.store.version
    desk.now += 60
    assert desk.verbs.delete(MAPS, "default", "m")["metadata"] == marked["metadata"]
    assert desk.store.version == version

    def let_go(value: Object) -> None:
        value["metadata"]["finalizers"] = []

    desk.verbs.modify(MAPS, "default", "m", let_go)
    assert desk.names(MAPS) == []


def test_deletes_only_the_object_that_is_meant(desk: Desk) -> None:
    value = desk.create(MAPS, "m")
    with pytest.raises(ConflictError, match="does not match the UID in record"):
        desk.verbs.delete(MAPS, "default", "m", uid="other")
    with pytest.raises(ConflictError, match="does not match the ResourceVersion in record"):
        desk.verbs.delete(MAPS, "default", "m", version="1")
    last = desk.verbs.delete(MAPS, "default", "m", uid=value["metadata"]["uid"])
    assert int(last["metadata"]["resourceVersion"]) == desk.store.version
    with pytest.raises(NotFound, match='configmaps "m" not found'):
        desk.verbs.delete(MAPS, "default", "m")


@pytest.mark.parametrize(
    ("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_leaves_dependents_to_a_garbage_collector(
    desk: Desk, propagation: str, finalizer: str
) -> None:
    desk.create(MAPS, "m")
    marked = desk.verbs.delete(MAPS, "default", "m", propagation=propagation)
    assert marked["metadata"]["finalizers"] == [finalizer]


def test_deletes_what_is_chosen(desk: Desk) -> None:
    for name in "abc":
        desk.create(MAPS, name)
    gone = desk.verbs.delete_collection(MAPS, "default", lambda item: item.name != "b")
    assert [value["metadata"]["name"] for value in gone] == ["a", "c"]
    assert desk.names(MAPS) == ["b"]


# --- namespaces --------------------------------------------------------------------------------


def fill(desk: Desk, node: str = "") -> None:
    desk.create(NAMESPACES, "space")
    for name in "abc":
        desk.verbs.create(MAPS, {"metadata": {"name": name}}, namespace="space")
    spec = {"nodeName": node} if node else {}
    desk.verbs.create(PODS, pod("p", spec), namespace="space")


def test_a_namespace_takes_everything_along(desk: Desk) -> None:
    fill(desk)
    seen = desk.verbs.delete(NAMESPACES, "", "space")
    assert seen["status"]["phase"] == "Terminating"
    assert "space" not in desk.names(NAMESPACES)
    assert (desk.names(MAPS), desk.names(PODS)) == ([], [])


def test_a_namespace_waits_for_the_last_pod(desk: Desk) -> None:
    fill(desk, node="n1")
    desk.verbs.delete(NAMESPACES, "", "space")
    assert desk.names(MAPS) == []
    with pytest.raises(Forbidden, match="because it is being terminated"):
        desk.verbs.create(MAPS, {"metadata": {"name": "late"}}, namespace="space")
    assert desk.verbs.delete(NAMESPACES, "", "space")["status"]["phase"] == "Terminating"
    assert "space" in desk.names(NAMESPACES)
    desk.verbs.delete(PODS, "space", "p", grace=0)
    assert "space" not in desk.names(NAMESPACES)


def test_a_namespace_goes_on_ending_after_a_restart(desk: Desk) -> None:
    fill(desk, node="n1")
    desk.verbs.delete(NAMESPACES, "", "space")
    again = Desk(desk.store)
    again.verbs.delete(PODS, "space", "p", grace=0)
    assert "space" not in again.names(NAMESPACES)


def test_a_cluster_keeps_what_it_needs(desk: Desk) -> None:
    with pytest.raises(Forbidden, match="this namespace may not be deleted"):
        desk.verbs.delete(NAMESPACES, "", "default")
    assert desk.names(NAMESPACES) == ["default", "kube-node-lease", "kube-public", "kube-system"]
