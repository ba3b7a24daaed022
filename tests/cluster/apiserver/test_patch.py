"""JSON patches and merge patches, and what all patches have in common."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.apiserver.random_objects import RandomObjects, comparable, take_away
from tests.controlplane.admin import JSON_PATCH, MERGE_PATCH, ApiFailure, Object
from tests.controlplane.cluster import ControlPlane

from mooring.client.errors import NotFound, StatusError
from mooring.cluster.apiserver.patching.patch import patched
from mooring.cluster.apiserver.resources import known

PODS = known("pods")
DEPLOYMENTS = known("deployments", "apps")


def pod(**spec: Any) -> Object:
    containers = [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]
    metadata = {"name": "p", "labels": {"x": "1"}}
    spec = {"containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def change(patch: Any, content_type: str, value: Object | None = None) -> Object:
    body = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
    return patched(PODS, value or pod(), body, content_type)


def operate(*operations: Object, value: Object | None = None) -> Object:
    return change(list(operations), JSON_PATCH, value)


# --- JSON patches ---------------------------------------------------------------------------------


def test_adds_replaces_and_removes() -> None:
    result = operate(
        {"op": "add", "path": "/metadata/labels/y", "value": "2"},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "3"},
        {"op": "remove", "path": "/spec/containers/1"},
    )
    assert result["metadata"]["labels"] == {"x": "1", "y": "2"}
    assert result["spec"]["containers"] == [{"name": "a", "image": "3"}]


def test_inserts_into_lists_before_an_index_or_at_the_end() -> None:
    result = operate(
        {"op": "add", "path": "/spec/containers/0", "value": {"name": "first"}},
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "last"}},
        {"op": "add", "path": "/spec/containers/-2", "value": {"name": "middle"}},
    )
    names = [container["name"] for container in result["spec"]["containers"]]
    assert names == ["first", "a", "b", "middle", "last"]


def test_moves_and_copies() -> None:
    result = operate(
        {"op": "copy", "from": "/metadata/labels/x", "path": "/metadata/labels/y"},
        {"op": "move", "from": "/metadata/labels/x", "path": "/metadata/labels/z"},
    )
    assert result["metadata"]["labels"] == {"y": "1", "z": "1"}


def test_reads_escaped_names() -> None:
    result = operate({"op": "add", "path": "/metadata/labels/a~1b~0c", "value": "2"})
    assert result["metadata"]["labels"]["a/b~c"] == "2"


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/name", "value": "q"},
        {"op": "test", "path": "/metadata/uid", "value": "q"},
        {"op": "test", "path": "/spec/containers/0", "value": {"name": "a"}},
        {"op": "remove", "path": "/metadata/uid"},
        {"op": "remove", "path": "/spec/containers/7"},
        {"op": "remove", "path": "/spec/containers/x"},
        {"op": "add", "path": "/spec/containers/7", "value": {}},
        {"op": "add", "path": "/nowhere/x", "value": {}},
        {"op": "replace", "path": "/spec/containers/7", "value": {}},
        {"op": "replace", "path": "", "value": 5},
        {"op": "move", "from": "/nowhere/x", "path": "/metadata/x"},
        {"op": "fold", "path": "/metadata/x"},
        {"path": "/metadata/x"},
        {"op": "add"},
    ],
)
def test_refuses_what_does_not_apply(operation: Object) -> None:
    with pytest.raises(StatusError, match="rejected our request due to an error in our") as caught:
        operate(operation)
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")


def test_goes_on_if_a_test_holds() -> None:
    operate(
        {"op": "test", "path": "/metadata/name", "value": "p"},
        {"op": "test", "path": "/metadata/labels", "value": {"x": "1"}},
        {"op": "test", "path": "/metadata/uid"},
    )


VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_tests_values_as_json_does(one: Any, other: Any) -> None:
    base: Object = {"metadata": {"name": "p"}, "spec": {"v": one}}
    step = {"op": "test", "path": "/spec/v"}
    operate({**step, "value": one}, value=copy.deepcopy(base))
    if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
        with pytest.raises(StatusError):
            operate({**step, "value": other}, value=base)


def test_tells_numbers_from_truth() -> None:
    base: Object = {"metadata": {"name": "p"}, "spec": {"v": True}}
    with pytest.raises(StatusError):
        operate({"op": "test", "path": "/spec/v", "value": 1}, value=base)


def test_refuses_very_long_patches() -> None:
    step = {"op": "test", "path": "/metadata/name", "value": "p"}
    with pytest.raises(StatusError, match="allowed maximum operations in a JSON patch is 10000"):
        operate(*[step] * 10_001)


# --- merge patches --------------------------------------------------------------------------------


def test_merges_maps_and_replaces_everything_else() -> None:
    result = change(
        {
            "metadata": {"labels": {"x": None, "y": "2"}, "annotations": {"n": {"m": None}}},
            "spec": {"containers": [{"name": "c"}], "nodeName": "n"},
        },
        MERGE_PATCH,
    )
    assert result["metadata"]["labels"] == {"y": "2"}
    assert result["spec"] == {"containers": [{"name": "c"}], "nodeName": "n"}


def test_writes_no_empty_maps_but_empty_structs() -> None:
    volume = {"name": "v", "emptyDir": {}}
    result = change(
        {"metadata": {"labels": {"x": None}}, "spec": {"volumes": [volume]}}, MERGE_PATCH
    )
    assert "labels" not in result["metadata"]
    assert result["spec"]["volumes"] == [volume]


def test_leaves_scales_alone_but_for_what_is_sent() -> None:
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"},
             "spec": {"replicas": 1}, "status": {"replicas": 1}}  # fmt: skip
    result = patched(
        DEPLOYMENTS, scale, b'{"spec":{"replicas":3}}', MERGE_PATCH, subresource="scale"
    )
    assert result == {**scale, "spec": {"replicas": 3}}


# --- patches that are none ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        (JSON_PATCH, b"{", "error decoding patch: unexpected end of JSON input"),
        (MERGE_PATCH, b"{", "error decoding patch: unexpected end of JSON input"),
        (
            JSON_PATCH,
            b"{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp",
        ),
        (
            JSON_PATCH,
            b"[1]",
            "error decoding patch: json: cannot unmarshal number into Go value of type "
            "handlers.jsonPatchOp",
        ),
        (
            JSON_PATCH,
            b'[{"op":"add","path":5}]',
            "error decoding patch: json: cannot unmarshal number into Go struct field "
            "jsonPatchOp.path of type string",
        ),
        (MERGE_PATCH, b"null", "Invalid JSON Patch"),
        (
            MERGE_PATCH,
            b"[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}",
        ),
    ],
)
def test_says_what_is_wrong_with_a_patch(content_type: str, body: bytes, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        change(body, content_type)
    assert str(caught.value) == message
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


def test_takes_only_the_media_types_of_patches() -> None:
    with pytest.raises(StatusError, match="415: Unsupported Media Type") as caught:
        change({}, "application/json")
    assert caught.value.code == 415


def test_reads_the_media_type_before_the_semicolon() -> None:
    assert change({"spec": {"nodeName": "n"}}, f"{MERGE_PATCH}; charset=utf-8")


def test_can_not_change_what_is_not_there() -> None:
    with pytest.raises(NotFound, match='pods "p" not found'):
        patched(PODS, None, b"{}", MERGE_PATCH, name="p")


# --- beside the real server -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_makes_the_same_of_an_object_as_the_real_server(
    seed: int, real_server: ControlPlane
) -> None:
    objects, admin, name = RandomObjects(seed), real_server.admin, f"patched-{seed}"
    live = admin.create(objects.deployment(name), "default")
    path = admin.path("apps/v1/Deployment", name, "default") + "?dryRun=All&fieldValidation=Ignore"
    agreed = 0
    for _ in range(40):
        is_merge = objects.happens(0.5)
        patch: Any = objects.operations()
        if is_merge:
            patch = objects.deployment(name)
            patch["spec"]["selector"].pop("matchLabels")
        content_type = MERGE_PATCH if is_merge else JSON_PATCH
        body = json.dumps(patch).encode()
        try:
            theirs = admin.request("PATCH", path, patch, content_type)
        except ApiFailure as failure:
            if failure.code == 422 and failure.message.startswith("the server rejected"):
                with pytest.raises(StatusError, match="the server rejected"):
                    patched(DEPLOYMENTS, copy.deepcopy(live), body, content_type)
            continue
        ours = patched(DEPLOYMENTS, copy.deepcopy(live), body, content_type)
        assert comparable(ours) == comparable(theirs), json.dumps(patch)
        agreed += 1
    take_away(admin, name)
    assert agreed > 3
