"""All data that a plugin must not change, as plain values to compare before and after.

Views are read-only, but a plugin can circumvent that. Columns that are made on first use (labels,
counters) are compared with the objects they are made from.
"""

from __future__ import annotations

from collections.abc import Mapping

from mooring.api import codec
from mooring.cache.cache import Cache
from mooring.cache.nodes import NodeTable
from mooring.cache.pods import Pod
from mooring.testing._bench import show

Digest = Mapping[str, object]
"""Values by description."""


def digest(cache: Cache, pod: Pod) -> Digest:
    """Deep copies of every column, and of the objects behind them."""
    table = cache.table
    parts: dict[str, object] = {
        "names": tuple(table.names),
        "row_of": dict(table.row_of),
        "unschedulable": table.unschedulable.view.tolist(),
        "taint codes": table.taint_code.view.tolist(),
        "taint sets": tuple(codec.encode(taints) for taints in table.taint_sets),
        "images": {
            name: (state.size, sorted(state.rows)) for name, state in table.images._states.items()
        },
        "host ports": {
            port: {row: dict(ips) for row, ips in rows.items()}
            for port, rows in table.ports._holders.items()
        },
        "listing order": table.ordered()[1].tolist(),
        "pod to place": _content(pod),
        "known pods": sorted(pod.uid for pod in cache.pods()),
        "assumed pods": sorted(cache._assumed),
    }
    for kind in ("allocatable", "requested", "nonzero_requested"):
        for name, column in getattr(table.resources, kind).items():
            parts[f"{kind} {name}"] = column.view.tolist()
    for row, node in enumerate(table.api):
        parts[f"node {table.names[row]}"] = codec.encode(node)
        parts[f"pods on {table.names[row]}"] = {
            uid: _content(resident) for uid, resident in table.pods[row].items()
        }
    for type_, store in cache.objects._stores.items():
        parts[f"objects {type_.__name__}"] = {
            key: codec.encode(value) for key, value in store.items()
        }
    return parts


def differences(before: Digest, after: Digest) -> list[str]:
    """The differences, as texts."""
    return [
        f"{part}: {show(before.get(part))} became {show(after.get(part))}"
        for part in {**before, **after}
        if before.get(part) != after.get(part)
    ]


def contradictions(table: NodeTable) -> list[str]:
    """Columns made on first use that differ from the objects."""
    found = []
    for key, labels in table._labels.items():
        codes = labels.codes.view.tolist()
        held = [labels.values[code] if code < len(labels.values) else code for code in codes]
        meant = [node.metadata.labels.get(key) for node in table.api]
        if held != meant:
            found.append(f"labels {key}: {show(meant)} became {show(held)}")
    for question, counter in table._counters.items():
        held_counts = counter.per_row.view.tolist()
        counts = [sum(map(counter.matches, pods.values())) for pods in table.pods]
        if held_counts != counts:
            found.append(f"count {question!r}: {show(counts)} became {show(held_counts)}")
    return found


def _content(pod: Pod) -> tuple[object, ...]:
    computed = (dict(pod.all_requests), dict(pod.usage), pod.nonzero_requests, pod.host_ports)
    return (codec.encode(pod.api), pod.node_name, pod.priority, dict(pod.labels), *computed)
