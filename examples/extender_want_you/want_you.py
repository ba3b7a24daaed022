"""Pods that want you get one certain node; all others go where they like."""

from mooring.extender import Extender
from mooring.framework import Node, Pod

WANTED = "10-9-101-66"

extender = Extender()


@extender.filter
def want_you(pod: Pod, node: Node) -> bool | str:
    if pod.labels.get("want") != "you":
        return True
    return node.name == WANTED or "node is not the one you want"
