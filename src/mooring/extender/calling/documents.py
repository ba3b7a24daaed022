"""Pods and nodes as they are sent to extenders: the server's own JSON, where it was kept."""

from __future__ import annotations

import msgspec

from mooring.api import core
from mooring.api.codec import encode
from mooring.cache.pods import Pod
from mooring.client.raw_objects import RawObjects


class Documents:
    """Finds the JSON of an object; what was not kept is written from what we know of it."""

    def __init__(
        self,
        pods: RawObjects[core.Pod] | None = None,
        nodes: RawObjects[core.Node] | None = None,
    ) -> None:
        self.pods: RawObjects[core.Pod] | None = pods
        self.nodes: RawObjects[core.Node] | None = nodes

    def pod(self, pod: Pod) -> msgspec.Raw:
        found = self.pods.get(pod.uid) if self.pods is not None else None
        return msgspec.Raw(encode(pod.api) if found is None else found)

    def node(self, node: core.Node) -> msgspec.Raw:
        found = self.nodes.get(node.metadata.uid) if self.nodes is not None else None
        return msgspec.Raw(encode(node) if found is None else found)
