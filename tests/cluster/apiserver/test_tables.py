"""What `kubectl get` prints, compared with the real server cell by cell."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.apiserver import table_objects
from tests.controlplane.admin import AdminApi, Object
from tests.controlplane.cluster import ControlPlane

from mooring.cluster.apiserver.events import to_storage
from mooring.cluster.apiserver.lists import ListResult
from mooring.cluster.apiserver.requests import ApiRequest
from mooring.cluster.apiserver.resources import RESOURCES, Resource, by_kind, known
from mooring.cluster.apiserver.store import Item
from mooring.cluster.apiserver.tables.columns import human_duration
from mooring.cluster.apiserver.tables.response_format import ResponseFormat

NAMESPACE = "tables"
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.fixture(scope="module")
def tables(real_server: ControlPlane) -> Iterator[AdminApi]:
    """The real server with all table objects, asked for tables."""
    with table_objects.created(real_server.admin, NAMESPACE):
        asking = real_server.api_for()
        asking._headers["Accept"] = AS_TABLE
        yield asking


def _path(resource: Resource) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else "/api/v1"
    place = f"{root}/namespaces/{NAMESPACE}" if resource.namespaced else root
    return f"{place}/{resource.name}"


def _item(resource: Resource, value: Object) -> Item:
    stored = to_storage(resource, json.loads(json.dumps(value)))
    meta = stored["metadata"]
    return Item(
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        uid=meta["uid"],
        version=int(meta["resourceVersion"]),
        raw=msgspec.json.encode(stored),
        labels={},
        fields={},
    )


def _format(resource: Resource, now: float, include_object: str = "") -> ResponseFormat:
    query = {"includeObject": include_object}
    request = ApiRequest(method="GET", path="/", query=query, headers={"accept": AS_TABLE})
    return ResponseFormat(request, resource, lambda: now)


def table(
    resource: Resource, items: list[Item], *, now: float, include_object: str = "", version: int = 1
) -> Any:
    found = ListResult(items, version)
    return json.loads(_format(resource, now, include_object).list_response(found).body)


def _rows(resource: Resource, values: list[Object], now: float) -> list[Any]:
    items = [_item(resource, value) for value in values]
    made = table(resource, items, include_object="None", now=now)
    return [(row["cells"], row.get("conditions")) for row in made["rows"]]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.qualified)
def test_has_the_columns_and_cells_of_the_real_server(
    resource: Resource, tables: AdminApi, real_server: ControlPlane
) -> None:
    path = _path(resource)
    before = time.time()
    theirs = tables.request("GET", f"{path}?includeObject=None")
    after = time.time()
    values = real_server.admin.request("GET", path)["items"]
    ours = table(resource, [], now=after)
    columns = [{**column, "description": ""} for column in theirs["columnDefinitions"]]
    assert ours["columnDefinitions"] == columns
    rows = [(row["cells"], row.get("conditions")) for row in theirs["rows"]]
    assert rows, f"there is no table object of {resource.qualified}"
    # The server looked at the clock once per row, at some moment between these two.
    early, late = _rows(resource, values, before), _rows(resource, values, after)
    for theirs_row, first, last in zip(rows, early, late, strict=True):
        assert theirs_row in (first, last)


def test_shows_every_kind_as_an_exhibit() -> None:
    shown = {
        by_kind(value["apiVersion"], value["kind"])
        for value in [*table_objects.namespaced(NAMESPACE), *table_objects.CLUSTER_WIDE]
    }
    assert shown == {one for one in RESOURCES if one.name != "namespaces"}


@pytest.mark.parametrize("include", ["", "Metadata", "Object", "None"])
def test_adds_the_object_to_a_row_as_asked(
    include: str, tables: AdminApi, real_server: ControlPlane
) -> None:
    pods = known("pods")
    theirs = tables.request("GET", f"{_path(pods)}/gated?includeObject={include}")
    value = real_server.admin.get("Pod", "gated", NAMESPACE)
    version = int(value["metadata"]["resourceVersion"])
    ours = table(pods, [_item(pods, value)], include_object=include, version=version, now=0)
    assert ours["rows"][0]["object"] == theirs["rows"][0]["object"]
    assert (ours["kind"], ours["apiVersion"]) == (theirs["kind"], theirs["apiVersion"])
    assert ours["metadata"] == theirs["metadata"]


def test_tells_the_columns_of_a_watch_only_once() -> None:
    pods = known("pods")
    item = _item(pods, {"metadata": {"name": "p", "uid": "u", "resourceVersion": "1"}})
    response_format = _format(pods, now=0)
    first, later = (json.loads(response_format.event_line("ADDED", item)) for _ in range(2))
    assert first["object"]["columnDefinitions"]
    assert later["object"]["columnDefinitions"] is None


def test_shows_events_in_the_words_of_the_group_that_is_asked(
    tables: AdminApi, real_server: ControlPlane
) -> None:
    events = known("events", "events.k8s.io")
    value = real_server.admin.get("events.k8s.io/v1/Event", "series", NAMESPACE)
    made = table(events, [_item(events, value)], include_object="Object", now=0)
    assert made["rows"][0]["object"] == value


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (7.5 * 3600, "7h30m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (51 * 3600, "2d3h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (733 * 86400, "2y3d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_spells_durations_for_people(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


@settings(deadline=None)
@given(st.floats(min_value=0, max_value=1e10))
def test_spells_any_duration_shortly(seconds: float) -> None:
    assert len(human_duration(seconds)) <= 7
