"""`@controller` makes a scheduler of a function that picks a node for a pod.

`mooring controller module:choose` runs it with endpoints for probes and metrics, `choose.run()`
without, and in a test `Runner(choose, cluster.transport)` runs it on an embedded cluster.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass

from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.component import connector
from mooring.client.endpoint import Endpoint
from mooring.client.incluster import find_endpoint
from mooring.controller.chooser import Choice, Choose
from mooring.controller.metrics import ControllerMetrics
from mooring.controller.runner import Options, Runner
from mooring.observe import log as logs
from mooring.observe.signals import run_until_signalled
from mooring.runtime.guard import Watchdog


@dataclass(eq=False, repr=False)
class Controller:
    """A function that picks nodes for the pods of one schedulerName; callable like the function."""

    function: Choose
    scheduler_name: str
    _: KW_ONLY
    first_retry: float = 1.0
    longest_retry: float = 60.0
    at_once: int = 1

    def __post_init__(self) -> None:
        self.__doc__ = self.function.__doc__
        self.__name__: str = getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, pod: Pod, nodes: Nodes) -> Choice | Awaitable[Choice]:
        return self.function(pod, nodes)

    def __repr__(self) -> str:
        return f"<controller {self.__name__} of {self.scheduler_name}>"

    def run(
        self,
        *,
        kubeconfig: str = "",
        context: str = "",
        master: str = "",
        options: Options | None = None,
        verbosity: int = 2,
    ) -> None:
        """Place pods of a real cluster until SIGTERM or SIGINT.

        Without a kubeconfig: of the cluster this process runs in, or the one kubectl would use.
        """
        logs.configure(verbosity, "text", sys.stderr)
        endpoint = find_endpoint(kubeconfig, master, context=context)
        asyncio.run(self._run(endpoint, options))

    async def _run(self, endpoint: Endpoint, options: Options | None) -> None:
        metrics = ControllerMetrics()
        connect = connector(endpoint, metrics, "mooring-controller")
        runner = Runner(self, connect, options, metrics=metrics)
        with Watchdog(runner.guard):
            await run_until_signalled(runner.run, runner.stop)


def controller(
    scheduler_name: str, *, first_retry: float = 1.0, longest_retry: float = 60.0, at_once: int = 1
) -> Callable[[Choose], Controller]:
    """Make a controller of the decorated function, for pods with this `spec.schedulerName`.

    The function gets a pod and all nodes, and returns the name of a node, or None (or `NotNow` with
    a reason): then it is asked again after `first_retry` seconds, twice as long each time up to
    `longest_retry`, and soon after a node has changed. It may be async; `at_once` calls may then be
    under way together, and do not see each other's choices before they are made.
    """
    if not scheduler_name:
        raise ValueError("scheduler_name: expected what pods have in spec.schedulerName, got ''")
    if not 0 < first_retry <= longest_retry:
        text = f"got {first_retry:g} and {longest_retry:g} seconds"
        raise ValueError(f"expected 0 < first_retry <= longest_retry, {text}")
    if at_once < 1:
        raise ValueError(f"at_once: expected at least 1, got {at_once}")

    def decorate(function: Choose) -> Controller:
        try:
            inspect.signature(function).bind(None, None)
        except TypeError as error:
            name = getattr(function, "__qualname__", repr(function))
            raise TypeError(f"{name}: expected a function of a pod and nodes: {error}") from None
        return Controller(
            function,
            scheduler_name,
            first_retry=first_retry,
            longest_retry=longest_retry,
            at_once=at_once,
        )

    return decorate
