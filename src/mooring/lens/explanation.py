"""An explanation as data: the schema of `mooring explain -o json`, version 1.

Fields are only added within a version. Names of pods are "namespace/name"; amounts are Kubernetes
quantities.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from mooring.framework.explaining import Fact, Target, WaitsFor
from mooring.lens.snapshot import QueuedState

FORMAT: Final = "mooring-explanation"
VERSION: Final = 1

GATED: Final = "gated"
MISCONFIGURED: Final = "misconfigured"
WAITS_FOR_ROOM: Final = "waits for room"
WAITS_FOR_OTHERS: Final = "waits for others"
ERROR: Final = "error"
FITS: Final = "fits"
SCHEDULED: Final = "scheduled"

Kind = Literal[
    "gated", "misconfigured", "waits for room", "waits for others", "error", "fits", "scheduled"
]
"""Why a pod waits; or that it need not, or does not."""


class Told(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all parts of an explanation."""


class PluginRefusal(Told, frozen=True, kw_only=True):
    """One plugin's refusal of some nodes, or of the pod before any node was looked at."""

    plugin: str
    reasons: tuple[str, ...]  # in kube-scheduler's words
    code: str  # Unschedulable, UnschedulableAndUnresolvable, …
    facts: tuple[Fact, ...] = ()
    beside: tuple[str, ...] = ()  # the nominated pods because of which it refuses


class NodeGroup(Told, frozen=True, kw_only=True):
    """Nodes with the same refusals; the counts of all groups add up to the number of nodes."""

    nodes: int
    examples: tuple[str, ...]
    said: PluginRefusal | None = (
        None  # the first refusal, which kube-scheduler tells; None: feasible
    )
    also: tuple[PluginRefusal, ...] = ()  # what the other plugins say
    waits_for: WaitsFor | None = None  # what may open these nodes

    @property
    def refusals(self) -> tuple[PluginRefusal, ...]:
        return () if self.said is None else (self.said, *self.also)


class PluginScore(Told, frozen=True, kw_only=True):
    """What one plugin gives one node."""

    plugin: str
    raw: int
    normalized: int  # 0 to 100
    weight: int
    weighted: int


class NodeScore(Told, frozen=True, kw_only=True):
    """The points of one node."""

    node: str
    total: int
    place: int  # 1 is the best; equal totals share a place
    plugins: tuple[PluginScore, ...]


class PluginMargin(Told, frozen=True, kw_only=True):
    """What one plugin adds to the lead of the best node; below zero: takes from it."""

    plugin: str
    best: int  # weighted
    runner_up: int
    points: int


class WeightChange(Told, frozen=True, kw_only=True):
    """The smallest change of one weight with which another node would be chosen."""

    plugin: str
    weight: int
    to: int  # 0: the plugin is disabled
    node: str  # that would be chosen


class Choice(Told, frozen=True, kw_only=True):
    """Which of the feasible nodes is the best, and why."""

    node: str
    total: int
    runner_up: str = ""
    margin: int | None = None  # None: there is no other node
    difference: tuple[PluginMargin, ...] = ()  # by what it comes from, largest first
    ties: tuple[str, ...] = ()  # the best nodes with equal totals, the first ten, if several
    tied: int = 1  # how many there are
    tie_break: str = ""
    flip: WeightChange | None = None
    nodes: tuple[NodeScore, ...] = ()  # the best ten, and those that were asked for


class NodeAnswer(Told, frozen=True, kw_only=True):
    """A node that was asked for by name: its refusals, or its points."""

    node: str
    refusals: tuple[PluginRefusal, ...] = ()
    score: NodeScore | None = None


class EvictionCandidate(Told, frozen=True, kw_only=True):
    """A node where the pod would fit without these pods."""

    node: str
    victims: tuple[str, ...]
    pdb_violations: int = 0


class Preemption(Told, frozen=True, kw_only=True):
    """Whether evictions would make room."""

    helps: bool
    message: str  # in kube-scheduler's words if it does not help
    node: str = ""  # the best candidate
    decided_by: str = ""  # "highest priority of a victim: 1 against 5"
    candidates: tuple[EvictionCandidate, ...] = ()  # the best and nine others at most
    count: int = 0  # of all candidates


class AppliedEdit(Told, frozen=True, kw_only=True):
    """One edit of a remedy, and what it would change as JSON merge patches."""

    target: Target
    text: str
    patches: tuple[ObjectPatch, ...] = ()


class ObjectPatch(Told, frozen=True, kw_only=True):
    """What becomes of one object; None: it is deleted.

    Of a KubeSchedulerConfiguration, it is a patch of the profile with the schedulerName `name`.
    """

    kind: str
    name: str
    namespace: str = ""
    patch: dict[str, Any] | None


class Remedy(Told, frozen=True, kw_only=True):
    """A smallest set of edits with which the pod fits: tried out, and none can be left out."""

    edits: tuple[AppliedEdit, ...]
    nodes: int  # feasible then
    examples: tuple[str, ...]
    node: str  # that would be chosen

    @property
    def text(self) -> str:
        return " and ".join(edit.text for edit in self.edits)

    @property
    def target(self) -> str:
        return self.edits[0].target if len({e.target for e in self.edits}) == 1 else "both"


class Explanation(Told, frozen=True, kw_only=True):
    """Why a pod is where it is, or is not."""

    format: str = FORMAT
    version: int = VERSION
    pod: str
    kind: Kind
    summary: str
    nodes: int  # of the cluster
    feasible: int
    exactness: Literal["exact", "now", "partial"] = "now"  # exact: as it was; partial: see `notes`
    notes: tuple[str, ...] = ()  # what this answer does not know
    profile: str = ""
    node: str = ""  # it is bound to
    nominated: str = ""  # node
    message: str = ""  # kube-scheduler's, as in Event and condition
    before: PluginRefusal | None = None  # by PreEnqueue or PreFilter, for all nodes
    groups: tuple[NodeGroup, ...] = ()
    choice: Choice | None = None
    asked: tuple[NodeAnswer, ...] = ()
    preemption: Preemption | None = None
    remedies: tuple[Remedy, ...] | None = None  # None: not looked for
    tried: int = 0  # changes that were tried out for the remedies
    queue: QueuedState | None = None
    wakes_on: tuple[str, ...] = ()  # events after which it is tried again


def plain(found: Explanation) -> dict[str, Any]:
    """As JSON and YAML have it."""
    fields: dict[str, Any] = msgspec.to_builtins(found)
    return fields


def as_json(found: Explanation) -> str:
    """One document, indented."""
    return msgspec.json.format(msgspec.json.encode(plain(found)), indent=2).decode() + "\n"
