"""What SIGUSR2 writes to the log: nodes, their pods and the queue; and where the cache is wrong.

Messages, keys and texts are those of kube-scheduler's cache debugger. Of a large cluster, each
message comes several times, with some of the nodes or pods each time: decisions are made between
them. Nothing of a pod is written but what names it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from mooring.api import core
from mooring.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from mooring.cache.pods import Pod
from mooring.cache.resources import ByResource
from mooring.client.informer import Informers
from mooring.lens.slices import in_slices
from mooring.observe import log as logs
from mooring.observe.log import TextBlock
from mooring.scheduler.scheduler import Scheduler

log = logging.getLogger(__name__)

_LONGEST: Final = 32_768  # characters of one message, and one node
_STEP: Final = 100  # pods between two looks at the clock
_LASTS: Final = 1.0  # seconds that a difference must last: the store may be told of a change first
_PAUSE: Final = 0.05  # seconds, while nothing reads the log
_MOST_PAUSES: Final = 200  # then lines are dropped
_NATIVE: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)

T = TypeVar("T")
Differences = tuple[set[str], set[str]]  # only in the store, only in the cache


class CacheDumper:
    """Writes the state of one scheduler to the log whenever it is asked to."""

    def __init__(self, scheduler: Scheduler, informers: Informers) -> None:
        self._scheduler = scheduler
        self._informers = informers
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def request(self) -> None:
        """Begin; one that is asked for meanwhile follows."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="dump")
        else:
            self._again = True

    async def _run(self) -> None:
        while True:
            self._again = False
            try:
                await self._compare()
                await self._write(_node_texts(self._scheduler), self._log_nodes)
                await self._dump_queue()
            except Exception:
                log.exception("writing the cache and the queue to the log broke")
            if not self._again:
                return

    # --- dump ----------------------------------------------------------------------------------

    async def _dump_queue(self) -> None:
        listed = self._scheduler.queue.listed()
        waiting = len(listed["unschedulable"]) + len(listed["gated"])
        summary = (
            f"activeQ:{len(listed['active'])}; backoffQ:{len(listed['backoff'])};"
            f" unschedulablePods:{waiting}"
        )

        def log_pods(texts: Sequence[str]) -> None:
            extra = {"v": 0, "summary": summary, "pods": TextBlock("\n".join(texts))}
            log.info("Dump of scheduling queue", extra=extra)

        pods = (queued.pod for some in listed.values() for queued in some)
        await self._write(map(_pod_text, pods), log_pods)

    def _log_nodes(self, texts: Sequence[str]) -> None:
        extra = {"v": 0, "nodes": TextBlock("\n\n".join(texts))}
        log.info("Dump of cached NodeInfo", extra=extra)

    async def _write(self, texts: Iterator[str], write: Callable[[Sequence[str]], None]) -> None:
        """Write all texts, several in each message, and none of them faster than they are read."""
        is_first = True
        pauses = 0
        for some in _chunks(texts):
            if some or is_first:
                write(some)
            is_first = is_first and not some
            await asyncio.sleep(0)
            while logs.is_behind() and pauses < _MOST_PAUSES:
                pauses += 1
                await asyncio.sleep(_PAUSE)

    # --- compare -------------------------------------------------------------------------------

    async def _compare(self) -> None:
        log.info("Cache comparer started", extra={"v": 3})
        for what, find in (("Nodes", self._different_nodes), ("Pods", self._different_pods)):
            missed, redundant = await in_slices(find())
            if missed or redundant:
                await asyncio.sleep(_LASTS)
                still_missed, still_redundant = await in_slices(find())
                missed, redundant = missed & still_missed, redundant & still_redundant
            if missed or redundant:
                found = {f"missed{what}": sorted(missed), f"redundant{what}": sorted(redundant)}
                log.info("Cache mismatch", extra={"v": 0, **found})
        log.info("Cache comparer finished", extra={"v": 3})

    def _different_nodes(self) -> Generator[None, None, Differences]:
        cache = self._scheduler.cache
        cached = {*cache.table.names, *cache.unknown_nodes()}
        store = self._store(core.Node)
        yield
        actual = {node.metadata.name for node in store}
        return actual - cached, cached - actual

    def _different_pods(self) -> Generator[None, None, Differences]:
        """By uid; the cache stands for the queue and for pods that are being scheduled, too."""
        scheduler = self._scheduler
        store = self._store(core.Pod)
        assigned = list(scheduler.cache.pod_uids())
        in_flight = set(scheduler.queue.in_flight)
        queued = [one for some in scheduler.queue.listed().values() for one in some]
        yield
        cached: set[str] = set()
        for uids in _slices(assigned):
            cached.update(uids)
            yield
        for some in _slices(queued):
            cached.update(one.pod.uid for one in some)
            yield
        missed: set[str] = set()
        for pods in _slices(store):
            for pod in pods:
                uid = pod.metadata.uid
                if uid in cached:
                    cached.discard(uid)
                elif uid not in in_flight and self._is_expected(pod):
                    missed.add(uid)
            yield
        return missed, cached

    def _is_expected(self, pod: core.Pod) -> bool:
        """Whether a pod should be in the cache or in the queue."""
        if pod.spec.node_name:
            return True
        is_ours = pod.spec.scheduler_name in self._scheduler.runtimes
        return is_ours and pod.metadata.deletion_timestamp is None

    def _store(self, kind: type[T]) -> list[T]:
        return next((list(one) for one in self._informers if one.kind is kind), [])


