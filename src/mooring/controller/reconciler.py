"""Workers that reconcile one key after the other, across failures.

    informers ──▶ keys ──▶ queue ──▶ workers ──▶ reconcile(key)
                             ▲                      │ Requeue, or it raised
                             └──────── later ◀──────┘

`reconcile` gets a key only and looks up the current state: the change that added the key may be one
of many by then.
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
    """Add this key again: after so many seconds, or with backoff."""

    after: float | None = None


Reconcile = Callable[[str], Awaitable[Requeue | None]]
"""Reconciles one key. What it raises is logged, and the key is added again with backoff."""


class Reconciler:
    """Calls `reconcile` for every key in the queue, never twice at a time for one key.

    Call `watch` for the kinds to watch, then `await run()`. `workers` keys are reconciled at once.
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
        """Add the key of every object that is new, has changed or is gone; its informer.

        `key` may return the key of another object, such as the owner, or None. Without it, the key
        is `namespace/name` of the object itself.
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
        """Until cancelled, or until the workers have ended after `stop`.

        No key is reconciled before all informers have synced.
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
        """Begin no further key, and drop the queue."""
        self._stopped.set()
        self._free.set()
        self.queue.shutdown(drop=True)

    def hold(self, why: str) -> None:
        """Begin no key until `release(why)`, such as while another replica leads."""
        self._holds.add(why)
        if not self._stopped.is_set():
            self._free.clear()

    def release(self, why: str) -> None:
        """Remove one hold."""
        self._holds.discard(why)
        if not self._holds:
            self._free.set()

    @property
    def holds(self) -> frozenset[str]:
        """Why no key is begun at the moment."""
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
        except Exception as error:  # one object must not stop the others
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
        """Log once for each place: what fails for every key must not fill the disk."""
        what = (type_name(error), _innermost_line(error))
        extra = {"controller": self.name, "key": key}
        is_known = what in self._told or len(self._told) >= _MOST_PLACES
        if is_known or isinstance(error, ApiError):  # whose message says more than a traceback
            extra["error"] = text_of(error)
            level = logging.DEBUG if is_known else logging.WARNING
            log.log(level, "could not reconcile, trying again", extra=extra)
        else:
            log.error("could not reconcile, trying again", extra=extra, exc_info=error)
        if not is_known:
            self._told.add(what)


def _innermost_line(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return "?"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
