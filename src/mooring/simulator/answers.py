"""What the commands answer with: the schema of `-o json`, version 1.

Fields are only added within a version. Pods are "namespace/name"; amounts are Kubernetes
quantities; shares are between 0 and 1.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mooring.lens.snapshot import MissingKind, Snapshot
from mooring.simulator.changes import BudgetBreach
from mooring.simulator.measures import ResourceUse
from mooring.simulator.waiting import Refused

VERSION: Final = 1


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What every answer has. `missing` are kinds that could not be read and may change it."""

    format: str
    version: int = VERSION
    snapshot: str = ""  # where the cluster was read from
    seed: int = 0
    missing: tuple[MissingKind, ...] = ()
    notes: tuple[str, ...] = ()


def told_by(snapshot: Snapshot, *notes: str) -> tuple[str, ...]:
    """The notes of an answer about a snapshot."""
    return (*snapshot.notes, *dict.fromkeys(notes))


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the parts of answers."""


class Move(Part, frozen=True, kw_only=True):
    """A pod that is on another node than before; `from` is empty if it was on none.

    A pod that `waits` has no node yet, and `from` is where it would go without the changes.
    """

    pod: str
    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    waits: bool = False


class Pending(Part, frozen=True, kw_only=True):
    """A pod without a node, where it was before, and why; `waits` is as in a move."""

    pod: str
    from_: str = msgspec.field(default="", name="from")
    waits: bool = False
    message: str = ""
    refused: tuple[Refused, ...] = ()


class Side(Part, frozen=True, kw_only=True):
    """A cluster before, after, or under one configuration."""

    nodes: int
    pods: int
    waiting: int
    preempted: int
    resources: tuple[ResourceUse, ...]


class WhatIfAnswer(Answer, frozen=True, kw_only=True):
    """The difference that changes make."""

    format: str = "mooring-what-if"
    changes: tuple[str, ...] = ()  # in the words of the command line
    config: str = ""
    moved: tuple[Move, ...] = ()
    placed: tuple[Move, ...] = ()  # waited before, or was not there
    pending: tuple[Pending, ...] = ()  # had a node before, or was not there
    gone: tuple[str, ...] = ()  # pods that are no longer there
    still_waiting: int = 0
    preempted: tuple[str, ...] = ()
    budgets: tuple[BudgetBreach, ...] = ()
    unmanaged: tuple[str, ...] = ()
    before: Side | None = None
    after: Side | None = None


class PodShape(Part, frozen=True, kw_only=True):
    """One kind of pod whose number was asked for."""

    name: str
    share: int  # in the mix
    count: int  # that fit


class Gain(Part, frozen=True, kw_only=True):
    """How many more pods fit if every node had one unit more of a resource."""

    resource: str
    unit: str
    pods: int


class CapacityAnswer(Answer, frozen=True, kw_only=True):
    """How many more pods fit."""

    format: str = "mooring-capacity"
    total: int = 0
    nodes: dict[str, int] = {}  # node -> pods that fit on it
    bottlenecks: dict[str, int] = {}  # what keeps another pod off -> number of nodes
    pods: tuple[PodShape, ...] = ()
    limited: bool = False  # stopped by the limit that was asked for
    refused_pod: str = ""  # the first that did not fit
    message: str = ""
    refused: tuple[Refused, ...] = ()
    gains: tuple[Gain, ...] = ()


class PlacementDifference(Part, frozen=True, kw_only=True):
    """A pod that two configurations place differently, and the plugin that made the difference."""

    pod: str
    first: str  # its node under the first configuration; "" if it waits
    second: str
    plugin: str = ""  # "" if it was not found out
    why: str = ""


class ComparisonAnswer(Answer, frozen=True, kw_only=True):
    """Two configurations on one snapshot."""

    format: str = "mooring-comparison"
    first_config: str = ""
    second_config: str = ""
    placed: int = 0  # pods that were placed under both
    differences: tuple[PlacementDifference, ...] = ()
    by_plugin: dict[str, int] = {}
    first: Side | None = None
    second: Side | None = None
