"""Tables: what `kubectl get` prints, made by the server (meta.k8s.io/v1 Table).

`rest.py` calls `table` for requests that accept `application/json;as=Table;g=meta.k8s.io;v=v1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mooring.cluster.apiserver.events import from_storage
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.tables.cells_cluster import CLUSTER
from mooring.cluster.apiserver.tables.cells_pods import POD, pod_row_conditions
from mooring.cluster.apiserver.tables.cells_storage import STORAGE
from mooring.cluster.apiserver.tables.cells_workloads import WORKLOADS
from mooring.cluster.apiserver.tables.columns import Cells, Layout, age, layout, name_of


def _name_and_age(value: Object, now: float) -> Cells:
    return [name_of(value), age(value, now)]


def _name_and_creation(value: Object, now: float) -> Cells:
    return [name_of(value), value["metadata"].get("creationTimestamp", "")]


_AGED: Final = layout(_name_and_age, "Name", "Age")
_DEFAULT: Final = layout(_name_and_creation, "Name", "Created At:date")
_LAYOUTS: Final[dict[str, Layout]] = {
    "pods": POD,
    "serviceaccounts": _AGED,
    "deviceclasses.resource.k8s.io": _AGED,
    "resourceclaimtemplates.resource.k8s.io": _AGED,
    **CLUSTER,
    **STORAGE,
    **WORKLOADS,
}


def table(
    resource: Resource,
    items: Sequence[Item],
    *,
    include_object: str,
    version: str,
    now: float,
    watch: bool = False,
    metadata: Object | None = None,
) -> Object:
    """A table with a row per object.

    `include_object` is the query's value: Metadata (also if it is empty), Object or None. `watch`:
    not the first table of its watch, so the columns are left out. `metadata` is what a list has
    besides its version, such as `continue`.
    """
    chosen = _LAYOUTS.get(resource.key, _DEFAULT)
    rows = [_row(resource, chosen, item, include_object, now) for item in items]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version, **(metadata or {})},
        "columnDefinitions": None if watch else chosen.columns,
        "rows": rows,
    }


def _row(resource: Resource, chosen: Layout, item: Item, include: str, now: float) -> Object:
    value = item.decoded()
    row: Object = {"cells": chosen.cells(value, now)}
    if chosen is POD and (conditions := pod_row_conditions(value)):
        row["conditions"] = conditions
    if include == "None":
        row["object"] = None
    elif include == "Object":
        row["object"] = from_storage(resource, value)
    else:
        row["object"] = {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": value["metadata"],
        }
    return row
