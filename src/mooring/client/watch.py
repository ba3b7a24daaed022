"""The reflector: lists and then watches the objects of one kind, across failures.

    list ──> watch ──> the stream ends or is cut ──> watch, from the last version seen
      ^        ├─────> the version is too old (410), or refused again and again
      │        ├─────> the server was away: its data may come from a backup
      │        └─────> a bookmark is older than the last version: its data comes from a backup
      └──────────────────┘

A bookmark moves the version without a change, so that a quiet kind can be resumed after a long
time. A server whose etcd was restored accepts a watch from a version that it does not have yet, and
sends nothing. An informer is the usual sink.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from typing import Final, Generic, NoReturn, Protocol

from mooring.api import core
from mooring.api.meta import Object
from mooring.client._decoding import O, OnRead, Reader, UnreadableProtobuf, is_older
from mooring.client._events import BOOKMARK, Events, events_of
from mooring.client.client import ApiClient
from mooring.client.errors import Gone, StatusError, TooManyRequests, Unreachable
from mooring.client.flowcontrol import Backoff
from mooring.client.listing import YIELD_EVERY, FirstList, Listed, Lister, Query
from mooring.client.transport import Stream
from mooring.errors import ApiError
from mooring.observe.texts import cut

log = logging.getLogger(__name__)

_WATCH_SECONDS: Final = (300, 600)  # how long to ask for; random, so that not all end at once
# Seconds that events may be late that follow others soon. No pod waits for the heartbeats of nodes.
_REST: Final = 0.02
_REST_OF_NODES: Final = 0.05
_GRACE: Final = 30.0  # seconds after which a watch that should have ended counts as dead
_HEALTHY_AFTER: Final = 1.0  # seconds after which a watch counts as healthy
_MOST_FAILURES: Final = 3  # in a row, until a problem is reported and objects are listed again
_FORGOTTEN_AFTER: Final = 120.0  # seconds without failures after which pauses are short again
_LONGEST_UNREACHABLE: Final = 7.5  # seconds; to ask a server that is gone costs it nothing
_LONGEST_PAUSE: Final = 30.0  # seconds; however long a Retry-After is, or a list took
_MOST_UNKNOWN_TYPES: Final = 8  # that are logged


class Sink(Protocol[O]):
    """Gets objects in the order of events.

    An *unread* object exists but could not be decoded: it comes with its metadata only, and what is
    known of it is kept, unless the uid is another one.
    """

    def replace(self, objects: list[O], unread: list[O]) -> None:
        """A complete list."""
        ...

    def put(self, value: O) -> None:
        """An object is new or has changed."""
        ...

    def put_unread(self, value: O) -> None:
        """An object is new or has changed, and could not be decoded."""
        ...

    def remove(self, value: O) -> None:
        """An object was deleted, perhaps one that never was put."""
        ...


class Reflector(Generic[O]):
    """Gives a sink all objects of one kind, and every change to them.

    Pages of a list have `page_size` objects; without it, as many as make up some megabytes.
    `problem` says why it fails at the moment, `last_contact` when, on the loop's clock, something
    last arrived. What the sink raises ends `run`.
    """

    def __init__(
        self,
        client: ApiClient,
        kind: type[O],
        sink: Sink[O],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        page_size: int | None = None,
        on_read: OnRead[O] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.problem: str = ""
        self.last_contact: float | None = None
        self.lists: int = 0  # complete ones

        self._client = client
        self._query = Query(kind, namespace, labels, fields)
        self._sink = sink
        self._rng = rng or random.Random()
        self._backoff: Backoff[type[Object]] = Backoff(
            1.2, 30.0, jitter=1 / 3, forget_after=_FORGOTTEN_AFTER, rng=self._rng
        )
        self._reader = Reader(kind, on_read)
        self.resource: str = self._reader.resource  # as RBAC messages spell it
        self._lister = Lister(
            client, self._query, self._reader, page_size=page_size, on_page=self._notice_contact
        )
        self._first: FirstList[O] | None = None  # that was begun elsewhere

        self._version = ""  # the newest one seen
        self._list_took = 0.0  # seconds
        self._is_open = False  # the present watch, or was the last one
        self._is_healthy = False  # the same watch
        self._is_expired = False  # the last watch that was not healthy
        self._failures = 0  # watches in a row that were neither healthy nor brought events
        self._cause: tuple[str, type[Exception]] | None = None  # verb and error of `problem`
        self._is_told = False  # the problem is in the log under the name of this resource
        self._unknown_types: set[str] = set()
        self._watch_timeout: asyncio.Timeout | None = None  # of the watch that is open, or opened
        self._refreshing: list[asyncio.Future[None]] = []  # callers of `refresh`
        self._is_wanted = asyncio.Event()  # a new list, and no waits before it
        self._was_unreachable = False  # in the last trouble
        self._restart_reason = ""  # why it was ended by us

    @property
    def undecodable(self) -> int:
        """The number of existing objects that could not be decoded."""
        return len(self._reader.unread)

    def begin_with(self, first: FirstList[O]) -> None:
        """Take a list that was begun before `run`, if it means the same objects."""
        if first.query == self._query and not self._reader.keeps_json:
            self._first = first

    async def run(self) -> NoReturn:
        while True:
            await self._list()
            await self._watch_until_stale()

    def restart_watch(self, why: str) -> None:
        """End the open watch, if any, and begin another from its version."""
        if self._end_watch(why):
            self._report_problem("watch", Unreachable(why, sent=True))

    async def refresh(self) -> None:
        """Wait until the sink got a list that was requested after this call."""
        done = asyncio.get_running_loop().create_future()
        self._refreshing.append(done)
        self._is_wanted.set()
        self._end_watch("a new list is wanted")
        await done

    def _end_watch(self, why: str) -> bool:
        if self._watch_timeout is None or self._watch_timeout.expired():
            return False
        self._restart_reason = why
        self._watch_timeout.reschedule(_now())
        return True

    # --- listing -------------------------------------------------------------------------------

    async def _list(self) -> None:
        """Give the sink a complete list, after as many tries as it takes."""
        while True:
            began = _now()
            refreshing, self._refreshing = self._refreshing, []
            self._is_wanted.clear()
            try:
                listed = await self._listed(is_refresh=bool(refreshing))
            except ApiError as error:
                self._refreshing += refreshing
                self._report_problem("list", error)
                await self._wait(self._pause(error))
                continue
            self._version = listed.version
            self._list_took = _now() - began
            self.lists += 1
            self._reader.forget_all_but(value.key for value in listed.unread)
            self._sink.replace(listed.objects, listed.unread)
            self._clear_problem("list")
            for waiting in refreshing:
                if not waiting.done():
                    waiting.set_result(None)
            return

    async def _listed(self, *, is_refresh: bool) -> Listed[O]:
        first, self._first = self._first, None
        if first is not None and not is_refresh and (listed := await first.result()) is not None:
            self._notice_contact()
            return listed
        return await self._lister.list()

    def _notice_contact(self) -> None:
        self.last_contact = _now()

    # --- watching ------------------------------------------------------------------------------

    async def _watch_until_stale(self) -> None:
        while not self._refreshing:
            before, self._is_open, self._is_healthy = self._version, False, False
            trouble = await self._watch()
            if self._refreshing:
                return
            if self._is_healthy and isinstance(trouble, Unreachable):
                continue
            has_told = self._version != before
            was_expired, self._is_expired = self._is_expired, _is_expired(trouble)
            # Progress, or a server that is back and has compacted our version.
            if has_told or (self._is_expired and not was_expired):
                self._failures = 0
                self._backoff.forget(self._query.kind)
            if has_told:
                self._clear_problem("watch")
            self._failures += 1
            is_usual = isinstance(trouble, TooManyRequests | _EndedEarly) or self._is_expired
            if self._failures >= _MOST_FAILURES or not (is_usual or has_told):
                self._report_problem("watch", trouble)
            pause = self._pause(trouble)
            if self._is_expired:
                log.info("watch has expired, listing again", extra={"resource": self.resource})
                # A server may drop slow watches; lists must not take all of our time.
                await self._wait(max(pause, min(self._list_took, _LONGEST_PAUSE)))
                return
            await self._wait(pause)
            if isinstance(trouble, TooManyRequests):
                continue
            if isinstance(trouble, Unreachable):
                if not self._is_open:
                    # The server is away and may come back with a backup, whose versions count on
                    # from an older one: a watch would miss what happens below ours.
                    return
            elif self._failures % _MOST_FAILURES == 0:
                return

    async def _watch(self) -> Exception:
        """One watch; how it ended."""
        seconds = self._rng.randint(*_WATCH_SECONDS)
        self._restart_reason = ""
        try:
            async with asyncio.timeout(seconds + _GRACE) as self._watch_timeout:
                await self._hold_watch(seconds)
        except TimeoutError:
            why = self._restart_reason or f"silent for longer than the {seconds} s asked for"
            return Unreachable(why, sent=True)
        except UnreadableProtobuf as error:
            self._reader.ask_for_json(error)
            return await self._watch()
        except ApiError as error:
            return error
        finally:
            self._watch_timeout = None
        return _EndedEarly("the stream ended as soon as it had begun", sent=True)

    async def _hold_watch(self, seconds: int) -> None:
        query = self._query
        async with self._client.watch(
            query.kind,
            query.namespace,
            version=self._version,
            seconds=seconds,
            labels=query.labels,
            fields=query.fields,
            rest=_REST_OF_NODES if query.kind is core.Node else _REST,
            in_protobuf=self._reader.in_protobuf,
        ) as stream:
            loop = asyncio.get_running_loop()
            self.last_contact, self._is_open = loop.time(), True
            timer = loop.call_later(_HEALTHY_AFTER, self._mark_healthy)
            try:
                await self._read(stream)
            finally:
                timer.cancel()

    def _mark_healthy(self) -> None:
        self._is_healthy = True
        self._failures = 0
        self._clear_problem("watch")

    async def _read(self, stream: Stream) -> None:
        events = events_of(stream.headers, self._reader)
        count = 0
        async for chunk in stream.chunks():
            self.last_contact = _now()
            for data in events.feed(chunk):
                if data:
                    self._take(events, data)
                    count += 1
                    if count % YIELD_EVERY == 0:
                        await asyncio.sleep(0)

    def _take(self, events: Events[O], data: bytes) -> None:
        type_, encoded = events.read(data)
        if type_ == BOOKMARK:
            version = events.version(encoded)
            if is_older(version, self._version):
                text = f"the server went back from version {self._version} to {version}"
                raise Gone(text, code=410, reason="Expired")
            self._advance(version)
            return
        if type_ not in ("ADDED", "MODIFIED", "DELETED"):
            self._ignore(type_)
            return
        value, is_whole = events.decode(encoded)
        if value is None:
            return
        is_news = self._advance(value.metadata.resource_version)
        if type_ == "DELETED":
            # Not every server gives a deletion a version of its own: the sink decides.
            self._reader.forget(value.key)
            self._sink.remove(value)
        elif is_news:
            if is_whole:
                self._sink.put(value)
            else:
                self._sink.put_unread(value)

    def _ignore(self, event_type: str) -> None:
        unknown = self._unknown_types
        if event_type not in unknown and len(unknown) < _MOST_UNKNOWN_TYPES:
            unknown.add(event_type)
            extra = {"resource": self.resource, "type": cut(event_type)}
            log.warning("events of an unknown type are ignored", extra=extra)

    def _advance(self, version: str) -> bool:
        """Move on to a version; False if it is not newer.

        A server may repeat events after a watch is resumed; an object that was created and deleted
        meanwhile must not reappear for a moment.
        """
        if version == self._version or is_older(version, self._version):
            return False
        self._version = version or self._version
        return True

    # --- failures ------------------------------------------------------------------------------

    def _report_problem(self, verb: str, error: Exception) -> None:
        self.problem = f"cannot {verb} {self.resource}: {error}"
        cause = (verb, type(error))
        if self._cause != cause:  # logged once, even if the texts differ a little
            self._cause = cause
            extra = {"resource": self.resource, "verb": verb, "error": str(error)}
            self._is_told = not (isinstance(error, Unreachable) and error.is_logged)
            level = logging.WARNING if self._is_told else logging.DEBUG
            log.log(level, "objects may be out of date", extra=extra)

    def _clear_problem(self, verb: str) -> None:
        if self._cause is not None and self._cause[0] == verb:
            self.problem = ""
            self._cause = None
            if self._is_told:
                extra = {"v": 0, "resource": self.resource, "verb": verb}
                log.info("objects are current again", extra=extra)

    def _pause(self, trouble: Exception) -> float:
        if isinstance(trouble, TooManyRequests) and trouble.retry_after:
            # Not earlier than the server asks, and not all clients at once.
            return min(trouble.retry_after, _LONGEST_PAUSE) * self._rng.uniform(1.0, 1.1)
        was_unreachable = self._was_unreachable
        self._was_unreachable = isinstance(trouble, Unreachable)
        if was_unreachable and not self._was_unreachable:
            self._backoff.forget(self._query.kind)  # the server is back
        longest = _LONGEST_UNREACHABLE if self._was_unreachable else _LONGEST_PAUSE
        return self._backoff.next(self._query.kind, _now(), longest=longest)

    async def _wait(self, seconds: float) -> None:
        """Wait before the next try, or until `refresh` is called."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_wanted.wait()


class _EndedEarly(Unreachable):
    """A stream ended; normal, unless it keeps happening at once."""


def _is_expired(error: Exception) -> bool:
    return isinstance(error, StatusError) and (
        error.code == 410 or error.reason in ("Expired", "Gone")
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
