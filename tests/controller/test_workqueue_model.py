"""The queue under any sequence of calls, compared with the plainest thing that could be right."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.loop_rig import LoopRig
from tests.sizes import sized

from mooring.controller import Backoff, TokenBucket, WorkQueue

KEYS = st.sampled_from("abcd")


class Promises(RuleBasedStateMachine):
    """Several workers get keys, end them or are cancelled while keys come at once and later.

    `_owed` is the model: a key stands in it from the moment it is added until it is handed out
    afterwards. What is owed must come, what is not must not.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rig = LoopRig()
        backoff: Backoff[str] = Backoff(1.0, 4.0, jitter=0.0)
        self._queue: WorkQueue[str] = WorkQueue(backoff=backoff, rate=TokenBucket(0))
        self._owed: set[str] = set()
        self._later: dict[str, float] = {}  # when it will be owed
        self._failures: dict[str, int] = {}
        self._held: set[str] = set()
        self._getting: list[asyncio.Task[str | None]] = []
        self._is_shut = False

    def teardown(self) -> None:
        self._rig.__exit__()

    # --- what may happen -----------------------------------------------------------------------

    @rule(key=KEYS)
    def add(self, key: str) -> None:
        self._call(self._queue.add, key)
        if not self._is_shut:
            self._owed.add(key)
        self._collect()

    @rule(key=KEYS, seconds=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    def add_after(self, key: str, seconds: float) -> None:
        self._call(self._queue.add_after, key, seconds)
        self._owe_later(key, seconds)
        self._collect()

    @rule(key=KEYS)
    def add_rate_limited(self, key: str) -> None:
        self._call(self._queue.add_rate_limited, key)
        if not self._is_shut:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            self._owe_later(key, min(2.0 ** (failures - 1), 4.0))
        self._collect()

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self._queue.forget(key)
        self._failures.pop(key, None)

    @rule(seconds=st.sampled_from([0.25, 1.0, 5.0]))
    def wait(self, seconds: float) -> None:
        self._rig.advance(seconds)
        now = self._rig.loop.time()
        for key in [key for key, when in self._later.items() if when <= now]:
            del self._later[key]
            self._owed.add(key)
        self._collect()

    @rule()
    def get(self) -> None:
        self._getting.append(self._rig.start(self._queue.get()))
        self._collect()

    @precondition(lambda self: self._held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self._held)))
        self._held.discard(key)
        self._call(self._queue.done, key)
        self._collect()

    @precondition(lambda self: self._getting)
    @rule(data=st.data(), key=KEYS)
    def cancel_a_getter_as_a_key_arrives(self, data: st.DataObject, key: str) -> None:
        getter = data.draw(st.sampled_from(range(len(self._getting))))
        task = self._getting.pop(getter)

        def both() -> None:
            self._queue.add(key)
            task.cancel()

        self._call(both)
        assert task.cancelled() or task.result() is None
        if not self._is_shut:
            self._owed.add(key)
        self._collect()

    @rule(drop=st.booleans())
    def shut_down(self, drop: bool) -> None:
        self._call(self._queue.shutdown, drop=drop)
        self._is_shut = True
        self._later.clear()
        if drop:
            self._owed.clear()
        self._collect()

    # --- what must hold ------------------------------------------------------------------------

    @invariant()
    def no_getter_waits_beside_a_key_that_it_could_have(self) -> None:
        assert not (self._getting and self._owed - self._held)
        assert not (self._getting and self._is_shut)

    @invariant()
    def what_is_ready_is_what_is_owed_and_free(self) -> None:
        assert len(self._queue) == len(self._owed - self._held)
        assert self._queue.delayed == len(self._later)

    def _collect(self) -> None:
        """Take note of who got what."""
        for task in [task for task in self._getting if task.done()]:
            self._getting.remove(task)
            key = task.result()
            if key is None:
                assert self._is_shut
                continue
            assert key in self._owed, f"{key} came, and nobody had added it"
            assert key not in self._held, f"two workers have {key}"
            self._owed.remove(key)
            self._held.add(key)

    def _owe_later(self, key: str, seconds: float) -> None:
        if self._is_shut:
            return
        if seconds <= 0:
            self._owed.add(key)
        else:
            when = self._rig.loop.time() + seconds
            self._later[key] = min(self._later.get(key, math.inf), when)

    def _call(self, act: Any, *args: Any, **options: Any) -> None:
        self._rig.call(act, *args, **options)


Promises.TestCase.settings = settings(max_examples=sized(60), stateful_step_count=40, deadline=None)
TestPromises = Promises.TestCase
