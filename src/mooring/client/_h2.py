"""A connection that speaks HTTP/2: many requests at a time, written together.

    waiting in line ──► (end of the turn) ──► open ──► answered
                         fences, one write

Whatever is asked for in one turn of the loop goes out at its end in one piece: one record of TLS,
one call to the kernel. Fences are asked there, right before it, and header blocks are encoded
there: what a fence holds back leaves no trace.

A session that may not take more (the server says so, certificates changed, nothing is heard) is
not `usable` any more: it gives those in line back, finishes what is open, and closes.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Final

from mooring.client import _h2_frames as h2
from mooring.client._connection import Connection
from mooring.client._failures import Broken
from mooring.client._h2_exchange import H2Exchange
from mooring.client._h2_outbox import Outbox
from mooring.client._hpack import Decoder, Garbled
from mooring.client._http1 import MAX_HEAD, Malformed

STREAM_WINDOW: Final = 4 * 1024 * 1024  # bytes of one answer that may be on their way
CONNECTION_WINDOW: Final = 16 * 1024 * 1024  # bytes of all together

_PING_AFTER: Final = 10.0  # seconds of silence while somebody waits
_PONG_WITHIN: Final = 15.0  # seconds
_DOUBT_AFTER: Final = 1.0  # seconds without a word, after which a request given up is a bad sign
_SHORTLY: Final = 0.001  # seconds; timers may be this early
_GREETING: Final = (
    h2.PREFACE
    + h2.settings(
        {
            h2.ENABLE_PUSH: 0,
            h2.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            h2.MAX_HEADER_LIST_SIZE: MAX_HEAD,
        }
    )
    + h2.window_update(0, CONNECTION_WINDOW - h2.FIRST_WINDOW)
)


class Session:
    """The receiver of its connection, from the handshake to the end."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self.usable: bool = True  # takes requests
        self.is_over: bool = False  # has no connection any more
        self.answers: int = 0  # so far
        self._connection = connection
        self._loop = loop
        self._frames = h2.FrameReader()
        self._decoder = Decoder(MAX_HEAD)
        self._waiting: deque[H2Exchange] = deque()
        self._open: dict[int, H2Exchange] = {}
        self._uncounted = 0  # bytes that the server may not send anew yet
        self._block: _Block | None = None  # headers that are not complete yet
        self._out = Outbox(_GREETING)
        self._corked = False
        self._due = math.inf  # the timer, while there is anybody to wait for
        self._heard = 0  # how often
        self._active = loop.time()  # when something was heard, or first waited for
        self._pinged = False
        connection.rest()
        self._cork()

    # --- for who asks ----------------------------------------------------------------------------

    def ask(self, exchange: H2Exchange) -> asyncio.Future[None]:
        """Send it at the end of this turn, or when there is room. The future may be `Broken`."""
        self._waiting.append(exchange)
        if exchange.deadline < self._due:
            self._due = exchange.deadline
            self._connection.expire_at(self._due)
        self._cork()
        return exchange.future

    def drop(self, exchange: H2Exchange) -> None:
        """Whoever asked has gone."""
        if not self.is_over:
            self._take_out(exchange)
            self._settle()

    def retire(self) -> None:
        """Take no more; who stands in line has to go elsewhere."""
        self.usable = False
        waiting, self._waiting = self._waiting, deque()
        for exchange in waiting:
            _fail(exchange, Broken("the connection takes no more requests", untouched=True))
        self._settle()

    # --- the receiver ----------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        self._heard += 1
        self._active = self._loop.time()
        self._pinged = False
        try:
            for kind, flags, number, payload in self._frames.feed(data):
                self._take(kind, flags, number, payload)
        except h2.Violation as error:
            self._violated(str(error), error.code)
        except Garbled as error:
            self._violated(str(error), h2.COMPRESSION_ERROR)
        if self.is_over:
            return
        if self._out or self._waiting or self._out.unsent:
            self._cork()
        self._settle()

    def ended(self, clean: bool) -> None:
        self._end(None)

    def broken(self, why: Broken) -> None:
        self._end(why)

    def expired(self) -> None:
        if not self._open and not self._waiting:
            self._leave()
            return
        now = self._loop.time()
        for exchange in tuple(self._open.values()):
            if exchange.deadline - now <= _SHORTLY:
                self._take_out(exchange)
                words = f"no answer within {exchange.timeout:g}s"
                _fail(exchange, Broken(words, expired=True))
        for exchange in self._waiting:
            if exchange.deadline - now <= _SHORTLY:
                words = "all connections were in use for too long"
                _fail(exchange, Broken(words, expired=True))
        self._waiting = deque(one for one in self._waiting if not one.future.done())
        self._settle()
        if self._open or self._waiting:
            self._watch(now)

    # --- frames ----------------------------------------------------------------------------------

    def _take(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and kind != h2.CONTINUATION:
            raise h2.Violation("a header block is interrupted")
        if not self._out.peer.is_known and kind != h2.SETTINGS:
            raise h2.Violation("it does not begin with SETTINGS")
        if kind == h2.DATA:
            self._take_data(flags, number, payload)
        elif kind == h2.HEADERS:
            block = h2.unpadded(flags, payload)
            if flags & h2.END_HEADERS:
                self._take_headers(number, block, is_end=bool(flags & h2.END_STREAM))
            else:
                self._block = _Block(number, block, is_end=bool(flags & h2.END_STREAM))
        elif kind == h2.CONTINUATION:
            self._take_continuation(flags, number, payload)
        elif number and kind in h2.OF_CONNECTION:
            raise h2.Violation("a frame of the connection is on a stream")
        elif kind == h2.SETTINGS:
            if not flags & h2.ACK:
                self._out.settle(payload)
        elif kind == h2.PING:
            if len(payload) != 8:
                raise h2.Violation("a PING is not of 8 bytes", h2.FRAME_SIZE_ERROR)
            if not flags & h2.ACK:
                self._out.add(h2.frame(h2.PING, h2.ACK, 0, payload))
        elif kind == h2.WINDOW_UPDATE:
            if number and number not in self._open:
                self._check_past(number)
            self._out.widen(number, h2.number_in(payload))
        elif kind == h2.RST_STREAM:
            self._take_reset(number, h2.number_in(payload))
        elif kind == h2.GOAWAY:
            self._take_goaway(payload)
        elif kind == h2.PUSH_PROMISE:
            raise h2.Violation("it pushes what nobody asked for")

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        self._uncounted += len(payload)
        if self._uncounted >= CONNECTION_WINDOW // 2:
            self._out.add(h2.window_update(0, self._uncounted))
            self._uncounted = 0
        exchange = self._open.get(number)
        if exchange is None:
            self._check_past(number)
            return
        part = h2.unpadded(h2.PADDED, payload) if flags & h2.PADDED else payload
        try:
            if part:
                exchange.data(part)
            if flags & h2.END_STREAM:
                exchange.end()
        except Malformed as error:
            self._refuse(exchange, error)
            return
        if flags & h2.END_STREAM:
            self._answered(exchange)
            return
        exchange.uncounted += len(payload)
        if exchange.uncounted >= STREAM_WINDOW // 2:
            self._out.add(h2.window_update(number, exchange.uncounted))
            exchange.uncounted = 0

    def _take_headers(self, number: int, block: bytes, *, is_end: bool) -> None:
        fields = self._decoder.decode(block)  # whoever it is for: the table has to follow
        exchange = self._open.get(number)
        if exchange is None:
            self._check_past(number)
            return
        try:
            exchange.head(fields, is_end=is_end)
            if is_end:
                exchange.end()
        except Malformed as error:
            self._refuse(exchange, error)
            return
        if is_end:
            self._answered(exchange)

    def _take_continuation(self, flags: int, number: int, payload: bytes) -> None:
        block = self._block
        if block is None or block.number != number:
            raise h2.Violation("headers are continued that did not begin")
        block.add(payload)
        if flags & h2.END_HEADERS:
            self._block = None
            self._take_headers(number, block.whole(), is_end=block.is_end)

    def _take_reset(self, number: int, code: int) -> None:
        exchange = self._open.pop(number, None)
        if exchange is None:
            self._check_past(number)
            return
        self._out.forget([number])
        words = f"the server gave the request up: {h2.error_words(code)}"
        is_refused = code == h2.REFUSED_STREAM and not exchange.status
        _fail(exchange, Broken(words, untouched=is_refused))

    def _take_goaway(self, payload: bytes) -> None:
        if len(payload) < 8:
            raise h2.Violation("a GOAWAY is cut off", h2.FRAME_SIZE_ERROR)
        last = int.from_bytes(payload[:4], "big") & h2.LARGEST_NUMBER
        code = int.from_bytes(payload[4:8], "big")
        words = f"the server turned the request away: {h2.error_words(code)}"
        late = [number for number in self._open if number > last]
        self._out.forget(late)
        for number in late:
            _fail(self._open.pop(number), Broken(words, untouched=True))
        self.retire()

    def _check_past(self, number: int) -> None:
        """Late frames of a stream that is over are no fault."""
        if number >= self._out.next or not number % 2:
            raise h2.Violation("it speaks on a stream that nobody opened")

    # --- the end of a turn -----------------------------------------------------------------------

    def _cork(self) -> None:
        if not self._corked:
            self._corked = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._corked = False
        if self.is_over or not self._connection.is_open:
            return  # or will be in a moment
        if self._connection.is_unread(self._active):
            # We stood still. The connection may be gone, so hear first what the server has said.
            self._cork()
            return
        now = self._loop.time()
        if not self._open:
            self._active = now
            if self._waiting:
                self._expire_at(now + _PING_AFTER)
        passed: set[int] = set()
        out = self._out
        for exchange in tuple(out.unsent.values()):
            if exchange.window > 0 and not out.is_narrow and self._passes(exchange, passed):
                out.go_on(exchange)
        while self._waiting and len(self._open) < out.peer.most_streams and not out.is_narrow:
            exchange = self._waiting[0]
            if exchange.future.done():
                self._waiting.popleft()
            elif exchange.deadline <= now:
                self._waiting.popleft()
                _fail(exchange, Broken("no time was left", expired=True))
            elif self._passes(exchange, passed):
                self._waiting.popleft()
                self._open_stream(exchange, now)
        self._write_out()
        self._settle()

    def _passes(self, exchange: H2Exchange, passed: set[int]) -> bool:
        """Whether its fence lets it through; each fence is asked once in a turn."""
        fence = exchange.fence
        if fence is None or id(fence) in passed:
            return True
        try:
            fence()
        except Exception as error:
            self._take_out(exchange)
            _fail(exchange, error)
            return False
        passed.add(id(fence))
        return not exchange.future.done()  # a fence may do anything, also close the client

    def _open_stream(self, exchange: H2Exchange, now: float) -> None:
        exchange.written = now
        exchange.heard = self._heard
        exchange.rested = self.answers > 0
        self._out.open(exchange)
        self._open[exchange.number] = exchange
        if self._out.is_used_up:
            self.retire()

    def _write_out(self) -> None:
        if self._out and self._connection.is_open:
            self._connection.write(self._out.take())

    # --- ends ------------------------------------------------------------------------------------

    def _answered(self, exchange: H2Exchange) -> None:
        del self._open[exchange.number]
        if exchange.unsent is not None:  # it needs no more of the request
            self._out.cut_off(exchange, h2.NO_ERROR)
        self.answers += 1
        if not exchange.future.done():
            exchange.future.set_result(None)

    def _refuse(self, exchange: H2Exchange, error: Malformed) -> None:
        self._take_out(exchange)
        _fail(exchange, Broken(str(error)))

    def _take_out(self, exchange: H2Exchange) -> None:
        """Wait for it no longer; if it was written, the server is told."""
        number = exchange.number
        if not number:
            if exchange in self._waiting:
                self._waiting.remove(exchange)
            return
        if self._open.pop(number, None) is None:
            return
        self._out.cut_off(exchange, h2.CANCEL)
        self._cork()
        is_long = self._loop.time() - exchange.written >= _DOUBT_AFTER
        if is_long and exchange.heard == self._heard:
            self.usable = False  # the next one shall not lose its time as well

    def _settle(self) -> None:
        """After something has ended: what it means for the session."""
        if self.is_over:
            return
        if not self.usable and self._waiting:
            self.retire()
        elif not self._open and not self._waiting:
            if not self.usable:
                self._leave()
            elif self._due != math.inf:
                self._due = math.inf
                self._connection.rest()

    def _watch(self, now: float) -> None:
        """Somebody waits: look at the connection, and set the timer for the next time."""
        silent = now - self._active + _SHORTLY
        if self._pinged and silent >= _PING_AFTER + _PONG_WITHIN:
            self._connection.fail(Broken(f"nothing was heard for {silent:.0f}s", expired=True))
            return
        if not self._pinged and silent >= _PING_AFTER:
            self._pinged = True
            self._active = now - _PING_AFTER  # time in which we stood still does not count
            self._out.add(h2.frame(h2.PING, 0, 0, bytes(8)))
            self._cork()
        patience = _PING_AFTER + (_PONG_WITHIN if self._pinged else 0.0)
        self._due = math.inf
        self._expire_at(self._active + patience)
        for exchange in (*self._open.values(), *self._waiting):
            self._expire_at(exchange.deadline)

    def _expire_at(self, due: float) -> None:
        if due < self._due:
            self._due = due
            self._connection.expire_at(due)

    def _leave(self) -> None:
        """Nothing is owed to anybody."""
        self.usable = False
        self.is_over = True
        self._out.add(h2.goaway(h2.NO_ERROR))
        self._write_out()
        self._connection.close()

    def _violated(self, words: str, code: int) -> None:
        self._out.add(h2.goaway(code))
        self._write_out()
        self._connection.fail(Broken(f"the server breaks the rules of HTTP/2: {words}"))

    def _end(self, why: Broken | None) -> None:
        """The connection is gone; without a reason, the server has closed it."""
        self.usable = False
        self.is_over = True
        self._out.unsent.clear()
        closed = "the server closed the connection "
        for exchange in self._open.values():
            place = "in the middle of its answer" if exchange.status else "without an answer"
            _fail(exchange, why.again() if why is not None else Broken(closed + place))
        for exchange in self._waiting:
            known = why if why is not None else Broken(closed + "before anything was sent")
            _fail(exchange, known.again(untouched=True))
        self._open.clear()
        self._waiting.clear()


class _Block:
    """Headers that come in several frames."""

    def __init__(self, number: int, first: bytes, *, is_end: bool) -> None:
        self.number: int = number
        self.is_end: bool = is_end  # of the answer
        self._parts = [first]
        self._size = len(first)

    def add(self, part: bytes) -> None:
        """Raises `Violation` when they do not come to an end."""
        self._parts.append(part)
        self._size += len(part) + 1  # empty ones count too
        if self._size > MAX_HEAD:
            words = f"the headers of the answer are longer than {MAX_HEAD} bytes"
            raise h2.Violation(words)

    def whole(self) -> bytes:
        return b"".join(self._parts)


def _fail(exchange: H2Exchange, error: Exception) -> None:
    if not exchange.future.done():
        exchange.future.set_exception(error)
