"""Detects changes of token and certificate files that are rotated from outside.

A kubelet rotates by swapping a symbolic link, others rename a new file into place or write into
the old one: inode, size and modification time of the target show all three.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

Clock = Callable[[], float]
"""Seconds of a clock that never goes back."""

_PERIOD: Final = 1.0  # seconds between two looks
_RECENT: Final = 30.0  # seconds; a request that fails now was hardly sent before that

_Stamp = tuple[int, int, int, int]  # device, inode, bytes, nanoseconds


class FileWatch:
    """Looks at a few files, at most once a second.

        fresh ──changed()──▶ True ──reader reads──▶ kept(new) ──▶ fresh
                                  └────────────────▶ failed() ──▶ changed() is True at every look

    The stamps are taken before the reader reads: what is written meanwhile is seen next time.
    """

    def __init__(self, paths: Sequence[str], clock: Clock) -> None:
        self._paths = tuple(path for path in paths if path)
        self._clock = clock
        self._looked_at: float | None = None
        self._stamps: tuple[_Stamp | None, ...] = ()
        self._changed_at: float | None = None
        self._failing = False

    def changed(self, *, now: bool = False) -> bool:
        """Whether to read again; with `now`, without waiting for the second to pass."""
        time = self._clock()
        if not now and self._looked_at is not None and time - self._looked_at < _PERIOD:
            return False
        self._looked_at = time
        stamps = tuple(map(_stamp, self._paths))
        different = stamps != self._stamps
        self._stamps = stamps
        return different or self._failing

    def kept(self, *, is_new: bool) -> None:
        """Reading went well; `is_new` when the content is not what it was."""
        self._failing = False
        if is_new:
            self._changed_at = self._clock()

    def failed(self) -> bool:
        """Reading went wrong; True the first time in a row, to be logged."""
        first, self._failing = not self._failing, True
        return first

    @property
    def changed_lately(self) -> bool:
        """Whether a request that fails now may have been sent with the content before."""
        return self._changed_at is not None and self._clock() - self._changed_at < _RECENT


def _stamp(path: str) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
