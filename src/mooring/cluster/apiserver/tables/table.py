"""Tables: what `kubectl get` prints, made by the server (meta.k8s.io/v1 Table).

`rest.py` calls `table` for requests that accept `application/json;as=Table;g=meta.k8s.io;v=v1`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.cluster.apiserver.events import from_storage
from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.tables.cells_pods import pod_row_conditions
from mooring.cluster.apiserver.tables.columns import Layout


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
    chosen = kind_of(resource).columns
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
    if resource.key == "pods" and (conditions := pod_row_conditions(value)):
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
