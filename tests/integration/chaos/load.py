"""Work for a scheduler in trouble: pods that keep arriving, and nodes that are hardly enough.

Pods of five sizes take 87 % of all there is, and the scheduler is told to fill one node before the
next. So at any moment the next pods go where the last ones went, and a place that is forgotten for
a moment is given away twice; while at the end there still is an empty node for the largest pod,
whatever order the trouble has left.
"""

from __future__ import annotations

import http.client
import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

from tests.controlplane.admin import AdminApi, ApiFailure, Object
from tests.controlplane.objects import nodes, pod
from tests.integration.mooring_process import NAME

T = TypeVar("T")

_SIZES = (6, 4, 3, 2, 1)  # of pods, in units of 100m CPU and 1Gi of memory
_NODE = 11  # units
_HANDS = 8  # pods created side by side
_PATIENCE = 120.0  # seconds that a server may be gone
_AGAIN = 0.2  # seconds between two knocks at a door

# For `start_mooring`: fill one node before the next.
PACKING: dict[str, Any] = {
    "percentageOfNodesToScore": 100,
    "profiles": [
        {
            "schedulerName": NAME,
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [
                                {"name": "cpu", "weight": 1},
                                {"name": "memory", "weight": 1},
                            ],
                        }
                    },
                }
            ],
        }
    ],
}


def tight_nodes(count: int) -> list[Object]:
    """Nodes that three pods each fill to 87 %."""
    return nodes(count, zones=5, cpu=f"{_NODE}00m", memory=f"{_NODE}Gi")


def sized_pod(index: int, namespace: str, size: int = 0, scheduler: str = NAME) -> Object:
    """A pod of the size that its number, or `size`, says."""
    units = size or _SIZES[index % len(_SIZES)]
    name = f"pod-{index:06d}"
    return pod(
        name, namespace=namespace, scheduler=scheduler, cpu=f"{units}00m", memory=f"{units}Gi"
    )


def batches(pods: Sequence[Object], count: int) -> list[Sequence[Object]]:
    """The same pods in so many parts of about the same length."""
    cuts = [len(pods) * part // count for part in range(count + 1)]
    return [pods[begin:end] for begin, end in itertools.pairwise(cuts)]


def sized_pods(count: int, namespace: str) -> list[Object]:
    return [sized_pod(index, namespace) for index in range(count)]


def insist(work: Callable[[], T], patience: float = _PATIENCE) -> T:
    """Repeat until the server is there and able; whatever else it says is an answer."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return work()
        except (OSError, http.client.HTTPException):
            if time.monotonic() >= deadline:
                raise
        except ApiFailure as error:
            if (error.code < 500 and error.code != 429) or time.monotonic() >= deadline:
                raise
        time.sleep(_AGAIN)


def create(admin: AdminApi, value: Object) -> None:
    """Have it created, also if the answer to the first try was lost."""
    try:
        insist(lambda: admin.create(value))
    except ApiFailure as error:
        if error.reason != "AlreadyExists":
            raise


class Feeder:
    """Creates pods in the background, whatever happens to the server.

    `rate` is how many a second; without one, all as fast as they can be.
    """

    def __init__(self, admin: AdminApi, pods: Sequence[Object], rate: float = math.inf) -> None:
        self.admin = admin
        self._pods = pods
        self._rate = rate
        self._accidents: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)

    def create(self, value: Object) -> None:
        """Called for every pod, in one of several threads."""
        create(self.admin, value)

    def start(self) -> Self:
        self._thread.start()
        return self

    def wait(self) -> None:
        """Wait until all pods are created; raises what went wrong."""
        self._thread.join()
        if self._accidents:
            raise RuntimeError("not all pods could be created") from self._accidents[0]

    def _run(self) -> None:
        began = time.monotonic()
        try:
            with ThreadPoolExecutor(_HANDS) as hands:
                for index, value in enumerate(self._pods):
                    due = began + index / self._rate
                    time.sleep(max(0.0, due - time.monotonic()))
                    hands.submit(self._create, value)
        except BaseException as error:
            self._accidents.append(error)

    def _create(self, value: Object) -> None:
        try:
            self.create(value)
        except BaseException as error:
            self._accidents.append(error)
