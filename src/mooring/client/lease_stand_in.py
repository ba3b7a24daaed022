"""Renews the lease for a leader whose loop stands still, from another process.

    leader ─────── start of its last renewal ───────▶ shared ◀── start of a renewal ── stand-in
       ▲                                              memory                              │
       └── may write until renew_deadline after the later one                  the same ──┘

A plugin in C code that holds the interpreter's lock stops the loop that renews the lease. The
process then has a copy of itself (`runtime/stand_in.py`) that runs `renew_for` here. It renews
once for each standstill, so that one of up to `renew_deadline` seconds does not cost the lease, and
one that is longer does, hardly later than without it.
"""

from __future__ import annotations

import asyncio
import math
import mmap
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mooring.client.client import ApiClient
from mooring.client.transport import Transport
from mooring.errors import ApiError

if TYPE_CHECKING:
    from mooring.client.lease import LeaderElection

_LOOK: Final = 0.05  # seconds


class Renewals:
    """When the last accepted write of each process began, on one clock; -inf: there is none.

    In memory that forked copies of this process share.
    """

    def __init__(self) -> None:
        self._times = memoryview(mmap.mmap(-1, 16)).cast("d")
        self._times[0] = self._times[1] = -math.inf

    @property
    def own(self) -> float:
        """By the leader itself."""
        return self._times[0]

    @own.setter
    def own(self, time: float) -> None:
        self._times[0] = time

    @property
    def stand_in(self) -> float:
        return self._times[1]

    @stand_in.setter
    def stand_in(self, time: float) -> None:
        self._times[1] = time

    @property
    def latest(self) -> float:
        return max(self._times[0], self._times[1])


async def renew_for(
    election: LeaderElection, connect: Callable[[], Transport], silence: Callable[[], float]
) -> None:
    """In the copy: renew the lease whenever that is due, until cancelled.

    `silence` gives the seconds for which the loop of the leader has stood still; 0 while it runs.
    """
    client = ApiClient(connect())
    while True:
        await asyncio.sleep(_LOOK)
        if not election.needs_stand_in(silence()):
            continue
        try:
            is_renewed = await election.renew_as_stand_in(client, silence)
        except (ApiError, TimeoutError):
            is_renewed = False
        if not is_renewed:
            await asyncio.sleep(election.retry_period)
