"""The nodes and the queue of a cluster as the structs of `/lens/v1`; nothing is written.

What takes longer than a moment at 5,000 nodes is a generator, for `in_slices` on the loop of a
scheduler: it takes its references in one step, before the first yield. `at_once` runs it elsewhere.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import Any, Final, TypeVar

from mooring.api import core
from mooring.api.meta import format_time
from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, quantity_of
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.lens.api import (
    NodeColumns,
    NodeLabelColumn,
    NodePage,
    NodeResource,
    PodOnNode,
    QueueCounts,
    ResourceColumn,
    TaintColumn,
)

T = TypeVar("T")

MOST_LABEL_VALUES: Final = 200
_STEP: Final = 50  # nodes between two yields
_FIRST: Final = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)
_UNITS: Final = {CPU: "milli", MEMORY: "bytes", EPHEMERAL_STORAGE: "bytes"}


def at_once(work: Generator[Any, None, T]) -> T:
    """Run a generator to its end; what it returns."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result


# --- all nodes ------------------------------------------------------------------------------------


def node_columns(cache: Cache) -> Generator[None, None, NodeColumns]:
    """All nodes by row: in the order of the table, which changes name rows by."""
    table = cache.table
    nodes = tuple(table.api)
    names = list(table.names)
    unschedulable = table.unschedulable.view.astype(int).tolist()
    resources = tuple(_resource_columns(cache))
    yield
    ready: list[int] = []
    codes: list[int] = []
    taints: dict[tuple[core.Taint, ...], int] = {}
    labels = _Labels(len(nodes))
    for row, node in enumerate(nodes):
        ready.append(is_ready(node))
        codes.append(taints.setdefault(node.spec.taints, len(taints)))
        labels.add(row, node)
        if not row % _STEP:
            yield
    pods = next((one.requested for one in resources if one.name == PODS), [0] * len(nodes))
    return NodeColumns(
        count=len(nodes),
        names=names,
        pods=pods,
        unschedulable=unschedulable,
        ready=ready,
        resources=resources,
        labels=tuple(labels.columns()),
        taints=TaintColumn(values=[taints_text(one) for one in taints], codes=codes),
    )


def is_ready(node: core.Node) -> int:
    """1 if a node is ready, as far as its conditions say."""
    for one in node.status.conditions:
        if one.type == "Ready":
            return int(one.status == "True")
    return 1


def taints_text(taints: Iterable[core.Taint]) -> str:
    return ", ".join(map(taint_text, taints))


def taint_text(taint: core.Taint) -> str:
    """As kubectl writes it: "key=value:Effect"."""
    return f"{taint.key}{'=' if taint.value else ''}{taint.value}:{taint.effect}"


def resource_names(cache: Cache) -> list[str]:
    """Those that any node offers or any pod takes: the usual first."""
    known = cache.table.resources
    others = sorted({*known.allocatable, *known.requested} - set(_FIRST))
    return [*_FIRST, *others]


def _resource_columns(cache: Cache) -> Iterable[ResourceColumn]:
    nodes = cache.nodes
    for name in resource_names(cache):
        yield ResourceColumn(
            name=name,
            unit=_UNITS.get(name, "count"),  # type: ignore[arg-type]  # of a dict: one of three
            allocatable=nodes.allocatable(name).tolist(),
            requested=nodes.requested(name).tolist(),
        )


class _Labels:
    """Columns of labels, as nodes are walked; a key with too many values is dropped at once."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: dict[str, dict[str, int]] = {}
        self._codes: dict[str, list[int]] = {}
        self._dropped: set[str] = set()

    def add(self, row: int, node: core.Node) -> None:
        for key, value in node.metadata.labels.items():
            values = self._values.get(key)
            if values is None:
                if key in self._dropped:
                    continue
                values = self._values[key] = {}
                self._codes[key] = [-1] * self._count
            code = values.get(value)
            if code is None:
                code = values[value] = len(values)
                if code >= MOST_LABEL_VALUES:
                    self._dropped.add(key)
                    del self._values[key], self._codes[key]
                    continue
            self._codes[key][row] = code

    def columns(self) -> Iterable[NodeLabelColumn]:
        for key in sorted(self._values):
            yield NodeLabelColumn(key=key, values=list(self._values[key]), codes=self._codes[key])


# --- one node -------------------------------------------------------------------------------------


def node_page(cache: Cache, name: str, nominated: Iterable[Pod] = ()) -> NodePage | None:
    """One node with its pods; None if there is none of this name."""
    node = cache.nodes.get(name)
    if node is None:
        return None
    api = node.api
    pods = sorted(node.pods, key=lambda pod: (-pod.priority, pod.key))
    return NodePage(
        name=name,
        labels=dict(api.metadata.labels),
        taints=tuple(map(taint_text, api.spec.taints)),
        unschedulable=api.spec.unschedulable,
        conditions=api.status.conditions,
        resources=tuple(_of_node(cache, name)),
        count=len(pods),
        pods=tuple(_on_node(pod, cache.is_assumed(pod.uid)) for pod in pods),
        nominated=tuple(_on_node(pod, False) for pod in nominated),
    )


def _of_node(cache: Cache, name: str) -> Iterable[NodeResource]:
    node = cache.nodes.get(name)
    for resource in resource_names(cache) if node is not None else ():
        assert node is not None
        offered, taken = node.allocatable(resource), node.requested(resource)
        if offered or taken:
            yield NodeResource(
                name=resource,
                allocatable=str(quantity_of(resource, offered)),
                requested=str(quantity_of(resource, taken)),
                share=round(taken / offered, 4) if offered else 0.0,
            )


def _on_node(pod: Pod, is_assumed: bool) -> PodOnNode:
    return PodOnNode(
        namespace=pod.namespace,
        name=pod.name,
        priority=pod.priority,
        requests={key: str(quantity_of(key, value)) for key, value in pod.usage.items()},
        phase=pod.status.phase,
        assumed=is_assumed,
    )


# --- texts ----------------------------------------------------------------------------------------


def shape_of(pod: Pod) -> str:
    """What a pod asks for: "500m cpu, 1Gi memory"; "nothing" if it asks for nothing."""
    asked = pod.all_requests
    names = [name for name in _FIRST if asked.get(name)]
    names += sorted(name for name in asked if name not in _FIRST and asked[name])
    found = [f"{quantity_of(name, asked[name])} {name}" for name in names]
    return ", ".join(found) or "nothing"


def time_text(seconds: float | None) -> str | None:
    """With microseconds, as in Kubernetes' MicroTime."""
    return None if seconds is None else format_time(seconds, micros=True)


def counted(counts: Mapping[str, int]) -> QueueCounts:
    """How many pods are in each place."""
    return QueueCounts(
        active=counts.get("active", 0),
        backoff=counts.get("backoff", 0),
        unschedulable=counts.get("unschedulable", 0),
        gated=counts.get("gated", 0),
        waiting=counts.get("waiting", 0),
        in_flight=counts.get("in flight", 0),
    )
