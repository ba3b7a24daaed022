"""The line of each value of a document, by its YAML path."""

import re

_LAST_STEP = re.compile(r"(\.?[^.\[\]]+|\[[^\]]*\])$")


class SourceLines:
    """Paths and lines, counted from 1; an item of a list is also found by its `name`."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self._named: dict[str, str] = {}  # `pluginConfig[Fit]` -> `pluginConfig[0]`

    def add(self, path: str, line: int) -> None:
        """Note where a value begins; the first place of a path counts."""
        self._lines.setdefault(path, line)

    def add_name(self, by_name: str, by_index: str) -> None:
        """Note that a path means the same item as another one."""
        self._named.setdefault(by_name, by_index)

    def of(self, path: str, *, nearest: bool = True) -> int:
        """The line of a path, or of the nearest value around it; 0 if neither is in the text."""
        path = self._by_index(path)
        line = self._lines.get(path, 0)
        while nearest and not line and path:
            shorter = _LAST_STEP.sub("", path)
            path = shorter if shorter != path else ""
            line = self._lines.get(path, 0) if path else 0
        return line

    def _by_index(self, path: str) -> str:
        end = path.find("]")
        while end >= 0:
            if path[: end + 1] in self._named:
                head = self._named[path[: end + 1]]
                path, end = head + path[end + 1 :], len(head) - 1
            end = path.find("]", end + 1)
        return path
