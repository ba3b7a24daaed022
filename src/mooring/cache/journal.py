"""The list of changed rows, by which kept results are brought up to date.

A reader remembers a position and later asks what changed since. Rows that came, went or moved are
structural, and so are new codes of labels or taints: then `since` answers None and the reader
starts over.
"""

from __future__ import annotations


class Journal:
    """Append-only, trimmed at the front when it grows long."""

    __slots__ = ("_base", "_limit", "_rows")

    def __init__(self, limit: int = 65_536) -> None:
        self._rows: list[int] = []
        self._base = 0  # position of _rows[0]
        self._limit = limit

    @property
    def position(self) -> int:
        return self._base + len(self._rows)

    def changed(self, row: int) -> None:
        self._rows.append(row)
        if len(self._rows) > self._limit:
            cut = len(self._rows) // 2
            del self._rows[:cut]
            self._base += cut

    def restructured(self) -> None:
        """Rows were added, removed or moved, or codes changed: every earlier position is void."""
        self._base = self.position + 1
        self._rows.clear()

    def since(self, position: int) -> list[int] | None:
        """The rows changed since a position, or None if that is too long ago to tell."""
        if position < self._base:
            return None
        return self._rows[position - self._base :]
