"""Writes Kubernetes Events in the background.

As in client-go, the first of equal Events is created, the second makes it a series, and the final
count is written once it has been quiet for six minutes. Equal means all but the note. The queue,
the memory and the number of tries are bounded. Events wait a few seconds for other writes in
progress, and are then sent one at a time.

    emit ──▶ new events ────▶ created ─┐
        └──▶ repeats ──────▶ patched ──┴─▶ remembered until quiet ──▶ final count patched
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from mooring.api.events import Event
from mooring.api.meta import ObjectReference
from mooring.client import errors
from mooring.client.client import ApiClient
from mooring.client.event_series import Series, word
from mooring.client.flowcontrol import RequestPriority, WritesInProgress
from mooring.errors import ApiError

log = logging.getLogger(__name__)

TYPES: Final = ("Normal", "Warning")

# The figures of client-go.
FINISH_AFTER: Final = 360.0  # seconds without a repeat end a series; looked at this often, too
REFRESH_EVERY: Final = 1800.0  # seconds; a server forgets an event that is not written for an hour
TRIES: Final = 12
PAUSE: Final = 10.0  # seconds between tries, and up to a quarter more

MAX_SERIES: Final = 4096  # remembered at once
CONCURRENCY: Final = 4  # requests

PATIENCE: Final = 5.0  # seconds that an Event waits for other writes


_Key = tuple[str, str, str, ObjectReference, ObjectReference | None]


class EventSink:
    """Takes Events and sends them in the background; `emit` is for the thread of the loop.

    `host` tells the processes of one controller apart. Events wait for `writes`.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        host: str,
        clock: Callable[[], float] = time.time,
        capacity: int = 1000,
        rng: random.Random | None = None,
        writes: WritesInProgress | None = None,
    ) -> None:
        self.dropped: int = 0  # not sent, because too many were waiting
        self.sent: int = 0  # requests that were accepted
        self.failed: int = 0  # given up
        self._client = client
        self._host = host
        self._clock = clock
        self._capacity = capacity
        self._rng = rng or random.Random()
        self._writes = writes
        self._go_on = asyncio.Event()  # set when Events need not wait
        if writes is not None:
            writes.on_none(self._go_on.set)
        self._series: OrderedDict[_Key, Series] = OrderedDict()  # the longest unseen first
        self._new: deque[Series] = deque()
        self._repeats: deque[Series] = deque()
        self._arrived = asyncio.Event()
        self._in_flight = 0
        self._sent_one = asyncio.Event()
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
        """An Event about `regarding`, reported by a controller. Never blocks, never raises."""
        if self._is_closed:
            self.dropped += 1
            return
        if type_ not in TYPES:
            self.failed += 1
            log.error("expected an Event of type Normal or Warning", extra={"type": type_})
            return
        reason, action = word(reason), word(action)
        key = (type_, action, reason, regarding, related)
        now = self._clock()
        series = self._series.get(key)
        if series is None:
            # Several events may happen in one reading of the clock; their names must differ.
            nanos = self._last_nanos = max(int(now * 1e9), self._last_nanos + 1)
            series = Series(
                regarding, related, type_, reason, action, note, controller, now, nanos, now
            )
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
            for number in range(CONCURRENCY):
                group.create_task(self._work(is_first=number == 0))
            group.create_task(self._every(FINISH_AFTER, self._finish_quiet))
            group.create_task(self._every(REFRESH_EVERY, self._refresh))

    async def drain(self, seconds: float) -> None:
        """Take no more Events, and send those that wait, for so long; during `run` or after it."""
        self._is_closed = True
        try:
            async with asyncio.timeout(seconds):
                async with asyncio.TaskGroup() as group:
                    for _ in range(CONCURRENCY):
                        group.create_task(self._send_waiting())
                while self._in_flight:
                    self._sent_one.clear()
                    await self._sent_one.wait()
        except TimeoutError:
            log.warning("not all Events could be sent before the end")
        self.dropped += self._waiting
        self._new.clear()
        self._repeats.clear()

    # --- what is remembered --------------------------------------------------------------------

    def _remember(self, key: _Key, series: Series) -> None:
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

    def _conclude(self, series: Series) -> None:
        if series.count > max(series.told, 1):
            self._enqueue(series)

    # --- what waits ----------------------------------------------------------------------------

    @property
    def _waiting(self) -> int:
        return len(self._new) + len(self._repeats)

    @property
    def _is_half_full(self) -> bool:
        return 2 * self._waiting > self._capacity

    def _enqueue(self, series: Series) -> None:
        """Have it sent, with the count at the time of sending."""
        if series.is_waiting or series.is_sending:
            return
        if self._waiting >= self._capacity:
            self.dropped += 1
            if not self._repeats:
                return
            # A repeat can be sent later, and says less than a new Event.
            self._repeats.popleft().is_waiting = False
        series.is_waiting = True
        series.waits_since = self._clock()
        (self._repeats if series.told else self._new).append(series)
        self._arrived.set()
        if self._is_half_full:
            self._go_on.set()

    def _take(self) -> Series | None:
        if not self._waiting:
            return None
        series = (self._new or self._repeats).popleft()
        series.is_waiting = False
        return series

    # --- sending -------------------------------------------------------------------------------

    async def _work(self, *, is_first: bool) -> None:
        while True:
            await self._send_waiting(is_first=is_first)
            self._arrived.clear()
            await self._arrived.wait()

    async def _send_waiting(self, *, is_first: bool = True) -> None:
        while self._waiting:
            await self._wait_for_writes(is_first=is_first)
            series = self._take()
            if series is not None:
                await self._send(series)

    async def _wait_for_writes(self, *, is_first: bool) -> None:
        """Wait while other writes are in progress, unless the queue is half full.

        The first worker goes on as well if the head of the queue is old.
        """
        writes = self._writes
        while writes is not None and writes.any and not self._is_closed:
            line = self._new or self._repeats
            if not line or self._is_half_full:
                return
            patience = line[0].waits_since + PATIENCE - self._clock()
            if patience <= 0:
                if is_first:
                    return
                patience = PATIENCE
            self._go_on.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._go_on.wait()

    async def _every(self, seconds: float, act: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(seconds)
            act()

    async def _send(self, series: Series) -> None:
        series.is_sending = True
        self._in_flight += 1
        try:
            await self._send_with_retries(series)
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
            self._sent_one.set()
        if series.told and series.tried < 2 <= series.count:  # repeated while it was sent
            self._enqueue(series)

    async def _send_with_retries(self, series: Series) -> None:
        for _ in range(TRIES):
            pause = await self._try_once(series)
            if pause is None:
                return
            await asyncio.sleep(pause)
        self.failed += 1
        self._warn("retries", "gave up on an Event after many tries", _named(series))

    async def _try_once(self, series: Series) -> float | None:
        """One request; the seconds until the next try, or None for no further one."""
        count = series.tried = series.count
        try:
            await self._request(series)
        except errors.NotFound as error:
            if not series.told:  # there is no such namespace
                self._give_up(series, error)
                return None
            series.told = 0  # the server has forgotten it: create it again
            return 0.0
        except errors.ConflictError as error:
            if error.reason != "AlreadyExists":
                return self._pause()
            # Created by a request whose answer was lost.
            series.told = 1
            if count > 1:
                return 0.0
        except (errors.TooManyRequests, *errors.OUTCOME_UNKNOWN) as error:
            log.debug("could not send an Event", extra={**_named(series), "error": str(error)})
            return self._pause()
        except ApiError as error:
            self._give_up(series, error)
            return None
        series.told = count
        self.sent += 1
        return None

    async def _request(self, series: Series) -> None:
        if not series.told:
            await self._client.tell(series.to_event(self._host), priority=RequestPriority.EVENT)
            return
        await self._client.patch_without_answer(
            Event,
            series.name,
            series.namespace,
            {"series": series.to_series()},
            priority=RequestPriority.EVENT,
        )

    def _pause(self) -> float:
        return PAUSE * self._rng.uniform(1.0, 1.25)

    def _give_up(self, series: Series, error: ApiError) -> None:
        self.failed += 1
        kind = type(error).__name__
        if isinstance(error, errors.StatusError):
            kind = f"{error.code} {error.reason}"
        extra = {**_named(series), "error": str(error)}
        if "is being terminated" in str(error):  # a namespace
            log.debug("the namespace of an Event is being terminated", extra=extra)
        else:
            self._warn(kind, "the API server refused an Event", extra)

    def _warn(self, kind: str, message: str, extra: dict[str, str]) -> None:
        """Warn once for each kind of failure: there may be one for each pod."""
        level = logging.DEBUG if kind in self._warned else logging.WARNING
        self._warned.add(kind)
        log.log(level, message, extra=extra)


def _named(series: Series) -> dict[str, str]:
    about = f"{series.regarding.namespace}/{series.regarding.name}".lstrip("/")
    return {"object": about, "kind": series.regarding.kind, "reason": series.reason}
