"""How large the chaos is: small beside all other tests, full with MOORING_CHAOS=full."""

from __future__ import annotations

import os
from dataclasses import dataclass

_PODS_PER_NODE = 3


@dataclass(frozen=True)
class Scale:
    """The figures of one size; times in seconds."""

    nodes: int
    apiserver_kills: int
    scheduler_kills: int
    etcd_pause: float
    watch_cutting: float  # for how long
    leader_pause: float
    lease: tuple[float, float, float]  # duration, renew deadline, retry period
    qps: int  # of replicas that are to have binds waiting
    beside: int  # pods for each of two schedulers
    deadline: float  # until all pods are bound, once the trouble is over

    @property
    def pods(self) -> int:
        return _PODS_PER_NODE * self.nodes


SMALL = Scale(
    nodes=100,
    apiserver_kills=2,
    scheduler_kills=3,
    etcd_pause=4.0,
    watch_cutting=5.0,
    leader_pause=10.0,
    lease=(5.0, 3.0, 1.0),
    qps=20,
    beside=150,
    deadline=60.0,
)
FULL = Scale(
    nodes=1000,
    apiserver_kills=5,
    scheduler_kills=10,
    etcd_pause=10.0,
    watch_cutting=30.0,
    leader_pause=30.0,
    lease=(15.0, 10.0, 2.0),
    qps=50,
    beside=500,
    deadline=180.0,
)

IS_FULL = os.environ.get("MOORING_CHAOS") == "full"
SCALE = FULL if IS_FULL else SMALL
