"""What a caller may see of a cluster, and answers without the rest.

    list nodes, list pods everywhere     all
    list nodes                           nodes; pods as counts
    list pods everywhere                 pods; nodes without names
    list pods in one namespace           its pods; nodes without names, other pods as counts

Of an explanation, texts of plugins are left out where names are: they may say any name.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import structs

from mooring.lens.api import (
    A_NODE,
    LensQueue,
    LensState,
    NodePage,
    RecordRow,
    Shown,
    TaintColumn,
)


class Sight(msgspec.Struct, frozen=True):
    """What a caller may see; `namespace` is the only one whose pods it may see, unless all."""

    nodes: bool = True
    pods: bool = True
    namespace: str = ""

    @property
    def is_whole(self) -> bool:
        return self.nodes and self.pods

    @property
    def shown(self) -> Shown:
        return Shown(
            nodes="all" if self.nodes else "anonymous",
            pods="all" if self.pods else "namespace" if self.namespace else "counts",
            namespace="" if self.pods else self.namespace,
        )

    def sees(self, namespace: str) -> bool:
        """Whether it may see the pods of a namespace."""
        return self.pods or (bool(self.namespace) and namespace == self.namespace)


WHOLE: Final = Sight()

_KEPT: Final = (
    "format",
    "version",
    "pod",
    "kind",
    "nodes",
    "feasible",
    "exactness",
    "profile",
    "message",
    "replica",
)


def seen_state(state: LensState, sight: Sight) -> LensState:
    if sight.is_whole:
        return state
    nodes = state.nodes
    if not sight.nodes:
        none = TaintColumn(values=[], codes=[])
        nodes = structs.replace(nodes, names=[], labels=(), taints=none)
    return structs.replace(state, nodes=nodes, shown=sight.shown)


def seen_queue(queue: LensQueue, sight: Sight) -> LensQueue:
    """Of a namespace the counts are those of its pods; else they are of all pods."""
    if sight.is_whole:
        return queue
    pods = (one for one in queue.pods if sight.sees(one.namespace))
    if not sight.nodes:
        pods = (structs.replace(one, message=_sentence(one.message)) for one in pods)
    return structs.replace(queue, pods=tuple(pods), shown=sight.shown)


def seen_node(page: NodePage, sight: Sight) -> NodePage:
    if sight.is_whole:
        return page
    return structs.replace(
        page,
        pods=tuple(one for one in page.pods if sight.sees(one.namespace)),
        nominated=tuple(one for one in page.nominated if sight.sees(one.namespace)),
        shown=sight.shown,
    )


def seen_row(row: RecordRow, sight: Sight) -> RecordRow:
    """One record of a pod that may be seen."""
    if sight.nodes:
        return row
    return structs.replace(
        row,
        message=_sentence(row.message),
        node=row.node and A_NODE,
        runner_up=row.runner_up and A_NODE,
        nominated=row.nominated and A_NODE,
    )


def seen_explanation(fields: dict[str, Any], sight: Sight) -> dict[str, Any]:
    """An explanation as plain data, of a pod that may be seen."""
    if sight.is_whole:
        return fields
    found: dict[str, Any] = {key: fields[key] for key in _KEPT if key in fields}
    for key in ("node", "nominated"):
        found[key] = fields.get(key) and A_NODE
    found["notes"] = ["names of nodes and of other pods are left out: no permission to list them"]
    found["exactness"] = "partial"
    found["groups"] = [_seen_group(group) for group in fields.get("groups", ())]
    before = fields.get("before")
    found["before"] = None if before is None else _seen_refusal(before)
    queue = fields.get("queue")
    if queue is not None:
        message = _sentence(queue.get("message", ""))
        node = queue.get("node") and A_NODE
        queue = {**queue, "message": message, "node": node, "declined": []}
    found["queue"] = queue
    found["wakesOn"] = fields.get("wakesOn", [])
    found["message"] = _sentence(found.get("message", ""))
    found["summary"] = _summary(found)
    return found


def _sentence(message: str) -> str:
    """A message if it counts nodes, as kube-scheduler's does; others may name them."""
    return message if message.startswith("0/") else ""


def _summary(found: dict[str, Any]) -> str:
    if found["kind"] == "scheduled":
        return f"{found['pod']} is on {A_NODE}"
    feasible, nodes = found["feasible"], found["nodes"]
    return f"{found['pod']}: {found['kind']}; {feasible:,} of {nodes:,} nodes are feasible"


def _seen_group(group: dict[str, Any]) -> dict[str, Any]:
    said = group.get("said")
    return {
        "nodes": group["nodes"],
        "examples": [],
        "said": None if said is None else _seen_refusal(said),
        "also": [_seen_refusal(one) for one in group.get("also", ())],
        "waitsFor": group.get("waitsFor"),
    }


def _seen_refusal(refusal: dict[str, Any]) -> dict[str, Any]:
    """The reasons are those of the pod's own condition; facts may name anything."""
    kept = {key: refusal[key] for key in ("plugin", "reasons", "code")}
    return {**kept, "facts": [], "beside": []}
