"""Strategic merge patches: what becomes of lists, and what the directives do."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from tests.cluster.apiserver.random_objects import RandomObjects, comparable, take_away
from tests.controlplane.admin import STRATEGIC_PATCH, ApiFailure, Object
from tests.controlplane.cluster import ControlPlane

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.patching.patch import patched
from mooring.cluster.apiserver.resources import known

PODS = known("pods")


def pod(**spec: Any) -> Object:
    containers = [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]
    metadata = {"name": "p", "labels": {"x": "1"}, "finalizers": ["f/1", "f/2"]}
    spec = {"containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def merged(patch: Any, value: Object | None = None) -> Object:
    body = json.dumps(patch).encode()
    return patched(PODS, value or pod(), body, STRATEGIC_PATCH)


def spec_of(patch: Object, **spec: Any) -> Object:
    found: Object = merged({"spec": patch}, pod(**spec))["spec"]
    return found


def test_merges_containers_by_name() -> None:
    spec = spec_of({"containers": [{"name": "b", "image": "3"}, {"name": "c", "image": "4"}]})
    assert spec["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "b", "image": "3"},
        {"name": "c", "image": "4"},
    ]


def test_puts_new_elements_first_unless_the_patch_says_otherwise() -> None:
    spec = spec_of({"containers": [{"name": "c", "image": "4"}]})
    assert [container["name"] for container in spec["containers"]] == ["c", "a", "b"]


def test_replaces_lists_that_have_no_key() -> None:
    old, new = [{"key": "a"}], [{"key": "b"}]
    assert spec_of({"tolerations": new}, tolerations=old)["tolerations"] == new


def test_joins_sets() -> None:
    result = merged({"metadata": {"finalizers": ["f/3", "f/1"]}})
    assert sorted(result["metadata"]["finalizers"]) == ["f/1", "f/2", "f/3"]


def test_deletes_by_null() -> None:
    result = merged({"metadata": {"labels": {"x": None}}, "spec": {"nodeName": None}})
    assert "labels" not in result["metadata"]


def test_deletes_an_element() -> None:
    spec = spec_of({"containers": [{"name": "a", "$patch": "delete"}]})
    assert spec["containers"] == [{"name": "b", "image": "2"}]


def test_replaces_a_list_as_told() -> None:
    spec = spec_of({"containers": [{"name": "c", "image": "4"}, {"$patch": "replace"}]})
    assert spec["containers"] == [{"name": "c", "image": "4"}]


def test_replaces_or_empties_a_map_as_told() -> None:
    labels = merged({"metadata": {"labels": {"y": "2", "$patch": "replace"}}})["metadata"]["labels"]
    assert labels == {"y": "2"}
    assert "labels" not in merged({"metadata": {"labels": {"$patch": "delete"}}})["metadata"]


def test_takes_values_out_of_a_set() -> None:
    result = merged({"metadata": {"$deleteFromPrimitiveList/finalizers": ["f/1", "f/9"]}})
    assert result["metadata"]["finalizers"] == ["f/2"]


def test_orders_elements_as_told() -> None:
    patch: Object = {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}],
        "containers": [{"name": "c", "image": "4"}],
    }
    names = [container["name"] for container in spec_of(patch)["containers"]]
    assert names == ["c", "b", "a"]


def test_keeps_elements_of_others_where_they_were() -> None:
    value = pod()
    value["spec"]["containers"].insert(0, {"name": "mesh", "image": "m"})
    patch = {
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
        "containers": [{"name": "b", "image": "3"}],
    }
    result = merged({"spec": patch}, value)
    assert [one["name"] for one in result["spec"]["containers"]] == ["mesh", "a", "b"]


def test_retains_only_the_keys_it_is_told_to() -> None:
    volumes = [{"name": "v", "emptyDir": {}}]
    patch = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    spec = spec_of({"volumes": [patch]}, volumes=volumes)
    assert spec["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_writes_no_directive_into_what_is_new() -> None:
    patch = {
        "name": "c",
        "image": "4",
        "$setElementOrder/env": [{"name": "E"}],
        "env": [{"name": "E", "value": None}],
    }
    spec = spec_of({"containers": [patch]})
    assert spec["containers"][0] == {"name": "c", "image": "4", "env": [{"name": "E"}]}


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ([], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (
            {"spec": {"containers": [{"image": "x"}]}},
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            {"spec": {"containers": ["x"]}},
            500,
            "list element types are not identical: [[map[image:1 name:a] map[image:2 name:b]] [x]]",
        ),
        (
            {"spec": {"containers": [{"$patch": "merge", "name": "a"}]}},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            {"spec": {"containers": [{"$patch": "fold", "name": "a"}]}},
            500,
            "unknown patch type: fold in map: map[$patch:fold name:a]",
        ),
        ({"spec": {"$patch": "fold"}}, 500, "unknown patch type: fold in map: map[$patch:fold]"),
        ({"$setElementOrder/x": 1}, 500, "expected a []interface {}, but received a int64"),
        (
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "z"}],
                    "containers": [{"name": "a", "image": "q"}],
                }
            },
            500,
            "The order in patch list:\n[map[image:q name:a]]\n doesn't match $setElementOrder "
            "list:\n[map[name:z]]\n",
        ),
        ({"spec": {"$retainKeys": 5}}, 400, "invalid patch format of retainKeys"),
        (
            {"spec": {"$retainKeys": ["a"], "nodeName": "n"}},
            400,
            "invalid patch format of retainKeys",
        ),
        ({"$deleteFromPrimitiveList": ["x"]}, 400, "invalid patch format of primitive list"),
    ],
)
def test_says_what_is_wrong_with_a_patch(patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        merged(patch)
    assert str(caught.value) == message
    assert caught.value.code == code


@pytest.mark.parametrize("seed", range(6))
def test_makes_the_same_of_an_object_as_the_real_server(
    seed: int, real_server: ControlPlane
) -> None:
    objects, admin, name = RandomObjects(seed), real_server.admin, f"merged-{seed}"
    live = admin.create(objects.deployment(name), "default")
    path = admin.path("apps/v1/Deployment", name, "default") + "?dryRun=All&fieldValidation=Ignore"
    agreed = 0
    for _ in range(60):
        patch = objects.strategic(objects.deployment(name))
        body = json.dumps(patch).encode()
        try:
            theirs = admin.request("PATCH", path, patch, STRATEGIC_PATCH)
        except ApiFailure:
            continue  # it merged, and is no deployment any more; or several things were wrong
        ours = patched(known("deployments", "apps"), copy.deepcopy(live), body, STRATEGIC_PATCH)
        assert comparable(ours) == comparable(theirs), json.dumps(patch)
        agreed += 1
    take_away(admin, name)
    assert agreed > 10
