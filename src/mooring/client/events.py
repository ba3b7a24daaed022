"""Kubernetes Events: what `kubectl describe` shows, told without holding anybody up.

The first of equal events is created, the second makes it a series, and how often it was seen in the
end is written once it has been quiet for six minutes; as client-go does it. Equal means all but the
note. Everything here is bounded: what waits to be sent, what is remembered, how often it is tried.

    emit ──▶ new events ────▶ created ─┐
        └──▶ repeats ──────▶ patched ──┴─▶ remembered until quiet ──▶ final count patched
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import sys
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from mooring.api.codec import DecodeError
from mooring.api.events import Event, EventSeries
from mooring.api.meta import ObjectMeta, ObjectReference, format_time
from mooring.client.client import ApiClient
from mooring.client.errors import (
    Conflict,
    NotFound,
    Refused,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from mooring.client.limits import Priority
from mooring.client.transport import STRATEGIC_MERGE_PATCH
from mooring.errors import ApiError

log = logging.getLogger(__name__)

MAX_NOTE: Final = 1024  # bytes that the API server accepts, here and below
MAX_WORD: Final = 128  # of a reason, an action and a reporting instance
MAX_NAME: Final = 253
TYPES: Final = ("Normal", "Warning")

# The figures of client-go.
FINISH_AFTER: Final = 360.0  # seconds without a repeat end a series; looked at this often, too
REFRESH_EVERY: Final = 1800.0  # seconds; a server forgets an event that is not written for an hour
TRIES: Final = 12
PAUSE: Final = 10.0  # seconds between tries, and up to a quarter more

MAX_SERIES: Final = 4096  # remembered at once

_DNS_SUBDOMAIN: Final = re.compile(
    r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
)

_Key = tuple[str, str, str, ObjectReference, ObjectReference | None]


@dataclass(slots=True, eq=False)
class _Series:
    """An event, how often it was seen, and what the server knows of that."""

    event: Event
    last_seen: float  # seconds since the epoch
    count: int = 1
    told: int = 0  # the count the server has; 0 if it does not have the event
    tried: int = 0  # the count that was last tried to tell
    is_waiting: bool = False
    is_sending: bool = False


class EventSink:
    """Takes events and sends them when there is time; `emit` is for the thread of the loop.

    `host` tells the processes of one controller apart.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        host: str,
        clock: Callable[[], float] = time.time,
        capacity: int = 1000,
        concurrency: int = 4,
        rng: random.Random | None = None,
    ) -> None:
        self.dropped: int = 0  # not sent, because too many were waiting
        self.sent: int = 0  # requests that were accepted
        self.failed: int = 0  # given up
        self._client = client
        self._host = host
        self._clock = clock
        self._capacity = capacity
        self._concurrency = concurrency
        self._rng = rng or random.Random()
        self._series: OrderedDict[_Key, _Series] = OrderedDict()  # the longest unseen first
        self._new: deque[_Series] = deque()
        self._repeats: deque[_Series] = deque()
        self._arrived = asyncio.Event()
        self._in_flight = 0
        self._landed = asyncio.Event()
        self._is_closed = False
        self._last_nanos = 0
        self._warned: set[str] = set()

    def emit(
        self,
        regarding: ObjectReference,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: ObjectReference | None = None,
        *,
        controller: str,
    ) -> None:
        """Tell about `regarding` in the name of a controller. Never blocks, never raises."""
        if self._is_closed:
            self.dropped += 1
            return
        if type_ not in TYPES:
            self.failed += 1
            log.error("expected an Event of type Normal or Warning", extra={"type": type_})
            return
        reason, action = _word(reason), _word(action)
        key = (type_, action, reason, regarding, related)
        now = self._clock()
        series = self._series.get(key)
        if series is None:
            meta = ObjectMeta(
                name=self._name(regarding.name, now), namespace=regarding.namespace or "default"
            )
            event = Event(
                metadata=meta,
                event_time=format_time(now, micros=True),
                reporting_controller=controller,
                reporting_instance=_word(f"{controller}-{self._host}"),
                action=action,
                reason=reason,
                regarding=regarding,
                related=related,
                note=truncated(note),
                type=type_,
            )
            series = _Series(event, now)
            self._remember(key, series)
            self._enqueue(series)
            return
        self._series.move_to_end(key)
        series.count += 1
        series.last_seen = now
        if series.tried < 2:  # that it is a series; more is told when it ends
            self._enqueue(series)

    async def run(self) -> None:
        """Send what comes, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._concurrency):
                group.create_task(self._work())
            group.create_task(self._every(FINISH_AFTER, self._finish_quiet))
            group.create_task(self._every(REFRESH_EVERY, self._refresh))

    async def drain(self, seconds: float) -> None:
        """Take nothing more, and send what waits, for so long; beside `run` or after it."""
        self._is_closed = True
        try:
            async with asyncio.timeout(seconds):
                async with asyncio.TaskGroup() as group:
                    for _ in range(self._concurrency):
                        group.create_task(self._work_off())
                while self._in_flight:
                    self._landed.clear()
                    await self._landed.wait()
        except TimeoutError:
            log.warning("not all Events could be sent before the end")
        self.dropped += self._waiting
        self._new.clear()
        self._repeats.clear()

    # --- what is remembered --------------------------------------------------------------------

    def _name(self, regarding: str, now: float) -> str:
        # Several events may happen in one reading of the clock; their names must differ.
        self._last_nanos = max(int(now * 1e9), self._last_nanos + 1)
        name = f"{regarding}.{self._last_nanos:016x}"
        if len(name) <= MAX_NAME and _DNS_SUBDOMAIN.fullmatch(name):
            return name
        return str(uuid.uuid4())

    def _remember(self, key: _Key, series: _Series) -> None:
        self._series[key] = series
        while len(self._series) > MAX_SERIES:
            _, oldest = self._series.popitem(last=False)
            self._conclude(oldest)

    def _finish_quiet(self) -> None:
        quiet = self._clock() - FINISH_AFTER
        ended = [key for key, series in self._series.items() if series.last_seen < quiet]
        for key in ended:
            self._conclude(self._series.pop(key))

    def _refresh(self) -> None:
        for series in list(self._series.values()):
            if series.count > 1:
                self._enqueue(series)

    def _conclude(self, series: _Series) -> None:
        if series.count > max(series.told, 1):
            self._enqueue(series)

    # --- what waits ----------------------------------------------------------------------------

    @property
    def _waiting(self) -> int:
        return len(self._new) + len(self._repeats)

    def _enqueue(self, series: _Series) -> None:
        """Have it told, once: how often it was seen is looked up in the moment of sending."""
        if series.is_waiting or series.is_sending:
            return
        if self._waiting >= self._capacity:
            self.dropped += 1
            if not self._repeats:
                return
            # A repeat can be told later, and says less than something new.
            self._repeats.popleft().is_waiting = False
        series.is_waiting = True
        (self._repeats if series.told else self._new).append(series)
        self._arrived.set()

    def _take(self) -> _Series | None:
        if not self._waiting:
            return None
        series = (self._new or self._repeats).popleft()
        series.is_waiting = False
        return series

    # --- sending -------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            await self._work_off()
            self._arrived.clear()
            await self._arrived.wait()

    async def _work_off(self) -> None:
        while (series := self._take()) is not None:
            await self._send(series)

    async def _every(self, seconds: float, act: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            act()

    async def _send(self, series: _Series) -> None:
        series.is_sending = True
        self._in_flight += 1
        try:
            await self._insist(series)
        except asyncio.CancelledError:
            if self._is_closed:
                self.dropped += 1
            else:
                series.is_waiting = True
                (self._repeats if series.told else self._new).appendleft(series)
            raise
        except Exception:  # a mistake of ours; an Event is not worth a crash
            self.failed += 1
            log.exception("could not send an Event", extra=_named(series))
        finally:
            series.is_sending = False
            self._in_flight -= 1
            self._landed.set()
        if series.told and series.tried < 2 <= series.count:  # repeated while it was sent
            self._enqueue(series)

    async def _insist(self, series: _Series) -> None:
        for _ in range(TRIES):
            pause = await self._tell(series)
            if pause is None:
                return
            await asyncio.sleep(pause)
        self.failed += 1
        self._warn("retries", "gave up on an Event after many tries", _named(series))

    async def _tell(self, series: _Series) -> float | None:
        """One request; None when all is said, or else the seconds until it is tried again."""
        count = series.tried = series.count
        try:
            await self._request(series)
        except NotFound as error:
            if not series.told:  # there is no such namespace
                self._give_up(series, error)
                return None
            series.told = 0  # the server has forgotten it: create it anew
            return 0.0
        except Conflict as error:
            if error.reason != "AlreadyExists":
                return self._pause()
            # Created by a request whose answer was lost.
            series.told = 1
            if count > 1:
                return 0.0
        except (Unreachable, TooManyRequests, ServerError) as error:
            log.debug("could not send an Event", extra={**_named(series), "error": str(error)})
            return self._pause()
        except ApiError as error:
            self._give_up(series, error)
            return None
        except DecodeError as error:  # accepted, whatever the answer means
            log.debug("an answer is no Event", extra={**_named(series), "error": str(error)})
        series.told = count
        self.sent += 1
        return None

    async def _request(self, series: _Series) -> None:
        event = series.event
        repeated = None
        if series.count > 1:
            seen = format_time(series.last_seen, micros=True)
            repeated = EventSeries(count=series.count, last_observed_time=seen)
        if not series.told:
            made = replace(event, series=repeated)
            await self._client.create(made, priority=Priority.EVENT)
            return
        await self._client.patch(
            Event,
            event.name,
            event.namespace,
            {"series": repeated},
            content_type=STRATEGIC_MERGE_PATCH,
            priority=Priority.EVENT,
        )

    def _pause(self) -> float:
        return PAUSE * self._rng.uniform(1.0, 1.25)

    def _give_up(self, series: _Series, error: ApiError) -> None:
        self.failed += 1
        kind = (
            f"{error.code} {error.reason}" if isinstance(error, Refused) else type(error).__name__
        )
        extra = {**_named(series), "error": str(error)}
        if "is being terminated" in str(error):  # of a namespace; that is nobody's mistake
            log.debug("the namespace of an Event goes away", extra=extra)
        else:
            self._warn(kind, "the server does not take an Event", extra)

    def _warn(self, kind: str, message: str, extra: dict[str, str]) -> None:
        """Say it aloud once for each kind of trouble: there may be one for each pod."""
        level = logging.DEBUG if kind in self._warned else logging.WARNING
        self._warned.add(kind)
        log.log(level, message, extra=extra)


def truncated(note: str) -> str:
    """An Event's note must fit into 1,024 bytes; a longer one ends in " ..."."""
    cut = _cut(note, MAX_NOTE)
    return cut if len(cut) == len(note) else _cut(note, MAX_NOTE - 4) + " ..."


def _word(text: str) -> str:
    """A text of which thousands are remembered and few are different: kept once."""
    return sys.intern(_cut(text, MAX_WORD))


def _cut(text: str, limit: int) -> str:
    """As much of a text as fits into so many bytes of UTF-8; half a pair of surrogates is a `?`."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore")


def _named(series: _Series) -> dict[str, str]:
    event = series.event
    about = f"{event.regarding.namespace}/{event.regarding.name}".lstrip("/")
    return {"object": about, "kind": event.regarding.kind, "reason": event.reason}
