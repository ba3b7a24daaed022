"""What a session in HTTP/2 has to say, as bytes: requests, as far as the server takes them. No I/O.

Header blocks are encoded in the order in which they go out, because both sides remember them.
Bodies go as far as the windows allow, of the stream and of the connection; the rest is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mooring.client import _h2_frames as h2
from mooring.client._h2_exchange import H2Exchange
from mooring.client._h2_settings import PeerSettings
from mooring.client._hpack import CONTENT_LENGTH, PATH, Encoder, literal
from mooring.client._request_format import Template

_MOST_HEADS: Final = 100


class Outbox:
    """Frames that wait to be written, and bodies that wait for the server."""

    def __init__(self, greeting: bytes) -> None:
        self.peer: PeerSettings = PeerSettings()
        self.unsent: dict[int, H2Exchange] = {}  # whose body is not all written, by number
        self.next: int = 1  # number of a stream
        self._frames: list[bytes | memoryview] = [greeting]
        self._window = h2.FIRST_WINDOW  # bytes of bodies that the server still takes
        self._encoder = Encoder()
        self._heads: dict[Template, tuple[bytes, bytes]] = {}  # as the encoder has them now

    def __bool__(self) -> bool:
        return bool(self._frames)

    @property
    def is_narrow(self) -> bool:
        """Whether the server takes no body at all just now."""
        return self._window <= 0

    @property
    def is_used_up(self) -> bool:
        """Whether there is no number for another stream."""
        return self.next > h2.LARGEST_NUMBER

    def take(self) -> bytes:
        """All that is to be written now."""
        data = b"".join(self._frames)
        self._frames.clear()
        return data

    def add(self, frame: bytes) -> None:
        self._frames.append(frame)

    def open(self, exchange: H2Exchange) -> None:
        """A stream of its own for the request."""
        number = exchange.number = self.next
        self.next += 2
        body, template, peer = exchange.body, exchange.template, self.peer
        before, after = self._heads.get(template) or self._encoded(template)
        block = before + literal(PATH, exchange.path) + after
        size = len(body)
        if template.with_length:
            block += literal(CONTENT_LENGTH, b"%d" % size)
        frames = self._frames
        frames.append(h2.header_frames(number, block, peer.frame_limit, is_all=not size))
        if not size:
            return
        if size <= self._window and size <= peer.first_window and size <= peer.frame_limit:
            self._window -= size
            frames.append(h2.frame_head(h2.DATA, h2.END_STREAM, number, size))
            frames.append(body)
        else:
            exchange.unsent = memoryview(body)
            exchange.window = peer.first_window
            self.unsent[number] = exchange
            self.go_on(exchange)

    def go_on(self, exchange: H2Exchange) -> None:
        """As much of the rest of the body as the server takes now."""
        rest = exchange.unsent
        while rest is not None:
            size = min(len(rest), exchange.window, self._window, self.peer.frame_limit)
            if size <= 0:
                break
            is_all = size == len(rest)
            flags = h2.END_STREAM if is_all else 0
            self._frames.append(h2.frame_head(h2.DATA, flags, exchange.number, size))
            self._frames.append(rest[:size])
            self._window -= size
            exchange.window -= size
            rest = None if is_all else rest[size:]
        exchange.unsent = rest
        if rest is None:
            self.unsent.pop(exchange.number, None)

    def cut_off(self, exchange: H2Exchange, code: int) -> None:
        """Nothing more of the request, and nothing more of the answer."""
        self.unsent.pop(exchange.number, None)
        self._frames.append(h2.reset(exchange.number, code))

    def forget(self, numbers: Iterable[int]) -> None:
        """Of these streams the server wants no more."""
        for number in numbers:
            self.unsent.pop(number, None)

    def settle(self, payload: bytes) -> None:
        """The server's settings. Raises `Violation`."""
        grown = self.peer.update(payload)
        for exchange in self.unsent.values():
            exchange.window += grown
            h2.check_window(exchange.window)
        if self.peer.table_size is not None:
            self._encoder.shrink(self.peer.table_size)
            self._heads.clear()
        self._frames.append(h2.frame(h2.SETTINGS, h2.ACK, 0))

    def widen(self, number: int, size: int) -> None:
        """A window, of a stream or with 0 of the connection. Raises `Violation`."""
        size &= h2.LARGEST_WINDOW
        if not size:
            raise h2.Violation("it widens a window by nothing")
        if not number:
            self._window += size
            h2.check_window(self._window)
        elif number in self.unsent:
            exchange = self.unsent[number]
            exchange.window += size
            h2.check_window(exchange.window)

    def _encoded(self, template: Template) -> tuple[bytes, bytes]:
        encoder = self._encoder
        version = encoder.version
        found = (encoder.encode(template.before), encoder.encode(template.after))
        if encoder.version != version or len(self._heads) >= _MOST_HEADS:
            self._heads.clear()  # what they refer to has moved
        else:
            self._heads[template] = found
        return found
