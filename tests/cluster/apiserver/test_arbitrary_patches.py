"""Whatever JSON a patch is, the server answers: it is applied or refused, and nothing breaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.apiserver.compared_requests import Answer, Step, ask_ours
from tests.cluster.apiserver.in_process_server import InProcessServer
from tests.controlplane.admin import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.sizes import sized

APPLY_PATCH = "application/apply-patch+yaml"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"x": "1"}, "finalizers": ["f/1", "f/2"]},
    "spec": {
        "containers": [
            {"name": "a", "image": "1", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"name": "b", "image": "2", "env": [{"name": "E", "value": "v"}]},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    },
}
FIELDS = (
    *("apiVersion", "kind", "metadata", "spec", "status", "name", "labels", "finalizers"),
    *("ownerReferences", "containers", "image", "ports", "containerPort", "protocol", "env"),
    *("value", "volumes", "emptyDir", "tolerations", "key", "topologySpreadConstraints"),
    *("managedFields", "conditions", "type", "resources", "requests", "x"),
)
DIRECTIVES = (
    *("$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/finalizers"),
    *("$setElementOrder/volumes", "$setElementOrder/ports", "$setElementOrder/tolerations"),
    *("$deleteFromPrimitiveList/finalizers", "$deleteFromPrimitiveList/containers"),
    *("$setElementOrder", "$deleteFromPrimitiveList/"),
)
WORDS = ("", "a", "b", "p", "v", "v1", "Pod", "f/1", "delete", "replace", "merge", "-", "zone")

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 90), st.floats(-1e3, 1e30),
    st.sampled_from(WORDS), st.text(max_size=3),
)  # fmt: skip
keys = st.one_of(st.sampled_from(FIELDS), st.sampled_from(DIRECTIVES), st.text(max_size=2))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def spoilt(value: Any) -> st.SearchStrategy[Any]:
    """Things of the same build as `value`, with anything in any place."""
    same: st.SearchStrategy[Any] = st.just(value)
    if isinstance(value, dict):
        kept = {key: spoilt(inner) for key, inner in value.items()}
        known = st.fixed_dictionaries({}, optional=kept)
        more = st.dictionaries(keys, values, max_size=1)
        same = st.tuples(known, more).map(lambda both: {**both[0], **both[1]})
    elif isinstance(value, list):
        same = st.lists(st.one_of(*map(spoilt, value), values), max_size=3)
    return st.one_of(same, same, same, values)


pointers = st.lists(
    st.sampled_from((*FIELDS, "0", "1", "-1", "-", "99", "01", "~0", "~1", "")), max_size=5
).map(lambda steps: "".join(f"/{step}" for step in steps))
operation = st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "", "x"))
operations = st.lists(
    st.fixed_dictionaries(
        {"op": operation | scalars, "path": pointers | scalars},
        optional={"from": pointers | scalars, "value": values},
    )
    | values,
    max_size=4,
)
PATCHES: dict[str, st.SearchStrategy[Any]] = {
    JSON_PATCH: st.one_of(operations, values),
    MERGE_PATCH: spoilt(POD),
    STRATEGIC_PATCH: spoilt(POD),
    APPLY_PATCH: spoilt(POD),
}


def patch(server: InProcessServer, media: str, body: Any, subresource: str = "") -> Answer:
    path = f"/api/v1/namespaces/default/pods/p{subresource}"
    query = "?fieldManager=m" if media == APPLY_PATCH else ""
    return ask_ours(server.server, Step("PATCH", path + query, json.dumps(body), media), "default")


def desk_with_a_pod() -> InProcessServer:
    server = InProcessServer()
    server.ask(Step("POST", "/api/v1/namespaces/default/pods", POD))
    return server


@pytest.mark.parametrize("media", PATCHES)
@given(data=st.data())
@settings(max_examples=sized(80), deadline=None)
def test_applies_or_refuses_whatever_json_it_is(media: str, data: st.DataObject) -> None:
    server = desk_with_a_pod()
    subresource = data.draw(st.sampled_from(("", "/status")))
    for body in data.draw(st.lists(PATCHES[media], min_size=1, max_size=2)):
        answer = patch(server, media, body, subresource)
        assert answer.value.get("reason") != "InternalError", answer


@pytest.mark.parametrize("key", [[[]], [], {}, {"a": 1}])
def test_says_that_a_merge_key_is_no_scalar(key: Any) -> None:
    containers = [{"name": key, "image": "3"}]
    answer = patch(desk_with_a_pod(), STRATEGIC_PATCH, {"spec": {"containers": containers}})
    assert answer.status == 400
    assert "as merge key name, but received a" in answer.value["message"]


def test_says_that_maps_without_a_key_have_no_order() -> None:
    body: dict[str, Any] = {"spec": {"$setElementOrder/tolerations": []}}
    answer = patch(desk_with_a_pod(), STRATEGIC_PATCH, body)
    assert answer.status == 400
    assert "in a list without merge key" in answer.value["message"]


@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
@pytest.mark.parametrize("said", [1, [], {}, True])
@pytest.mark.parametrize("field", ["apiVersion", "kind"])
def test_says_that_a_kind_is_no_text(media: str, field: str, said: Any) -> None:
    answer = patch(desk_with_a_pod(), media, {field: said})
    assert answer.status == 422
    assert "cannot unmarshal" in answer.value["message"]
