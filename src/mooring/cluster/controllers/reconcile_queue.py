"""The work queue of the built-in controllers.

A key that is added many times is reconciled once. Failures are retried with backoff. Keys are
reconciled synchronously by one task, which lets other tasks run after every few keys.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Final, Protocol

from mooring.client.errors import StatusError
from mooring.client.flowcontrol import Backoff, TokenBucket
from mooring.controller.workqueue import WorkQueue

log = logging.getLogger(__name__)

_BATCH: Final = 16  # keys until other tasks may run
_FIRST_RETRY: Final = 0.005  # seconds before a failed key is retried, then doubled
_LAST_RETRY: Final = 10.0

Key = tuple[str, str]  # namespace and name; a controller may give them another meaning


class KeyReconciler(Protocol):
    """Reconciles one key."""

    def reconcile(self, key: Key) -> float | None:
        """Bring the object to its desired state; the seconds until the next call, if needed."""
        ...


_Work = tuple[KeyReconciler, Key]


class FailedPodBackoff:
    """Delays the replacement of failed pods: longer after each failure.

    A pod that its node rejects fails at once; without a delay its controller would create pods in a
    tight loop.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._backoff: Backoff[Key] = Backoff(first, longest, jitter=0.0, forget_after=longest)
        self._known: dict[Key, tuple[str, float]] = {}  # the failure, and until when to wait

    def left(self, key: Key, failure: str, now: float) -> float:
        """Seconds left to wait; `failure` differs for every failure."""
        last, until = self._known.get(key, ("", now))
        if last != failure:
            until = now + self._backoff.next(key, now)
            self._known[key] = failure, until
        return max(until - now, 0.0)

    def forget(self, owner: str) -> None:
        """Forget the keys of a deleted owner; they begin with its uid."""
        for key in [key for key in self._known if key[0] == owner]:
            del self._known[key]
            self._backoff.forget(key)


class ReconcileQueue:
    """Keys to reconcile, from `start` to `close`."""

    def __init__(self) -> None:
        self.unexpected_errors: int = 0  # exceptions other than refusals
        self._queue: WorkQueue[_Work] = WorkQueue(
            backoff=Backoff(_FIRST_RETRY, _LAST_RETRY, jitter=0.0), rate=TokenBucket(rate=0)
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to reconcile; needs a running loop."""
        self._task = asyncio.create_task(self._run(), name="built-in controllers")

    def add(self, reconciler: KeyReconciler, key: Key, after: float = 0.0) -> None:
        """Reconcile a key soon, or after some seconds."""
        self._queue.add_after((reconciler, key), after)

    async def close(self) -> None:
        """Drop all keys."""
        self._queue.shutdown(drop=True)
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        for count in itertools.count(1):
            work = await self._queue.get()
            if work is None:
                return
            self._reconcile(work)
            if count % _BATCH == 0:
                await asyncio.sleep(0)

    def _reconcile(self, work: _Work) -> None:
        reconciler, key = work
        extra = {"controller": type(reconciler).__name__, "key": "/".join(key)}
        try:
            again = reconciler.reconcile(key)
        except StatusError as error:
            extra["error"] = str(error)
            log.debug("a controller was refused, trying again", extra=extra)
            self._queue.add_rate_limited(work)
        except Exception:  # one object must not block the others
            self.unexpected_errors += 1
            log.exception("a controller failed, trying again", extra=extra)
            self._queue.add_rate_limited(work)
        else:
            self._queue.forget(work)
            if again is not None:
                self._queue.add_after(work, again)
        finally:
            self._queue.done(work)
