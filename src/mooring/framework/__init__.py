"""The contract between plugins and the scheduler: everything a plugin author imports.

    import mooring.framework as fw

Pods and nodes come in as read-only views, statuses and scores go out. This room owns the words of
the scheduling framework: *plugin*, *extension point*, *status*, *verdict*, *score*, *cycle state*,
*event*. It imports only values (`api`, `cache`) and nothing that runs. `_internal` holds what only
plugins of this project need; it may change without notice.
"""

from typing import TYPE_CHECKING

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.depends_on import NODE, NODE_AND_PODS
from mooring.framework.events import Action, ClusterEvent, Event
from mooring.framework.explaining import Edit, Fact
from mooring.framework.handle import Handle
from mooring.framework.plugin import (
    Args,
    Bind,
    Filter,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
)
from mooring.framework.results import Candidate, Nominate, OnlyNodes, QueuedPod, Wait
from mooring.framework.scores import BEST_IS_100, LEAST_IS_100, MAX_SCORE, MIN_MAX
from mooring.framework.state import CycleState, Failed, StateKey
from mooring.framework.status import OK, SKIP, Code, Status
from mooring.framework.verdicts import Verdicts

__all__ = [
    "BEST_IS_100",
    "LEAST_IS_100",
    "MAX_SCORE",
    "MIN_MAX",
    "NODE",
    "NODE_AND_PODS",
    "OK",
    "SKIP",
    "Action",
    "Args",
    "Bind",
    "BoolArray",
    "Candidate",
    "ClusterEvent",
    "Code",
    "CycleState",
    "Edit",
    "Event",
    "Fact",
    "Failed",
    "Filter",
    "Handle",
    "IntArray",
    "Node",
    "Nodes",
    "Nominate",
    "OnlyNodes",
    "Permit",
    "Plugin",
    "Pod",
    "PostBind",
    "PostFilter",
    "PreBind",
    "PreEnqueue",
    "PreFilter",
    "PreScore",
    "QueueSort",
    "QueuedPod",
    "Reserve",
    "Score",
    "StateKey",
    "Status",
    "Verdicts",
    "Wait",
]

if not TYPE_CHECKING:  # a type checker reports unknown names itself

    def __getattr__(name: str) -> None:
        # A plugin that uses a renamed name fails at its import, so the hint has to be given here.
        from mooring.framework._renamed import NAMES

        text = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(f"{text}: {NAMES[name]}" if name in NAMES else text)
