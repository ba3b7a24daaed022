"""Objects that Go programs send as protobuf."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.apiserver import table_objects
from tests.cluster.apiserver.make_field_numbers import describe
from tests.controlplane.admin import AdminApi, Object
from tests.controlplane.cluster import ControlPlane

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.protobuf import NUMBERS_FILE, PROTOBUF, as_json, decode_protobuf
from mooring.cluster.apiserver.requests import JSON, ApiRequest

NAMESPACE = "protobuf"


@pytest.fixture(scope="module")
def asking(real_server: ControlPlane) -> Iterator[AdminApi]:
    """The real server with all table objects, asked for protobuf."""
    with table_objects.created(real_server.admin, NAMESPACE):
        asking = real_server.api_for()
        asking._headers["Accept"] = PROTOBUF
        yield asking


@pytest.mark.parametrize(
    "value",
    [*table_objects.namespaced(NAMESPACE), *table_objects.CLUSTER_WIDE],
    ids=lambda value: f"{value['kind']}-{value['metadata']['name']}",
)
def test_reads_what_the_real_server_writes(
    value: Object, asking: AdminApi, real_server: ControlPlane
) -> None:
    kind, name = f"{value['apiVersion']}/{value['kind']}", value["metadata"]["name"]
    path = real_server.admin.path(kind, name, NAMESPACE)
    read = decode_protobuf(asking.text("GET", path))
    assert _without_zeros(read) == _without_zeros(real_server.admin.request("GET", path))


def _without_zeros(value: Any) -> Any:
    """A JSON of the server tells some zeros that say nothing."""
    if isinstance(value, dict):
        parts = {key: _without_zeros(inner) for key, inner in value.items()}
        return {key: part for key, part in parts.items() if part not in (None, "", 0, False, [])}
    if isinstance(value, list):
        return [_without_zeros(inner) for inner in value]
    return value


def test_keeps_a_zero_that_is_said_on_purpose(real_server: ControlPlane) -> None:
    admin = real_server.api_for()
    admin._headers["Accept"] = PROTOBUF
    spec = {"replicas": 0, "selector": table_objects.SELECTOR, "template": table_objects.TEMPLATE}
    value = table_objects.an_object("Deployment", "none", "apps/v1", spec=spec)
    path = "/apis/apps/v1/namespaces/default/deployments?dryRun=All"
    made = decode_protobuf(admin.text("POST", path, value))
    assert made["spec"]["replicas"] == 0
    assert "paused" not in made["spec"]
    assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}


def test_reads_the_schema_of_a_definition(real_server: ControlPlane) -> None:
    names = {"plural": "rows", "kind": "Row"}
    properties = {
        "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "number", "minimum": 1.5}},
        "any": {"type": "object", "additionalProperties": True},
        "choice": {"type": "number", "default": 1.5, "enum": [1.5, 2]},
    }
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "a.b", "scope": "Cluster", "names": names, "versions": versions}
    read = _answered(
        real_server,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All",
        {**_meta("apiextensions.k8s.io/v1", "CustomResourceDefinition", "rows.a.b"), "spec": spec},
    )
    assert read["spec"]["versions"] == versions


def test_reads_lists_in_a_map(real_server: ControlPlane) -> None:
    extra = {"scopes": ["a", "b"], "none": []}
    attributes = {"verb": "get", "resource": "pods"}
    spec = {"user": "me", "extra": extra, "resourceAttributes": attributes}
    read = _answered(
        real_server,
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {**_meta("authorization.k8s.io/v1", "SubjectAccessReview", ""), "spec": spec},
    )
    assert read["spec"] == spec


def _meta(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _answered(real_server: ControlPlane, path: str, body: Object) -> Object:
    """What the real server answers to a POST, as protobuf."""
    asking = real_server.api_for()
    asking._headers["Accept"] = PROTOBUF
    return decode_protobuf(asking.text("POST", path, body))


def test_knows_the_numbers_of_the_go_types(real_programs: None) -> None:
    assert NUMBERS_FILE.read_text() == describe()


def test_turns_requests_into_json() -> None:
    options = _envelope("v1", "DeleteOptions", b"\x08\x05")
    call = ApiRequest(method="DELETE", path="/", headers={"content-type": PROTOBUF}, body=options)
    turned = as_json(call)
    assert turned.headers["content-type"] == JSON
    assert turned.body == (b'{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5}')


def test_leaves_other_requests_alone() -> None:
    call = ApiRequest(method="POST", path="/", headers={"content-type": JSON}, body=b"{}")
    assert as_json(call) is call


def _envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    meta = _field(1, api_version.encode()) + _field(2, kind.encode())
    return b"k8s\0" + _field(1, meta) + _field(2, raw)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"k8s\0\xff",
        b"k8s\0",
        _envelope("v1", "Poddy", b""),
        _envelope("v1", "Pod", b"\x0a\x7f"),
        _envelope("v1", "Pod", b"\x0b"),
        _envelope("v1", "Pod", b"\x08" + b"\xff" * 11),
    ],
)
def test_refuses_what_it_can_not_read(body: bytes) -> None:
    with pytest.raises(StatusError, match="the object provided is unrecognized") as caught:
        decode_protobuf(body)
    assert caught.value.code == 400


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_reads_or_refuses_anything(garbage: bytes) -> None:
    with suppress(StatusError):
        decode_protobuf(_envelope("v1", "Pod", garbage))
