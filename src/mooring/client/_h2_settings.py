"""What the other side of a connection in HTTP/2 wants. No I/O."""

from __future__ import annotations

from typing import Final

from mooring.client import _h2_frames as h2

MOST_STREAMS: Final = 128  # requests at a time; more do not make a server faster

_MOST_STREAMS_AT_FIRST: Final = 100  # servers are asked to allow as many


class PeerSettings:
    """The server's, as far as they matter to a client."""

    def __init__(self) -> None:
        self.is_known: bool = False  # it has said anything yet
        self.most_streams: int = _MOST_STREAMS_AT_FIRST
        self.first_window: int = h2.FIRST_WINDOW  # bytes, of each stream
        self.frame_limit: int = h2.SMALLEST_FRAME_LIMIT  # bytes
        self.table_size: int | None = None  # bytes; None: as large as any

    def update(self, payload: bytes) -> int:
        """By how much windows of streams grow with these settings. Raises `Violation`."""
        if not self.is_known:
            self.is_known = True
            self.most_streams = MOST_STREAMS  # unless it says otherwise
        before = self.first_window
        for name, value in h2.read_settings(payload):
            if name == h2.MAX_CONCURRENT_STREAMS:
                self.most_streams = min(value, MOST_STREAMS)
            elif name == h2.INITIAL_WINDOW_SIZE:
                h2.check_window(value)
                self.first_window = value
            elif name == h2.MAX_FRAME_SIZE:
                if not h2.SMALLEST_FRAME_LIMIT <= value <= h2.LARGEST_FRAME_LIMIT:
                    raise h2.Violation(f"it wants frames of {value} bytes")
                self.frame_limit = value
            elif name == h2.HEADER_TABLE_SIZE:
                self.table_size = value
            elif name == h2.ENABLE_PUSH and value:
                raise h2.Violation("a server cannot take pushes")
        return self.first_window - before
