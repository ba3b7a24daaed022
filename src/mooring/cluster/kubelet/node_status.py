"""The part of a node that its kubelet reports: whatever is missing is filled in.

A Node may be created with nothing but a name, by kubectl or by a test; what it says about itself is
kept.
"""

from __future__ import annotations

import logging
import uuid
from typing import Any, Final

from mooring.api.requests import is_extended
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.resources import NODES
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.node_templates import NodeTemplate, make_nodes
from mooring.framework.handle import Clock

log = logging.getLogger(__name__)

_PARTS: Final = ("capacity", "addresses", "conditions", "daemonEndpoints", "nodeInfo")
_ADDRESSES: Final = 1 << 15  # of nodes that were created without one, from 172.31.0.0 on


class NodeReports:
    """The nodes that don't say all about themselves; `write` fills that in."""

    def __init__(self, verbs: Verbs, clock: Clock, template: NodeTemplate | None) -> None:
        self._verbs = verbs
        self._clock = clock
        self._template = template or NodeTemplate()
        self._due: dict[str, None] = {}  # by name

    def add(self, name: str) -> None:
        self._due[name] = None

    @property
    def are_due(self) -> bool:
        return bool(self._due)

    def write(self) -> None:
        while self._due:
            name, _ = self._due.popitem()
            try:
                self._write(name)
            except StatusError as error:
                extra = {"node": name, "error": str(error)}
                log.warning("a kubelet could not report its node", extra=extra)

    def _write(self, name: str) -> None:
        node = self._verbs.get(NODES, "", name)
        labels = missing_labels(node, self._template, self._clock.now())
        if labels:

            def label(current: Object) -> None:
                meta = current["metadata"]
                meta["labels"] = {**(meta.get("labels") or {}), **labels}

            self._verbs.modify(NODES, "", name, label)
        status = missing_status(node, self._template, self._clock.now())
        if status is not None:

            def report(current: Object) -> None:
                current["status"] = status

            self._verbs.modify(NODES, "", name, report, subresource="status")


def missing_status(node: Object, template: NodeTemplate, now: float) -> Object | None:
    """The status of a node with what its kubelet adds; None if it is complete."""
    status: dict[str, Any] = dict(node.get("status") or {})
    before = dict(status)
    capacity = status.get("capacity") or {}
    if not all(status.get(part) for part in _PARTS):
        made = _template_status(node, template, now)
        for part in _PARTS:
            if not status.get(part):
                status[part] = made[part]
        if not capacity:
            capacity = status["capacity"] = {
                **made["capacity"],
                **(status.get("allocatable") or {}),
            }
        for name in ("cpu", "memory", "ephemeral-storage", "pods"):
            capacity = status["capacity"] = {name: made["capacity"][name], **capacity}
    known = status.get("allocatable") or {}
    allocatable = {
        name: amount for name, amount in known.items() if name in capacity or not is_extended(name)
    }
    status["allocatable"] = {**capacity, **allocatable}
    return status if status != before else None


def missing_labels(node: Object, template: NodeTemplate, now: float) -> dict[str, str]:
    """The labels that a kubelet sets and that a node does not have."""
    labels = node["metadata"].get("labels") or {}
    if all(key in labels for key in _LABELS):
        return {}
    made = _made(node, template, now)["metadata"]["labels"]
    return {key: made[key] for key in _LABELS if key not in labels}


_LABELS: Final = ("kubernetes.io/hostname", "kubernetes.io/arch", "kubernetes.io/os")


def _template_status(node: Object, template: NodeTemplate, now: float) -> Object:
    status: Object = _made(node, template, now)["status"]
    number = uuid.UUID(node["metadata"]["uid"]).int % _ADDRESSES
    status["addresses"][0]["address"] = f"172.31.{128 + (number >> 8)}.{number & 255}"
    return status


def _made(node: Object, template: NodeTemplate, now: float) -> Object:
    [made] = make_nodes([template], now=now)
    name = node["metadata"]["name"]
    made["metadata"]["labels"]["kubernetes.io/hostname"] = name
    for address in made["status"]["addresses"]:
        if address["type"] == "Hostname":
            address["address"] = name
    return made
