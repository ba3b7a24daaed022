"""The queue as a table: one row per pod and no structure at all. Slow, and easy to believe."""

import math
from dataclasses import dataclass, field

from mooring.cache.pods import Pod
from mooring.framework.events import Action, ClusterEvent, Event
from mooring.queue.hints import Registration

WAKES = {"A": ("NodeAdd", "Label"), "B": ("PodDelete",), "C": ("NodeAdd",), "Gate": ("NodeAdd",)}
"""Plugin -> the events it waits for; C looks closer, at the pod's label."""

EVENTS = {
    "NodeAdd": Event.NODE_ADDED,
    "PodDelete": ClusterEvent("AssignedPod", Action.DELETE),
    "Label": Event.POD_LABELS_CHANGED,
}


def is_willing(pod: Pod) -> bool:
    return pod.labels.get("will") == "yes"


def registrations() -> list[Registration]:
    def hint(event: ClusterEvent, pod: Pod, old: object | None, new: object | None) -> bool:
        return is_willing(pod)

    listens_to = {**EVENTS, "PodDelete": Event.POD_DELETED}
    return [
        Registration(listens_to[event], plugin, hint if plugin == "C" else None)
        for plugin, events in WAKES.items()
        for event in events
    ]


@dataclass
class Row:
    """Everything there is to know about one pod."""

    pod: Pod
    since: float
    place: str = "flight"
    turn: int = 0  # who came to this place first
    refused: int = 0
    errors: int = 0
    attempts: int = 0
    plugins: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()
    missed: list[str] = field(default_factory=list)  # events while in flight

    @property
    def rejectors(self) -> frozenset[str]:
        return self.plugins | self.pending

    @property
    def is_early_bird(self) -> bool:
        """May be popped although it backs off."""
        return self.place == "backoff" and bool(self.rejectors)

    @property
    def expiry(self) -> float:
        count = self.errors or self.refused
        return math.floor(self.since + min(2 ** (count - 1), 10)) if count else -math.inf

    def worth(self, event: str) -> str:
        """ "no", "backoff" or "now"."""
        if event in ("All", "Mine"):
            return "backoff"
        helped = {
            plugin
            for plugin in self.rejectors
            if event in WAKES.get(plugin, ()) and (plugin != "C" or is_willing(self.pod))
        }
        return "now" if helped & self.pending else "backoff" if helped else "no"


class Table:
    """The rows, the closed gates, and the time."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.rows: dict[str, Row] = {}  # by uid
        self.closed: set[str] = set()  # names
        self.turns = 0

    def at(self, *places: str) -> list[Row]:
        return sorted(
            (row for row in self.rows.values() if row.place in places), key=lambda row: row.turn
        )

    def named(self, name: str) -> Row | None:
        """The row of this name that is in a queue."""
        return next(
            (r for r in self.rows.values() if r.pod.name == name and r.place != "flight"), None
        )

    def put(self, row: Row, place: str) -> None:
        row.place = place
        self.turns += 1
        row.turn = self.turns

    def settle(self, row: Row, worth: str) -> None:
        if worth == "no":
            self.put(row, "unschedulable")
        elif row.pod.name in self.closed:
            row.plugins |= {"Gate"}
            self.put(row, "gated")
        elif worth == "backoff" and row.expiry >= math.floor(self.now):
            self.put(row, "backoff")
        else:
            self.put(row, "active")

    def wake(self, rows: list[Row], event: str) -> None:
        for row in rows:
            deaf = row.place == "gated" and event not in WAKES["Gate"]
            if not deaf and row.worth(event) != "no":
                self.settle(row, row.worth(event))
        for row in self.at("flight"):
            row.missed.append(event)

    def next_row(self) -> Row | None:
        active = self.at("active")
        if active:
            return min(active, key=lambda row: (-row.pod.priority, row.since))
        early = [row for row in self.at("backoff") if row.is_early_bird]
        return min(early, key=lambda r: (r.expiry, -r.pod.priority, r.since), default=None)
