"""Simulation, the embedded cluster of the demo, and a scheduler on an API server decide alike.

A plugin counts how it is called: if one of them went another way, it would be called otherwise.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

import mooring.framework as fw
from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.scheduler.attempts import Attempt
from mooring.simulator import Simulation
from mooring.testing import node, pod
from mooring.testing.builders import ZONE

NODES, PODS = 20, 12
CALLS: Counter[str] = Counter()
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: Counting}]}}
"""


class Counting(fw.PreFilter, fw.Filter, fw.PreScore, fw.Score):
    """Counts its calls, with the number of nodes that they are about."""

    name = "Counting"
    depends_on = fw.NODE_AND_PODS

    def cache_key(self, pod: fw.Pod) -> str:
        return pod.namespace

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        CALLS["pre_filter"] += 1
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        CALLS["filter"] += 1
        return fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        CALLS[f"filter_all of {len(nodes)}"] += 1
        return fw.Verdicts.passing(nodes)

    def pre_score(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        CALLS["pre_score"] += 1
        return fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        CALLS["score"] += 1
        return 0

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        CALLS[f"score_all of {len(nodes)}"] += 1
        return nodes.pod_counts * 0


def simulate(*, keep_attempts: bool) -> None:
    with Simulation(plugins=[Counting], config=CONFIG, keep_attempts=keep_attempts) as sim:
        sim.apply(*(node(f"n{i}", cpu="8") for i in range(NODES)))
        for i in range(PODS):
            sim.schedule(pod(f"p{i}", cpu="1"))


def is_running(cluster: EmbeddedCluster, count: int) -> bool:
    return cluster.count_pods("Running") == count


def embed(on_attempt: Callable[[Attempt], None] | None) -> None:
    """As `mooring demo` does it: informers, binds and Events go through an API server."""

    async def run() -> None:
        async with EmbeddedCluster(startup=0.0) as cluster:
            cluster.add_nodes(NODES, cpu="8")
            await run_scheduler(cluster, CONFIG, [Counting], on_attempt=on_attempt)
            for i in range(PODS):
                cluster.apply(
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "metadata": {"name": f"p{i}"},
                        "spec": {
                            "containers": [
                                {
                                    "name": "c",
                                    "image": "i",
                                    "resources": {"requests": {"cpu": "1"}},
                                }
                            ]
                        },
                    }
                )
                await cluster.wait_for(partial(is_running, cluster, i + 1))

    asyncio.run(run())


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(lambda: simulate(keep_attempts=True), id="Simulation"),
        pytest.param(lambda: simulate(keep_attempts=False), id="Simulation, unobserved"),
        pytest.param(lambda: embed(None), id="embedded cluster"),
        pytest.param(lambda: embed(lambda attempt: None), id="embedded cluster, observed"),
    ],
)
def test_a_plugin_is_called_about_every_node_for_two_pods_and_then_about_changed_ones(
    run: Callable[[], None],
) -> None:
    CALLS.clear()
    run()
    assert CALLS.pop("filter") in range(PODS - 2, 2 * PODS)  # a node may be seen to change twice
    assert CALLS.pop("score") in range(PODS - 2, 2 * PODS)
    assert {
        "pre_filter": 2,
        f"filter_all of {NODES}": 2,
        "pre_score": 2,
        f"score_all of {NODES}": 2,
    } == CALLS


def test_a_plugin_is_not_called_more_often_beside_scores_by_topology_domain() -> None:
    CALLS.clear()
    wish = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    terms = {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": wish}]
    }
    with Simulation(plugins=[Counting], config=CONFIG) as sim:
        sim.apply(*(node(f"n{i}", cpu="8", zone=f"z{i % 3}") for i in range(NODES)))
        for i in range(PODS):
            labels = {"app": "web"}
            sim.schedule(pod(f"p{i}", cpu="1", labels=labels, affinity={"podAffinity": terms}))
    assert CALLS["pre_filter"] == CALLS["pre_score"] == 2
