"""The QueueSort plugin for the queue: a valid order even if the plugin fails.

The queue compares pods while it moves them, where an exception would lose a pod. So a failure is
logged once, and the pods concerned count as equal or come last.
"""

from __future__ import annotations

import copy
import logging
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mooring.errors import PluginError
from mooring.framework.plugin import Args, QueueSort
from mooring.framework.results import QueuedPod
from mooring.runtime.guard import Guard

log = logging.getLogger(__name__)

_OTHER = "other"  # the kind of a part whose comparison may run code of the plugin
_LAST = 1  # first part of the key of a pod that has no key of its own; others begin with 0


class GuardedSort(QueueSort):
    """Calls a QueueSort plugin and never raises.

    Sort keys are flattened to tuples whose parts compare without running code of the plugin; parts
    of other types are compared through the guard.
    """

    name = "GuardedSort"

    def __init__(self, plugin: QueueSort, guard: Guard) -> None:
        super().__init__(Args(), plugin.handle)
        self._plugin = plugin
        self._guard = guard
        self._shape: tuple[str, ...] | None = None  # of the first key; () if the plugin has none
        self._complained = False

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        plugin = self._plugin
        try:
            answer: object = self._guard.call(plugin, "QueueSort", plugin.less, a, b)
            if not isinstance(answer, bool | np.bool_):
                raise self._guard.wrong_answer(plugin, "QueueSort", answer, "True or False")
        except PluginError as error:
            self.complain(error)
            return False
        return bool(answer)

    def sort_key(self, queued: QueuedPod) -> object | None:
        plugin = self._plugin
        try:
            # A copy, because the original belongs to the queue.
            key = self._guard.call(plugin, "QueueSort", plugin.sort_key, copy.copy(queued))
            parts = () if key is None else key if isinstance(key, tuple) else (key,)
            shape = tuple(map(_kind, parts))
            if self._shape is None:
                self._shape = shape
            if shape != self._shape:
                expected = "a key like those before, for all pods or for none"
                raise self._guard.wrong_answer(plugin, "QueueSort", key, expected)
        except PluginError as error:
            self.complain(error)
            if self._shape == ():
                return None
            self._shape = self._shape or ("broken",)
            return _LAST, queued.timestamp
        if not parts:
            return None
        if _OTHER not in shape:
            return 0, *parts
        kinds = zip(parts, shape, strict=True)
        return 0, *(_Careful(part, self) if kind == _OTHER else part for part, kind in kinds)

    def compare(self, compare: Callable[[Any, Any], object], a: Any, b: Any) -> bool | None:
        """Compare two parts of keys by the plugin's code; None if that fails."""
        try:
            return self._guard.call(self._plugin, "QueueSort", lambda: bool(compare(a, b)))
        except PluginError as error:
            self.complain(error)
            return None

    def complain(self, error: PluginError) -> None:
        if not self._complained:
            self._complained = True
            extra = {"plugin": self._plugin.name, "error": str(error)}
            log.error("QueueSort failed; the order of some pods is arbitrary", extra=extra)


class _Careful:
    """A part of a key whose comparison may run code of the plugin."""

    __slots__ = ("_sort", "_value")

    def __init__(self, value: Any, sort: GuardedSort) -> None:
        self._value = value
        self._sort = sort

    def __lt__(self, other: _Careful) -> bool:
        return self._sort.compare(operator.lt, self._value, other._value) is True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Careful):
            return False
        return self._sort.compare(operator.eq, self._value, other._value) is not False

    __hash__ = None  # type: ignore[assignment]  # compared only


def _kind(part: object) -> str:
    if isinstance(part, str):
        return "text"
    return "number" if isinstance(part, int | float) else _OTHER
