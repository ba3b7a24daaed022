"""Why a node can't serve a pod's claims, in the order of kube-scheduler's messages."""

import enum
from functools import cache
from typing import Final

import mooring.framework as fw


class Reason(enum.IntFlag):
    """Several may hold for one node."""

    NODE_CONFLICT = enum.auto()  # a bound volume can't be reached from the node
    BIND_CONFLICT = enum.auto()  # a claim finds no volume, and none can be provisioned
    NOT_ENOUGH_SPACE = enum.auto()  # too little free capacity to provision one
    NO_SUCH_VOLUME = enum.auto()  # a claim is bound to a volume that does not exist


NONE: Final = Reason(0)
TEXTS: Final = {
    Reason.NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    Reason.BIND_CONFLICT: "node(s) didn't find available persistent volumes to bind",
    Reason.NOT_ENOUGH_SPACE: "node(s) did not have enough free storage",
    Reason.NO_SUCH_VOLUME: (
        "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    ),
}


@cache
def status_of(reasons: int) -> fw.Status:
    """The status of a node with these reasons; OK if there are none."""
    texts = [text for reason, text in TEXTS.items() if reason & reasons]
    return fw.Status.unresolvable(*texts) if texts else fw.OK
