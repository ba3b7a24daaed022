"""The contract between plugins and the scheduler: everything a plugin author imports.

    import mooring.framework as fw

Pods and nodes come in as read-only views, statuses and scores go out. This room owns the words of
the scheduling framework: *plugin*, *extension point*, *status*, *verdict*, *score*, *cycle state*,
*event*. It imports only values (`api`, `cache`) and nothing that runs.
"""

from mooring.cache.arrays import BoolArray, FloatArray, IntArray
from mooring.cache.imagined import Imagined
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.events import Action, ClusterEvent, Event
from mooring.framework.handle import (
    Client,
    Clock,
    Handle,
    Nominator,
    Recorder,
    WaitingPod,
    WaitingPods,
    WhatIf,
)
from mooring.framework.plugin import (
    Args,
    Base,
    Bind,
    DomainFilter,
    DomainScore,
    Filter,
    NoArgs,
    NormalizeScore,
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
from mooring.framework.results import (
    Candidate,
    LabelScores,
    LocalTable,
    Nominate,
    OnlyNodes,
    QueuedPod,
    Wait,
)
from mooring.framework.scope import Scope
from mooring.framework.scores import MAX_SCORE, MIN_SCORE, broken_linear, normalize
from mooring.framework.state import CycleState, Failed, StateKey
from mooring.framework.status import OK, SKIP, Code, Status
from mooring.framework.verdicts import Verdicts

__all__ = [
    "MAX_SCORE",
    "MIN_SCORE",
    "OK",
    "SKIP",
    "Action",
    "Args",
    "Base",
    "Bind",
    "BoolArray",
    "Candidate",
    "Client",
    "Clock",
    "ClusterEvent",
    "Code",
    "CycleState",
    "DomainFilter",
    "DomainScore",
    "Event",
    "Failed",
    "Filter",
    "FloatArray",
    "Handle",
    "Imagined",
    "IntArray",
    "LabelScores",
    "LocalTable",
    "NoArgs",
    "Node",
    "Nodes",
    "Nominate",
    "Nominator",
    "NormalizeScore",
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
    "Recorder",
    "Reserve",
    "Scope",
    "Score",
    "StateKey",
    "Status",
    "Verdicts",
    "Wait",
    "WaitingPod",
    "WaitingPods",
    "WhatIf",
    "broken_linear",
    "normalize",
]
