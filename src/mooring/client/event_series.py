"""An Event and its series, within the limits that an API server accepts."""

from __future__ import annotations

import re
import sys
import uuid
from typing import Final

import msgspec

from mooring.api.events import Event, EventSeries
from mooring.api.meta import ObjectMeta, ObjectReference, format_time

MAX_NOTE: Final = 1024  # bytes that the API server accepts, here and below
MAX_WORD: Final = 128  # of a reason, an action and a reporting instance
MAX_NAME: Final = 253

_DNS_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)


class Series(msgspec.Struct, eq=False):
    """An Event, how often it was seen, and what of that the server was told."""

    regarding: ObjectReference
    related: ObjectReference | None
    type: str
    reason: str
    action: str
    note: str
    controller: str
    first_seen: float  # seconds since the epoch, here and below
    nanos: int  # since the epoch, unique
    last_seen: float
    count: int = 1
    told: int = 0  # the count the server has; 0 if it does not have the event
    tried: int = 0  # the count that was last tried to tell
    waits_since: float = 0.0
    is_waiting: bool = False
    is_sending: bool = False
    name: str = ""  # of the event, once it has been made

    @property
    def namespace(self) -> str:
        return self.regarding.namespace or "default"

    def to_series(self) -> EventSeries | None:
        if self.count == 1:
            return None
        seen = format_time(self.last_seen, micros=True)
        return EventSeries(count=self.count, last_observed_time=seen)

    def to_event(self, host: str) -> Event:
        self.name = self.name or _name(self.regarding.name, self.nanos)
        return Event(
            metadata=ObjectMeta(name=self.name, namespace=self.namespace),
            event_time=format_time(self.first_seen, micros=True),
            reporting_controller=self.controller,
            reporting_instance=word(f"{self.controller}-{host}"),
            action=self.action,
            reason=self.reason,
            regarding=self.regarding,
            related=self.related,
            note=truncated(self.note),
            type=self.type,
            series=self.to_series(),
        )


def truncated(note: str) -> str:
    """An Event's note must fit into 1,024 bytes; a longer one ends in " ..."."""
    cut = _cut(note, MAX_NOTE)
    return cut if len(cut) == len(note) else _cut(note, MAX_NOTE - 4) + " ..."


def _name(regarding: str, nanos: int) -> str:
    name = f"{regarding}.{nanos:016x}"
    if len(name) <= MAX_NAME and _DNS_SUBDOMAIN.fullmatch(name):
        return name
    return str(uuid.uuid4())


def word(text: str) -> str:
    """A reason or the like, cut and interned: many Series have the same."""
    return sys.intern(_cut(text, MAX_WORD))


def _cut(text: str, limit: int) -> str:
    """As much of a text as fits into `limit` bytes of UTF-8; a lone surrogate becomes a `?`."""
    if len(text) <= limit and text.isascii():
        return text
    return text.encode(errors="replace")[:limit].decode(errors="ignore")
