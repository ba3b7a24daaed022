"""Calls the user's function and validates what it returns.

Every failure is a `PluginError`: the guard of plugins runs the function, logs a traceback once per
place and ends calls that take too long.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import PluginError
from mooring.framework.plugin import Base
from mooring.observe.metrics import Metrics
from mooring.observe.texts import cut
from mooring.runtime.guard import DEFAULT_BUDGET, Guard

POINT: Final = "choose"
_EXPECTED: Final = "the name of a node, or None"


class NotNow(msgspec.Struct, frozen=True):
    """No node at the moment, and why; tried again after `after` seconds, or with backoff."""

    reason: str = ""
    after: float | None = None


Choice = str | Node | NotNow | None
Choose = Callable[[Pod, Nodes], Choice | Awaitable[Choice]]
"""What a user writes: a plain or an async function that picks a node for a pod."""


class _FunctionPlugin(Base):
    """Stands for the function in the guard's errors."""

    name = "controller"

    def __init__(self) -> None:
        """Without arguments and handle."""


class NodeChooser:
    """Calls one function; `guard` is for a `Watchdog`."""

    def __init__(self, choose: Choose, *, budget: float = DEFAULT_BUDGET) -> None:
        # The guard counts into metrics of a scheduler, which are not served here.
        self.guard: Guard = Guard(Metrics(), budget=budget)
        self._choose = choose
        self._plugin = _FunctionPlugin()

    async def ask(self, pod: Pod, nodes: Nodes) -> str | NotNow:
        """The name of an existing node, or NotNow. Raises PluginError."""
        answer = await self.guard.acall(self._plugin, POINT, self._call, pod, nodes)
        if answer is None:
            return NotNow()
        if isinstance(answer, NotNow):
            if not isinstance(answer.reason, str):
                raise self.guard.wrong_answer(self._plugin, POINT, answer, _EXPECTED)
            return NotNow(cut(answer.reason), answer.after)
        name = answer.name if isinstance(answer, Node) else answer
        if not isinstance(name, str) or not (name := cut(name)):
            raise self.guard.wrong_answer(self._plugin, POINT, answer, _EXPECTED)
        if nodes.get(name) is None:
            text = f'chose node "{name}", which does not exist'
            raise PluginError(text, plugin=self._plugin.name, point=POINT)
        return name

    async def _call(self, pod: Pod, nodes: Nodes) -> Any:
        answer = self._choose(pod, nodes)
        return await answer if inspect.isawaitable(answer) else answer
