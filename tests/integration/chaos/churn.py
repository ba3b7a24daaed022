"""How much memory a scheduler holds for a large cluster, and whether it grows under churn.

    python -m tests.integration.chaos.churn --minutes 30 --nodes 5000 --pods 10000

Exit code 1 if it is too much at any time, or if it has grown too far at the end.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.controlplane.admin import Object
from tests.controlplane.build import ControlPlaneError
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import namespace, node, nodes, pod
from tests.controlplane.processes import Process
from tests.integration.mooring_process import NAME, start_mooring

_MOST = 300.0  # MB
_GROWTH = 0.10
_PASSING = 1000  # of the pods that are there at a time
_TICK = 1.0  # seconds
_NODES_EVERY = 10  # ticks; then some nodes are replaced
_NODES = 3
_SETTLE = 10.0  # seconds after the start
_HANDS = 8


class Churn:
    """Pods and nodes that come and go, at a steady pace."""

    def __init__(self, control_plane: ControlPlane, rate: int, first: Iterable[str]) -> None:
        """`first` are pods that are there already and will be the first to go."""
        self._admin = control_plane.admin
        self._rate = rate
        self._numbers = itertools.count()
        self._pods: deque[str] = deque(first)
        self._nodes: deque[str] = deque()
        self._dice = random.Random(1)
        self._ticks = 0

    def tick(self, hands: ThreadPoolExecutor) -> None:
        """One second's worth."""
        made = [self._pod() for _ in range(self._rate)]
        self._pods.extend(value["metadata"]["name"] for value in made)
        gone = [self._pods.popleft() for _ in made]
        for done in (hands.map(self._admin.create, made), hands.map(self._delete_pod, gone)):
            list(done)  # raises what went wrong
        self._ticks += 1
        if self._ticks % _NODES_EVERY == 0:
            self._replace_nodes()

    def _pod(self) -> Object:
        number = next(self._numbers)
        labels = {"app": f"app-{number % 50}", "version": f"v{number}"}  # some words are always new
        size = self._dice.choice((1, 2, 5))
        return pod(
            f"churn-{number:08d}",
            namespace="churn",
            scheduler=NAME,
            labels=labels,
            cpu=f"{size}00m",
            memory=f"{size}00Mi",
        )

    def _delete_pod(self, name: str) -> None:
        self._admin.delete("Pod", name, "churn")

    def _replace_nodes(self) -> None:
        while len(self._nodes) > _NODES:
            self._admin.delete("Node", self._nodes.popleft())
        for _ in range(_NODES):
            name = f"passing-{next(self._numbers):08d}"
            # Full, so that nothing is left on a node that goes.
            self._admin.create(node(name, pods=0, zone=f"zone-{self._dice.randrange(10)}"))
            self._nodes.append(name)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure a scheduler's memory under churn.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10000, help="bound ones, at any time")
    parser.add_argument("--rate", type=int, default=30, help="pods created and deleted a second")
    options = parser.parse_args(arguments)
    try:
        with ControlPlane() as control_plane:
            return _measure(control_plane, options)
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 2


def _measure(control_plane: ControlPlane, options: argparse.Namespace) -> int:
    admin = control_plane.admin
    admin.create(namespace("churn"))
    homes = nodes(options.nodes, zones=10)
    admin.create_many(homes)
    names = [home["metadata"]["name"] for home in homes]
    settled = [
        pod(f"settled-{index:06d}", namespace="churn", node=names[index % len(names)])
        for index in range(options.pods)
    ]
    admin.create_many(settled)
    process = start_mooring(control_plane).process
    time.sleep(_SETTLE)
    start = highest = megabytes(process)
    print(f"{options.nodes} nodes, {options.pods} pods: {start:.0f} MB after the start", flush=True)
    passing = settled[:_PASSING]
    churn = Churn(control_plane, options.rate, (each["metadata"]["name"] for each in passing))
    began = time.monotonic()
    growth = 0.0
    with ThreadPoolExecutor(_HANDS) as hands:
        for tick in range(1, round(options.minutes * 60) + 1):
            churn.tick(hands)
            if not process.is_alive:
                print(f"the scheduler ended:\n{process.tail()}", file=sys.stderr)
                return 1
            now = megabytes(process)
            highest, growth = max(highest, now), now / start - 1
            if tick % 60 == 0:
                print(f"minute {tick // 60:3d}: {now:.0f} MB, {growth:+.1%}", flush=True)
            time.sleep(max(0.0, began + tick * _TICK - time.monotonic()))
    waiting = len(admin.list("Pod", "churn", fieldSelector="spec.nodeName="))
    print(f"highest {highest:.0f} MB, growth {growth:+.1%}, {waiting} pods were waiting at the end")
    return int(highest > _MOST or growth > _GROWTH)


def megabytes(process: Process) -> float:
    return process.resident_bytes / 1e6


if __name__ == "__main__":
    sys.exit(main())
