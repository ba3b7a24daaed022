"""A scheduler that decides what another one decides, and only compares.

Its cache holds the other scheduler's placements, never its own. For each pod that the other one
binds it decides as well, on the nodes as they were before that bind, and then takes the bind over.
The decision is made by the cycle of `mooring run`, on all nodes; PostFilter plugins are left out,
because what they prepare is not carried out.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from msgspec import structs

from mooring import config as cfg
from mooring.api import core
from mooring.api.meta import format_time
from mooring.cache.pods import Pod
from mooring.framework.state import CycleState
from mooring.lens.inspect import Inspector, unbound
from mooring.lens.shadow.comparison import EQUAL, ERROR, FITS, Comparer, Comparison, Result
from mooring.lens.shadow.events import SETTLE, OrderedChanges, QueuedChange, SchedulingOutcome
from mooring.scheduler.cycle import Decision
from mooring.scheduler.scheduler import Scheduler

log = logging.getLogger(__name__)

_RECENT: Final = 8  # pods bound before another one, that may have been decided after it
_TURN: Final = 32  # changes until others on the loop get a turn


class Silent:
    """Fulfils `framework.Recorder`: records no Event."""

    def event(
        self, pod: Pod, type_: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        log.debug("Event not written", extra={"pod": pod.key, "reason": reason, "note": note})


def shadow_config(config: cfg.KubeSchedulerConfiguration) -> cfg.KubeSchedulerConfiguration:
    """The configuration with which a shadow decides: all nodes, no PostFilter."""
    none = cfg.PluginSet(disabled=(cfg.PluginRef(name="*"),))
    profiles = tuple(
        structs.replace(
            profile,
            percentage_of_nodes_to_score=None,
            plugins=structs.replace(profile.plugins, post_filter=none),
        )
        for profile in config.profiles
    )
    return structs.replace(config, percentage_of_nodes_to_score=None, profiles=profiles)


class Shadow:
    """The work of a component that compares; its `put_*` and `remove_*` are for informers.

    `scheduler` was made with a `shadow_config` and is never run. `config` is the one of the other
    scheduler. `on_compared` gets every comparison.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        config: cfg.KubeSchedulerConfiguration,
        on_compared: Callable[[Comparison], None],
        *,
        settle: float = SETTLE,
    ) -> None:
        self._scheduler = scheduler
        self._on_compared = on_compared
        self._handlers = scheduler.handlers
        loop = asyncio.get_running_loop()
        self._changes = OrderedChanges(
            lambda pod: pod.spec.scheduler_name in scheduler.runtimes, loop.time, settle
        )
        self._recent: deque[Pod] = deque(maxlen=_RECENT)  # newest first
        self._wake = asyncio.Event()
        self._stopping = False
        by_profile = {
            profile.scheduler_name: profile.percentage_of_nodes_to_score
            for profile in config.profiles
        }
        self._comparers = {
            name: Comparer(
                Inspector(runtime.evaluator, runtime.runner, scheduler.cache),
                scheduler.cache,
                by_profile.get(name) or config.percentage_of_nodes_to_score,
            )
            for name, runtime in scheduler.runtimes.items()
        }

    def __len__(self) -> int:
        """Changes that are not known to the scheduler yet."""
        return len(self._changes)

    # --- what happens to the cluster -----------------------------------------------------------

    def put_node(self, node: core.Node) -> None:
        self._put(self._handlers.put_node, node)

    def put_nodes(self, listed: list[core.Node]) -> None:
        self._put(self._handlers.put_nodes, listed)

    def remove_node(self, node: core.Node) -> None:
        self._put(self._handlers.remove_node, node)

    def put_object(self, value: Any) -> None:
        self._put(self._handlers.put_object, value)

    def remove_object(self, value: Any) -> None:
        self._put(self._handlers.remove_object, value)

    def put_pods(self, listed: list[core.Pod]) -> None:
        """What a list brought: pods with a node are taken over at once, without comparing."""
        known = self._scheduler.cache
        settled = [
            pod
            for pod in listed
            if pod.spec.node_name
            and self._handlers.pending(pod.key) is None
            and known.get_pod(pod.metadata.uid) is None
        ]
        uids = {pod.metadata.uid for pod in settled}
        self._put(self._handlers.put_pods, settled)
        for pod in listed:
            if pod.metadata.uid not in uids:
                self.put_pod(pod)

    def put_pod(self, pod: core.Pod) -> None:
        self._changes.put_pod(self._handlers.put_pod, pod)
        self._wake.set()

    def remove_pod(self, pod: core.Pod) -> None:
        self._changes.remove_pod(self._handlers.remove_pod, pod)
        self._wake.set()

    def _put(self, apply: Callable[[Any], None], value: Any) -> None:
        self._changes.put(apply, value)
        self._wake.set()

    # --- client.component.Work -----------------------------------------------------------------

    async def run(self) -> None:
        """Compare until `stop`."""
        done = 0
        while not self._stopping:
            change = self._changes.next()
            if change is None:
                await self._pause()
                continue
            await self._take(change)
            done += 1
            if not done % _TURN:
                await asyncio.sleep(0)

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def hold(self, why: str) -> None:
        """Nothing to hold: what is listed first is taken over without comparing."""

    def release(self, why: str) -> None:
        """See `hold`."""

    async def _pause(self) -> None:
        """Until something happens, or what is held back is due."""
        self._wake.clear()
        due = self._changes.due()
        timeout = None if due is None else max(due - asyncio.get_running_loop().time(), 0.0)
        try:
            await asyncio.wait_for(self._wake.wait(), timeout)
        except TimeoutError:
            return

    async def _take(self, change: QueuedChange) -> None:
        try:
            if isinstance(change, SchedulingOutcome):
                await self._compare(change.value)
            change.apply(change.value)
        except Exception:
            key = getattr(change.value, "key", "")
            log.exception("a change could not be handled, going on", extra={"object": key})

    # --- comparing -----------------------------------------------------------------------------

    async def _compare(self, api: core.Pod) -> None:
        theirs = api.spec.node_name
        known = self._handlers.pending(api.key)
        pod = known if known is not None and known.uid == api.metadata.uid else unbound(Pod(api))
        decision = await self._decide(pod)
        ours = decision.node_name
        why = ""
        result: Result
        if not (decision.status.ok or decision.status.rejected):
            result, why = ERROR, decision.status.message
        elif ours == theirs:
            result = EQUAL
        elif not theirs and pod.nominated_node_name:
            # It waits for its victims there; their room is counted as taken.
            result, why = FITS, f"here it fits {ours}; they have nominated it for a node"
        else:
            comparer = self._comparers[pod.scheduler_name]
            result, why = comparer.difference(
                pod, theirs, ours, decision.status.message, self._recent
            )
        if theirs:
            self._recent.appendleft(Pod(api))
        self._on_compared(
            Comparison(
                pod=pod.key,
                uid=pod.uid,
                at=format_time(self._scheduler.now()),
                theirs=theirs,
                ours=ours,
                result=result,
                why=why,
            )
        )

    async def _decide(self, pod: Pod) -> Decision:
        scheduler = self._scheduler
        runtime, guard = scheduler.runtimes[pod.scheduler_name], scheduler.guard
        guard.limit, guard.overrun = guard.decision_limit, None
        try:
            return await runtime.cycle.decide(CycleState(), pod, scheduler.cache.nodes)
        finally:
            guard.limit = guard.budget
