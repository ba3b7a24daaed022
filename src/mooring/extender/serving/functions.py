"""Plain functions, made into plugins; `verbs.Extender` collects them."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Final, Self

import numpy as np

from mooring.cache.arrays import IntArray
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.extender.wire import MAX_SCORE as EXTENDER_MAX
from mooring.extender.wire import AnyVerb
from mooring.framework.plugin import Base, Bind, Filter, Score
from mooring.framework.scores import MAX_SCORE
from mooring.framework.state import CycleState, StateKey
from mooring.framework.status import OK, SKIP, Status
from mooring.framework.verdicts import Verdicts
from mooring.observe.signals import is_ctrl_c
from mooring.observe.texts import named

FilterAnswer = str | bool | Status | None
"""Accepted: True, None or "". Refused: False, or the reason. Or a `Status`."""

ScoreAnswer = int | float
"""A score from 0 to 10."""

PreemptAnswer = FilterAnswer | Iterable[Pod]
"""Whether the victims of this node may be evicted, or which of them."""

FilterFunction = Callable[[Pod, Node], FilterAnswer | Awaitable[FilterAnswer]]
PrioritizeFunction = Callable[[Pod, Node], ScoreAnswer | Awaitable[ScoreAnswer]]
BindFunction = Callable[[Pod, str], FilterAnswer | Awaitable[FilterAnswer]]
PreemptFunction = Callable[[Pod, str, tuple[Pod, ...]], PreemptAnswer | Awaitable[PreemptAnswer]]

_NUMBERS: Final = (int, float, np.number)
_AT_ONCE: Final = 64  # nodes for which an async function runs concurrently


class FunctionPlugin(Base):
    """A plugin made of a function; an `async` one is awaited for all nodes before plugins run."""

    verb: ClassVar[AnyVerb]
    function: ClassVar[Callable[..., Any]]
    is_async: ClassVar[bool]
    results: ClassVar[StateKey[dict[str, Any]]]  # of an async function, by node

    @classmethod
    def of(cls, verb: AnyVerb, function: Callable[..., Any]) -> type[Self]:
        """The class of a plugin that is named after the function."""
        members = {
            "name": function.__name__,
            "verb": verb,
            "function": staticmethod(function),
            "is_async": inspect.iscoroutinefunction(function),
            "results": StateKey(function.__name__),
        }
        return type(cls.__name__, (cls,), members)

    async def ask(self, state: CycleState, pod: Pod, nodes: Nodes) -> None:
        state[self.results] = await _of_each(self.function, pod, nodes)

    def answering(self, state: CycleState, pod: Pod) -> Callable[[Node], Any]:
        """The function that gives the result for a node."""
        if not self.is_async:
            return partial(self.function, pod)
        results = state[self.results]
        return lambda node: results[node.name]


class FunctionFilter(FunctionPlugin, Filter):
    """`(pod, node)`; see `FilterAnswer`."""

    def filter(self, state: CycleState, pod: Pod, node: Node) -> Status:
        return as_status(self.answering(state, pod)(node), self.name)

    def filter_all(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts:
        verdicts, ask = Verdicts.passing(nodes), self.answering(state, pod)
        for row, node in enumerate(nodes):
            answer = ask(node)
            if answer is not True:
                verdicts.set(row, as_status(answer, self.name))
        return verdicts


class FunctionScore(FunctionPlugin, Score):
    """`(pod, node)`; see `ScoreAnswer`."""

    def score(self, state: CycleState, pod: Pod, node: Node) -> int:
        return as_score(self.answering(state, pod)(node))

    def score_all(self, state: CycleState, pod: Pod, nodes: Nodes) -> IntArray:
        points = map(as_score, map(self.answering(state, pod), nodes))
        return np.fromiter(points, np.int64, len(nodes))


class FunctionBind(FunctionPlugin, Bind):
    """`(pod, node_name)`; see `FilterAnswer`."""

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        answer = self.function(pod, node_name)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, Status):
            return answer
        status = as_status(answer, self.name)
        return SKIP if status.ok else status  # the next plugin is DefaultBinder, which binds


async def _of_each(function: Callable[..., Awaitable[Any]], pod: Pod, nodes: Nodes) -> Any:
    """The results of a function by node name."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(node: Node) -> Any:
        async with slots:
            try:
                return await function(pod, node)
            except (SystemExit, KeyboardInterrupt) as error:
                if is_ctrl_c(error):
                    raise
                # Raised in a task, these would end the event loop.
                raise RuntimeError(named(error)) from None

    tasks = [asyncio.ensure_future(ask(node)) for node in nodes]
    try:
        return dict(zip(nodes.names, await asyncio.gather(*tasks), strict=True))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def as_status(answer: Any, name: str) -> Status:
    """The status for the result of a function; TypeError for a result of another type."""
    if answer is True or answer is None:
        return OK
    if isinstance(answer, Status):
        return answer
    if isinstance(answer, str):
        return Status.unschedulable(answer) if answer else OK
    if isinstance(answer, bool | np.bool_):
        return OK if answer else Status.unschedulable(f"refused by {name}")
    raise TypeError(f"returned {answer!r:.80}, expected True, a reason, or a Status")


def as_score(answer: Any) -> int:
    """A score of 0 to 10 on the scale of plugins, so that tenths count."""
    is_number = isinstance(answer, _NUMBERS) and not isinstance(answer, bool)
    if not is_number or not 0 <= answer <= EXTENDER_MAX:
        raise ValueError(f"returned {answer!r:.80}, expected a number from 0 to {EXTENDER_MAX}")
    return math.floor(float(answer) * MAX_SCORE / EXTENDER_MAX + 0.5)
