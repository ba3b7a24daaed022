"""The serving side of the verbs: functions that answer them, and a handler for each verb.

    from mooring.extender import Extender

    extender = Extender()

    @extender.filter
    def only_ssd(pod, node):
        return "ssd" in node.labels or "node has no ssd"

Functions may be `async def`. They get the `Pod` and `Node` of `mooring.framework`. Use a plugin
class for arguments, or to answer for all nodes in one call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mooring.errors import ConfigError, Problem
from mooring.extender.serving.bind import bind
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.serving.filter_prioritize import FilterPrioritizeHandler
from mooring.extender.serving.functions import (
    BindFunction,
    FilterFunction,
    FunctionBind,
    FunctionFilter,
    FunctionPlugin,
    FunctionScore,
    PreemptFunction,
    PrioritizeFunction,
)
from mooring.extender.serving.metrics import ExtenderMetrics
from mooring.extender.serving.plugins import ServedPlugins
from mooring.extender.serving.preempt import PreemptHandler
from mooring.extender.serving.request import VerbHandler
from mooring.extender.wire import BIND, FILTER, PREEMPT, PRIORITIZE, AnyVerb
from mooring.framework.plugin import Base

if TYPE_CHECKING:
    from mooring.extender.serving.app import Options

_F = TypeVar("_F", bound=FilterFunction)
_S = TypeVar("_S", bound=PrioritizeFunction)
_B = TypeVar("_B", bound=BindFunction)
_P = TypeVar("_P", bound=PreemptFunction)
_A = TypeVar("_A", bound=Callable[..., Any])


class Extender:
    """The functions of an extender, by verb. A decorator returns its function unchanged.

    Several functions of a verb are called in turn: a node must pass all filters, gets the mean of
    all scores, and stays a candidate for preemption unless a function objects.
    """

    def __init__(self) -> None:
        self.plugins: list[type[Base]] = []
        self._names: set[str] = set()

    def filter(self, function: _F) -> _F:
        """`(pod, node)`: whether the pod may run on the node: True, or the reason why not."""
        return self._add(FILTER, FunctionFilter, function, "pod, node")

    def prioritize(self, function: _S) -> _S:
        """`(pod, node)`: the score of the node, 0 to 10; fractions count before rounding."""
        return self._add(PRIORITIZE, FunctionScore, function, "pod, node")

    def bind(self, function: _B) -> _B:
        """`(pod, node_name)`: whether to bind the pod; if so, mooring creates the Binding.

        Return the status OK if the function has bound the pod itself.
        """
        return self._add(BIND, FunctionBind, function, "pod, node_name")

    def preempt(self, function: _P) -> _P:
        """`(pod, node_name, victims)`: the victims that may be evicted; True for all, or a reason.

        Pods that were not offered as victims can't be chosen.
        """
        return self._add(PREEMPT, FunctionPlugin, function, "pod, node_name, victims")

    def run(self, options: Options | None = None, **changes: Any) -> None:
        """Serve until SIGTERM or Ctrl-C: `extender.run(port=8888)`.

        The options are those of `serving.app.Options`; `mooring extender` does the same from the
        command line, also with TLS.
        """
        from mooring.extender.serving.app import run

        run(self, options, **changes)

    def _add(self, verb: AnyVerb, kind: type[FunctionPlugin], function: _A, expected: str) -> _A:
        name, decorator = function.__name__, f"@extender.{verb.name}"
        try:
            inspect.signature(function).bind(*expected.split(", "))
        except TypeError:
            raise TypeError(f"{decorator}: {name}() must take ({expected})") from None
        if name in self._names:
            raise ValueError(f"{decorator}: there is a function {name}() already")
        self._names.add(name)
        self.plugins.append(kind.of(verb, function))
        return function


def make_handlers(
    served: ServedPlugins,
    cluster: WatchedCluster,
    metrics: ExtenderMetrics,
    *,
    serve_bind: bool,
) -> dict[str, VerbHandler]:
    """The handlers of the verbs that a plugin or a function answers, by name of the verb."""
    answering = FilterPrioritizeHandler(served, cluster, metrics)
    handlers: dict[AnyVerb, VerbHandler] = {
        FILTER: answering.filter,
        PRIORITIZE: answering.prioritize,
        PREEMPT: PreemptHandler(served, cluster).preempt,
        BIND: partial(bind, served, cluster),
    }
    found = {
        verb.name: handler
        for verb, handler in handlers.items()
        if served.answers(verb) or served.functions(verb) or (verb is BIND and serve_bind)
    }
    if BIND.name in found and not cluster.is_connected:
        raise ConfigError([Problem("", "binding pods needs a cluster")])
    if not found:
        raise ConfigError([Problem("", "there is nothing to serve: no plugin, no function")])
    return found
