"""A scheduler that ran on an API server, on the real clock, decided again from its journal.

Decisions, binds, evictions and what others do to pods and nodes overlap as they do in a cluster;
`tests/simulator/test_replay.py` has longer days on virtual time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sizes import sized

from mooring.api import core
from mooring.client.errors import NotFound
from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.lens.journal_reading import JournalFolder
from mooring.simulator.replay import Replay, ReplayAnswer
from mooring.testing import node, pod

PODS = sized(70)
NODES = 6
ALIVE = 36
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "a3"}},
            }
        ]
    }
}
PACKED = (Path(__file__).parents[2] / "docs/howto/packed.yaml").read_text()


def some_pod(rng: random.Random, number: int) -> Any:
    app = number % 5
    options: dict[str, Any] = {"cpu": rng.choice(["500m", 1, 2]), "labels": {"app": f"a{app}"}}
    if app == 1:
        options["spread"] = {"zone": 1}
    if app == 3:
        options["affinity"] = APART
    if number % 19 == 0:
        options["spec"] = {"priorityClassName": "high"}
    if number % 23 == 0:
        options["cpu"] = 64  # which no node has
    return pod(f"p{number}", **options)


def some_node(rng: random.Random, number: int) -> Any:
    return node(
        f"n{number}",
        cpu=8,
        zone="abc"[number % 3],
        labels={"color": rng.choice("rgb")},
        unschedulable=rng.random() < 0.2,
        taints=["x:NoSchedule"] if rng.random() < 0.1 else [],
    )


async def run(folder: Path) -> Counter[str]:
    """Pods come in bursts and go, nodes change; how often each outcome was recorded."""
    rng = random.Random(7)
    async with EmbeddedCluster(startup=0.01, stop=0.01) as cluster:
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
        cluster.apply({**high, "metadata": {"name": "high"}})
        cluster.apply(*(some_node(rng, number) for number in range(NODES)))
        running = await run_scheduler(cluster, record_size=10_000, journal=folder)
        client = cluster.client()
        alive: list[str] = []
        made = 0
        while made < PODS:
            for _ in range(rng.choice((1, 2, 12))):
                cluster.apply(some_pod(rng, made))
                alive.append(f"p{made}")
                made += 1
            await asyncio.sleep(rng.choice((0.0, 0.001, 0.02)))
            while len(alive) > ALIVE:
                name = alive.pop(rng.randrange(len(alive)))
                with suppress(NotFound):  # it was evicted
                    await client.delete(core.Pod, name, "default")
            if rng.random() < 0.2:
                cluster.apply(some_node(rng, rng.randrange(NODES + 2)))
        cluster.apply(*(node(f"late{number}", cpu=8, zone="a") for number in range(4)))
        await asyncio.sleep(0.3)
        await running.stop()  # before attempts are counted: there may be one more until then
    assert running.record is not None
    return Counter(entry.outcome for entry in running.record.newest(10 * PODS))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counter[str]]:
    folder = tmp_path_factory.mktemp("journal")
    return folder, asyncio.run(run(folder))


def replayed(folder: Path, **options: Any) -> ReplayAnswer:
    return Replay(**options).run(JournalFolder(folder).lines())


def test_the_same_configuration_decides_the_same(recorded: tuple[Path, Counter[str]]) -> None:
    folder, outcomes = recorded
    found = replayed(folder)
    assert (found.different, found.differences, found.skipped) == (0, (), 0)
    assert found.attempts == found.equal == outcomes.total()
    assert found.placed >= outcomes["scheduled"] > PODS / 2
    assert outcomes["nominated"] > 0
    assert outcomes["unschedulable"] > 0


def test_another_configuration_differs_twice_the_same(
    recorded: tuple[Path, Counter[str]],
) -> None:
    folder, _ = recorded
    found = replayed(folder, config=PACKED, name="packed.yaml")
    assert found.different > 3
    again = replayed(folder, config=PACKED, name="packed.yaml")
    assert msgspec.json.encode(again) == msgspec.json.encode(found)
