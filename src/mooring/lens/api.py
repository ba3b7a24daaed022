"""The answers of `/lens/v1`, version 1: their structs are the schema.

Times are RFC 3339 in UTC; amounts of "cpu" are thousandths, all others whole units. A table is
columns of one length: 5,000 nodes as objects would be ten times as long. Fields are only added
within a version.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from mooring.api.meta import Condition

VERSION: Final = 1
A_NODE: Final = "a node"
"""What stands for the name of a node that the caller may not see."""

Place = Literal["active", "backoff", "unschedulable", "gated", "waiting", "in flight", "binding"]
"""Where a pod without a node is; "waiting" is at Permit."""

Depth = Literal["groups", "matrix", "remedies"]
DEPTHS: Final[dict[str, Depth]] = {
    "groups": "groups",
    "matrix": "matrix",
    "remedies": "remedies",
}
"""How much an explanation says, by name; "groups" if none is given."""

AttemptOutcome = Literal["scheduled", "unschedulable", "nominated", "error"]
Way = Literal["class", "full", "nominated"]
BindResult = Literal["", "ok", "refused", "conflict"]


class LensAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts of an answer."""


# --- state ----------------------------------------------------------------------------------------


class Shown(LensAnswer, frozen=True, kw_only=True):
    """What the caller may see.

    nodes  all; anonymous: numbers without names, labels and taints
    pods   all; namespace: those of one namespace; counts: no names
    """

    nodes: Literal["all", "anonymous"] = "all"
    pods: Literal["all", "namespace", "counts"] = "all"
    namespace: str = ""


class SchedulerInfo(LensAnswer, frozen=True, kw_only=True):
    """The program that decides; of a file, the one that wrote it."""

    name: str
    version: str = ""
    profiles: tuple[str, ...] = ()
    leader: bool = True  # False: a replica that stands by
    explains_past: bool = False  # `explain?at=`: there is a journal


class ResourceColumn(LensAnswer, frozen=True, kw_only=True):
    """One resource of all nodes."""

    name: str
    unit: Literal["milli", "bytes", "count"]
    allocatable: list[int]
    requested: list[int]


class NodeLabelColumn(LensAnswer, frozen=True, kw_only=True):
    """One label of all nodes: places in `values`, -1 where a node lacks it."""

    key: str
    values: list[str]
    codes: list[int]


class TaintColumn(LensAnswer, frozen=True, kw_only=True):
    """The taints of all nodes: places in `values`, "key=value:Effect, …"; "" without any."""

    values: list[str]
    codes: list[int]


class NodeColumns(LensAnswer, frozen=True, kw_only=True):
    """All nodes. `names` is empty if the caller may not see them."""

    count: int
    names: list[str]
    pods: list[int]  # on each of them
    unschedulable: list[int]  # 1: cordoned
    ready: list[int]  # 1: the condition Ready is True, or there is none
    resources: tuple[ResourceColumn, ...] = ()
    labels: tuple[NodeLabelColumn, ...] = ()  # those with few different values
    taints: TaintColumn


class QueueCounts(LensAnswer, frozen=True, kw_only=True):
    """How many pods without a node are where."""

    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0
    waiting: int = 0  # at Permit
    in_flight: int = 0  # decided at this moment


class Rates(LensAnswer, frozen=True, kw_only=True):
    """Over the newest records, at most those of a minute."""

    decisions_per_second: float = 0.0
    bound_per_second: float = 0.0
    p50_us: float = 0.0  # of a decision
    p99_us: float = 0.0


class PluginTime(LensAnswer, frozen=True, kw_only=True):
    """What one plugin takes at one extension point, since the start of the scheduler."""

    plugin: str
    point: str
    calls: int  # that were measured: those of one of ten attempts
    mean_us: float
    share: float  # of the time of all plugins, 0 to 1


class LensState(LensAnswer, frozen=True, kw_only=True):
    """The cluster at one moment; changes come by the stream."""

    version: int = VERSION
    seq: int  # that of the newest record
    at: str
    source: Literal["scheduler", "cluster", "file"]
    scheduler: SchedulerInfo
    shown: Shown = Shown()
    nodes: NodeColumns
    queue: QueueCounts
    rates: Rates | None = None  # None: nothing is recorded
    plugins: tuple[PluginTime, ...] = ()  # that take the most time, at most ten
    notes: tuple[str, ...] = ()  # what is not known


# --- queue ----------------------------------------------------------------------------------------


