"""What the loop of the scheduler leaves to a thread: to write a file, to send a request.

The loop only appends to a queue. The thread takes all of it once a second, and a last time when it
is closed. A fault ends the writing, with one warning, and never the scheduling.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import ClassVar, Final, Generic, TypeVar

log = logging.getLogger(__name__)

PERIOD: Final = 1.0  # seconds between two writes

T = TypeVar("T")


class BackgroundWriter(ABC, Generic[T]):
    """Writes from `start` until `close`; at most `most` items wait, others are lost."""

    FAULT: ClassVar[str]  # what to warn of
    FAULTS: ClassVar[tuple[type[Exception], ...]] = (OSError,)  # that end it

    def __init__(self, to: str, *, most: int, patience: float = 10.0) -> None:
        """Where it writes `to`, for the warning; the last write may take so many seconds."""
        self.lost: int = 0  # items that were not written
        self._to = to
        self._waiting: deque[T] = deque()
        self._most = most
        self._patience = patience
        self._ends = threading.Event()
        self._is_broken = False
        self._thread = threading.Thread(target=self._work, name=type(self).__name__, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Write what is left."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(timeout=self._patience)

    # --- on the loop of the scheduler ----------------------------------------------------------

    def _put(self, item: T) -> None:
        if self._is_broken or len(self._waiting) >= self._most:
            self._lose([item])
        else:
            self._waiting.append(item)

    # --- in the thread -------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            try:
                self._open()
                while not self._ends.wait(PERIOD):
                    self._write_waiting()
                self._write_waiting()
            finally:
                self._shut()
        except self.FAULTS as error:
            self._break(str(error))

    def _write_waiting(self) -> None:
        items = self._taken()
        if items:
            try:
                self._write(items)
            except self.FAULTS:
                self._lose(items)
                raise

    def _taken(self) -> list[T]:
        """All that waits now; the loop may go on to append."""
        return [self._waiting.popleft() for _ in range(len(self._waiting))]

    def _break(self, error: str) -> None:
        """Write no more; on the loop, too."""
        self._is_broken = True
        self._lose(self._taken())
        self._warn(error)

    def _warn(self, error: str) -> None:
        log.warning(self.FAULT, extra={"to": self._to, "error": error})

    def _lose(self, items: Sequence[T]) -> None:
        self.lost += self._count(items)

    def _count(self, items: Sequence[T]) -> int:
        """How many are lost with them."""
        return len(items)

    def _open(self) -> None:
        """Before the first write."""

    @abstractmethod
    def _write(self, items: Sequence[T]) -> None:
        """What has come since the last time."""

    def _shut(self) -> None:
        """After the last write."""
