"""Workers that bring one key after the other in order, whatever happens to them on the way.

    informers ──▶ keys ──▶ queue ──▶ workers ──▶ reconcile(key)
                             ▲                      │ Requeue, or it raised
                             └──────── later ◀──────┘

A key is all that `reconcile` is told: it looks up what there is now, because by its turn the change
that added the key may be one of many.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from mooring.api.meta import Object
from mooring.client.client import ApiClient
from mooring.client.informer import Informer, Informers
from mooring.controller.metrics import ControllerMetrics
from mooring.controller.workqueue import WorkQueue
from mooring.errors import ApiError
from mooring.observe.texts import text_of, type_name

log = logging.getLogger(__name__)
O = TypeVar("O", bound=Object)  # noqa: E741 - an object

_MOST_PLACES: Final = 1000  # of failures that are told apart


class Requeue(msgspec.Struct, frozen=True):
    """Come back to this key: after so many seconds, or with backoff."""

    after: float | None = None


Reconcile = Callable[[str], Awaitable[Requeue | None]]
"""Brings one key in order. What it raises is logged, and the key is tried again with backoff."""


class Reconciler:
    """Calls `reconcile` for every key that may need it; never for one key twice at a time.

    Tell it what to watch, then `await run()`. `workers` keys are worked on at once.
    """

    def __init__(
        self,
        client: ApiClient,
        reconcile: Reconcile,
        *,
        name: str,
        workers: int = 1,
        queue: WorkQueue[str] | None = None,
        metrics: ControllerMetrics | None = None,
    ) -> None:
        if workers < 1:
            raise ValueError(f"workers: expected at least 1, got {workers}")
        self.name: str = name
        self.metrics: ControllerMetrics = metrics or ControllerMetrics()
        # An empty queue is false, as all that is empty.
        self.queue: WorkQueue[str] = (
            WorkQueue(name, metrics=self.metrics) if queue is None else queue
        )
        self.informers: Informers = Informers(client)
        self._client = client
        self._reconcile = reconcile
        self._workers = workers
        self._holds: set[str] = set()
        self._free = asyncio.Event()
        self._free.set()
        self._stopped = asyncio.Event()
        self._told: set[tuple[str, str]] = set()  # kinds and places of failures
        self._duration = self.metrics.reconcile_duration.labels(name)
        self._active = self.metrics.active_workers.labels(name)
        self.metrics.workers.labels(name).set(workers)

    def watch(
        self,
        kind: type[O],
        *,
        key: Callable[[O], str | None] | None = None,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> Informer[O]:
        """Add the key of every object that is new, has changed or is gone; the store of them.

        `key` may name another object to look at, such as the owner, or None for nobody. Without
        it, that is the object's own: `namespace/name`.
        """

        def enqueue(value: O) -> None:
            found = value.key if key is None else key(value)
            if found:
                self.queue.add(found)

        informer = Informer(
            self._client,
            kind,
            on_put=enqueue,
            on_remove=enqueue,
            namespace=namespace,
            labels=labels,
            fields=fields,
        )
        self.informers.add(informer)
        return informer

    async def run(self) -> None:
        """Until cancelled; or until `stop`, and what is under way then has ended.

        No key is worked on before all informers know what there is.
        """
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(self.informers.run(), name=f"informers of {self.name}")
            syncing = tasks.create_task(self.informers.wait_synced())
            stopping = tasks.create_task(self._stopped.wait())
            await asyncio.wait([syncing, stopping], return_when=asyncio.FIRST_COMPLETED)
            syncing.cancel()
            stopping.cancel()
            async with asyncio.TaskGroup() as workers:
                for number in range(self._workers):
                    workers.create_task(self._work(), name=f"{self.name} worker {number}")
            watching.cancel()

    def stop(self) -> None:
        """Begin nothing more; what waits in the queue is dropped."""
        self._stopped.set()
        self._free.set()
        self.queue.shutdown(drop=True)

    def hold(self, why: str) -> None:
        """Begin nothing until `release(why)`, such as while another replica leads."""
        self._holds.add(why)
        if not self._stopped.is_set():
            self._free.clear()

    def release(self, why: str) -> None:
        """Take one hold back; work goes on when none is left."""
        self._holds.discard(why)
        if not self._holds:
            self._free.set()

    @property
    def holds(self) -> frozenset[str]:
        """Why nothing is begun at the moment; empty while at work."""
        return frozenset(self._holds)

    async def _work(self) -> None:
        while True:
            await self._free.wait()
            key = await self.queue.get()
            if key is None:
                return
            try:
                if self._holds:  # since we waited for the key
                    self.queue.add(key)
                else:
                    await self._work_on(key)
            finally:
                self.queue.done(key)

    async def _work_on(self, key: str) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._active.add(1)
        try:
            answer = await self._reconcile(key)
        except Exception as error:  # one object must not keep us from the others
            self._complain(key, error)
            self.queue.add_rate_limited(key)
            result = "error"
        else:
            result = self._take(key, answer)
        finally:
            self._active.add(-1)
            self._duration.observe(loop.time() - began)
        self.metrics.reconciles.labels(self.name, result).add()

    def _take(self, key: str, answer: Requeue | None) -> str:
        if answer is None:
            self.queue.forget(key)
            return "success"
        if answer.after is None:
            self.queue.add_rate_limited(key)
            return "requeue"
        self.queue.forget(key)
        self.queue.add_after(key, answer.after)
        return "requeue_after"

    def _complain(self, key: str, error: Exception) -> None:
        """Once for each place: what fails for every key must not fill the disk."""
        what = (type_name(error), _innermost_line(error))
        extra = {"controller": self.name, "key": key}
        if what in self._told or len(self._told) >= _MOST_PLACES:
            log.debug("could not reconcile, trying again", extra={**extra, "error": text_of(error)})
            return
        self._told.add(what)
        if isinstance(error, ApiError):  # the server's words say more than our lines
            log.warning(
                "could not reconcile, trying again", extra={**extra, "error": text_of(error)}
            )
        else:
            log.error("could not reconcile, trying again", extra=extra, exc_info=error)


def _innermost_line(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return "?"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
