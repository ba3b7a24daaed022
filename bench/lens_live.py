"""How long the loop of a scheduler stands still for SIGUSR2, /lens/v1/ explanations and snapshots.

    python -m bench.lens_live [--nodes 5000] [--pods 50000]

The longest turn of the loop in milliseconds of CPU, which other load on the machine disturbs less
than the wall clock; each is done several times on a scheduler whose cache is warm. The bound is
5 ms at 5,000 nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from bench.workloads import cluster, hundred_classes
from mooring.api import core
from mooring.lens import live_explanations
from mooring.lens.dump import CacheDumper
from mooring.lens.live import LiveLens
from mooring.lens.live_views import RecordQuery
from mooring.lens.record import DecisionRecord
from mooring.lens.sight import WHOLE
from mooring.observe import garbage_collection
from mooring.observe import log as logs
from mooring.simulator import Simulation
from mooring.testing import pod


class Store:
    """An informer's store of one kind, in place of an API server."""

    def __init__(self, kind: type[Any], objects: Iterable[Any]) -> None:
        self.kind = kind
        self._objects = {value.key: value for value in objects}

    def get(self, key: str) -> Any:
        return self._objects.get(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._objects.values())


class Turns:
    """Takes every turn of the loop, and remembers how long each of the others' took."""

    def __init__(self) -> None:
        self.gaps: list[float] = []

    async def during(self, work: Awaitable[Any]) -> Any:
        task = asyncio.ensure_future(work)
        last = time.process_time()
        while not task.done():
            await asyncio.sleep(0)
            now = time.process_time()
            self.gaps.append(now - last)
            last = now
        return task.result()


async def measure(name: str, work: Callable[[], Awaitable[Any]], rounds: int = 5) -> None:
    await work()  # what is made once is made
    longest, spent = [], []
    for _ in range(rounds):
        turns = Turns()
        began = time.process_time()
        await turns.during(work())
        spent.append(time.process_time() - began)
        longest.append(max(turns.gaps))
    print(
        f"{name:28} longest turn {statistics.median(longest) * 1e3:7.2f} ms"
        f" (worst {max(longest) * 1e3:.2f}), CPU {statistics.median(spent) * 1e3:8.1f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    options = parser.parse_args()
    with open(os.devnull, "w") as nowhere, Simulation(keep_attempts=False) as sim:
        logs.configure(2, "text", nowhere)
        record = sim.scheduler.ledger = DecisionRecord(sim.clock.now)
        sim.apply(*cluster(options.nodes))
        sim.schedule(*(hundred_classes(i) for i in range(options.pods)))
        sim.schedule(pod("huge", cpu=500), *(pod(f"big-{i}", cpu=400) for i in range(1_000)))
        whole_node = sim.scheduler.cache.table.api[0].status.allocatable["cpu"]
        sim.schedule(pod("vip", cpu=str(whole_node), priority=100, gates=["wait"]))
        garbage_collection.collect_rarely()  # as `mooring run` does
        garbage_collection.freeze_existing_objects()
        pods = list(sim.cluster.pods())
        nodes = [sim.scheduler.cache.table.api[row] for row in range(options.nodes)]
        stores = [Store(core.Node, nodes), Store(core.Pod, pods)]
        component: Any = SimpleNamespace(informers=stores, election=None)
        scheduler = sim.scheduler
        lens = LiveLens(scheduler, component, record=record)
        dumper = CacheDumper(scheduler, stores)  # type: ignore[arg-type]
        bound = next(one.key for one in pods if one.spec.node_name)

        async def all_of_them() -> None:
            turns = lens._explanations
            # vip was never tried, and the first round counts the pods below its priority.
            setattr(live_explanations, "_FEW_PODS", 10**6)  # noqa: B010 - it is final

            async def explain(key: str, *, matrix: bool = False) -> None:
                turns._next = 0.0
                assert await lens.explain(key, live_explanations.ExplanationQuery(matrix=matrix))

            async def snapshot() -> None:
                async for _ in lens.snapshot():
                    pass

            await measure("explain, refused", lambda: explain("default/huge"))
            await measure("explain, evictions", lambda: explain("default/vip"), rounds=2)
            await measure("explain, bound", lambda: explain(bound))
            await measure("explain with matrix", lambda: explain(bound, matrix=True))
            views = lens.views

            async def anew(work: Callable[[], Awaitable[Any]]) -> None:
                views._kept.clear()  # else the answer is given again
                await work()

            await measure("state", lambda: anew(lambda: views.state(WHOLE)))
            await measure("queue", lambda: anew(lambda: views.queue(WHOLE)))
            await measure("records", lambda: views.records(WHOLE, RecordQuery(limit=1000)))
            await measure("waiting pods by kind", lens.pending_kinds.count, rounds=1)
            await measure("SIGUSR2", dumper._run, rounds=2)
            await measure("snapshot", snapshot, rounds=2)

        asyncio.new_event_loop().run_until_complete(all_of_them())


if __name__ == "__main__":
    main()