class WaitingPodRow(LensAnswer, frozen=True, kw_only=True):
    """One pod without a node."""

    namespace: str
    name: str
    uid: str
    place: Place
    priority: int
    attempts: int
    since: str | None  # first time in the queue
    next_try: str | None = None  # at the latest
    plugins: tuple[str, ...] = ()  # that refused it last, or keep it waiting
    shape: str = ""  # "500m cpu, 1Gi memory"
    message: str = ""
    profile: str = ""
    kind: str = ""  # "gated", else "" unless it is known


class LensQueue(LensAnswer, frozen=True, kw_only=True):
    """The pods without a node, those that are tried first before the others."""

    version: int = VERSION
    at: str
    shown: Shown = Shown()
    counts: QueueCounts
    pods: tuple[WaitingPodRow, ...]
    truncated: bool = False  # there are more than the limit


# --- one node -------------------------------------------------------------------------------------


class NodeResource(LensAnswer, frozen=True, kw_only=True):
    """One resource of one node, as Kubernetes quantities."""

    name: str
    allocatable: str
    requested: str
    share: float  # requested of allocatable, 0 to 1 and above; 0 if there is none


class PodOnNode(LensAnswer, frozen=True, kw_only=True):
    """One pod of a node, or one that is nominated for it."""

    namespace: str
    name: str
    priority: int
    requests: dict[str, str]
    phase: str = ""
    assumed: bool = False  # on its way: not bound yet


class NodePage(LensAnswer, frozen=True, kw_only=True):
    """One node and its pods."""

    version: int = VERSION
    shown: Shown = Shown()
    name: str
    labels: dict[str, str]
    taints: tuple[str, ...]
    unschedulable: bool
    conditions: tuple[Condition, ...]
    resources: tuple[NodeResource, ...]
    count: int  # of pods
    pods: tuple[PodOnNode, ...]  # most important first; empty if the caller may not see them
    nominated: tuple[PodOnNode, ...] = ()  # likewise


# --- records --------------------------------------------------------------------------------------


class RecordRow(LensAnswer, frozen=True, kw_only=True):
    """One attempt to schedule one pod, and how its bind ended."""

    seq: int  # 1 for the first attempt of the process
    at: str  # when it was decided
    uid: str
    namespace: str
    pod: str
    profile: str
    attempt: int  # 1 for the pod's first
    queued_at: str | None  # when the pod entered the queue this time
    woken_by: str = ""  # what ended its wait
    way: Way
    outcome: AttemptOutcome
    took_us: float  # the decision
    evaluated: int = 0  # nodes
    feasible: int = 0
    node: str = ""
    points: int | None = None  # with --record-margins, of decisions in full
    runner_up: str = ""  # with --record-margins: one of the next best nodes
    margin: int | None = None  # by which it is behind
    reasons: dict[str, int] = {}  # reason -> nodes that gave it
    message: str = ""  # kube-scheduler's
    refused_by: tuple[str, ...] = ()  # plugins
    nominated: str = ""  # node
    victims: int = 0
    bind: BindResult = ""  # "": it has not ended, or there was none
    bind_us: float | None = None  # from the decision to its end, a wait at Permit included
    permit_us: float | None = None  # of a pod that waited at Permit


class RecordPage(LensAnswer, frozen=True, kw_only=True):
    """Some records, the newest first; `next` is the `before` of the next page."""

    version: int = VERSION
    shown: Shown = Shown()
    rows: tuple[RecordRow, ...]
    next: int | None = None
    kept: int = 0  # records in memory
    lost: int = 0  # that could not be written to the file


# --- stream ---------------------------------------------------------------------------------------


class NodesFrame(LensAnswer, frozen=True, kw_only=True):
    """`event: nodes`: rows of the columns of `state` that have changed."""

    seq: int
    rows: list[int]
    pods: list[int]
    unschedulable: list[int]
    ready: list[int]
    requested: dict[str, list[int]]  # by resource


class QueueFrame(LensAnswer, frozen=True, kw_only=True):
    """`event: queue`."""

    at: str
    counts: QueueCounts
    rates: Rates | None = None


class RecordsFrame(LensAnswer, frozen=True, kw_only=True):
    """`event: records`: new attempts and ended binds, the oldest first; some may be left out."""

    rows: tuple[RecordRow, ...]
    left_out: int = 0


class ResetFrame(LensAnswer, frozen=True, kw_only=True):
    """`event: reset`: nodes came or went, or changed in more than their pods: load `state`."""