def _chunks(texts: Iterator[str]) -> Iterator[list[str]]:
    """Some texts at a time; at least once, even if there are none."""
    some: list[str] = []
    length = 0
    for text in texts:
        some.append(text)
        length += len(text)
        if length >= _LONGEST:
            yield some
            some, length = [], 0
    yield some


def _slices(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[first : first + _STEP] for first in range(0, len(values), _STEP))


# --- texts ---------------------------------------------------------------------------------------


def _node_texts(scheduler: Scheduler) -> Iterator[str]:
    """One text per node, each as the node is then; also of nodes that are gone and have pods."""
    table, nominated_on = scheduler.cache.table, scheduler.queue.nominator.nominated_on
    for name in tuple(table.names):
        row = table.row_of.get(name)
        if row is None:
            continue
        requested = _of_row(table.resources.requested, row)
        requested[PODS] = 0  # kube-scheduler counts pods by their list
        allocatable = _of_row(table.resources.allocatable, row)
        pods = tuple(table.pods[row].values())
        yield _node_text(name, requested, allocatable, pods, nominated_on(name))
    for name, left in scheduler.cache.unknown_nodes().items():
        requested = dict(sum((Counter(pod.usage) for pod in left), Counter()))
        yield _node_text(name, requested, None, left, nominated_on(name))


def _node_text(
    name: str,
    requested: Mapping[str, int],
    allocatable: Mapping[str, int] | None,
    pods: Sequence[Pod],
    nominated: Sequence[Pod],
) -> str:
    lines = [
        f"Node name: {name}",
        f"Deleted: {'true' if allocatable is None else 'false'}",
        f"Requested Resources: {_resources(requested)}",
        f"Allocatable Resources:{_resources(allocatable or {})}",
        f"Scheduled Pods(number: {len(pods)}):",
        *map(_pod_text, pods),
    ]
    if nominated:
        lines += [f"Nominated Pods(number: {len(nominated)}):", *map(_pod_text, nominated)]
    return "\n".join(lines)


def _pod_text(pod: Pod) -> str:
    status = pod.status
    return (
        f"name: {pod.name}, namespace: {pod.namespace}, uid: {pod.uid},"
        f" phase: {status.phase}, nominated node: {status.nominated_node_name}"
    )


def _resources(amounts: Mapping[str, int]) -> str:
    """As Go prints kube-scheduler's `Resource`."""
    scalars = sorted(
        f"{name}:{amount}" for name, amount in amounts.items() if amount and name not in _NATIVE
    )
    cpu, memory, storage, pods = (amounts.get(name, 0) for name in _NATIVE)
    return (
        f"&{{MilliCPU:{cpu} Memory:{memory} EphemeralStorage:{storage} AllowedPodNumber:{pods}"
        f" ScalarResources:map[{' '.join(scalars)}]}}"
    )


def _of_row(columns: ByResource, row: int) -> dict[str, int]:
    return {resource: int(column.view[row]) for resource, column in columns.items()}
