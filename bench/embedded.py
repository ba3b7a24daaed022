"""A whole cluster in one process: nodes and Deployments created, pods scheduled and running.

    python -m bench.embedded --nodes 5000 --pods 10000

On the real clock. Prints seconds and memory at each step.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import resource
import sys
import time
from typing import Any

from mooring.cluster.apiserver.resources import known
from mooring.cluster.embedded import EmbeddedCluster, run_scheduler

DEPLOYMENTS = known("deployments", "apps")
_ZONES = tuple(f"zone-{number}" for number in range(10))


def deployment(number: int, replicas: int) -> dict[str, Any]:
    labels = {"app": f"web-{number}"}
    requests = {"cpu": "100m", "memory": "200Mi"}
    container = {"name": "app", "image": "app:1", "resources": {"requests": requests}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"web-{number}", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }


class Report:
    """Lines of a table: what was done, when, and how large the process has become."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        print(f"{'':<28}{'wall s':>9}{'cpu s':>9}{'MB':>7}", flush=True)

    def line(self, what: str) -> None:
        wall = time.perf_counter() - self._began
        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{what:<28}{wall:>9.1f}{time.process_time():>9.1f}{size:>7.0f}", flush=True)


async def run(nodes: int, pods: int, deployments: int, seconds: float) -> None:
    report = Report()
    async with EmbeddedCluster() as cluster:
        cluster.add_nodes(nodes, cpu="32", memory="64Gi", zones=_ZONES)
        report.line(f"{nodes} nodes created")
        await run_scheduler(cluster)
        sizes = [pods // deployments + (i < pods % deployments) for i in range(deployments)]
        cluster.apply(*(deployment(i, size) for i, size in enumerate(sizes)))
        report.line(f"{deployments} Deployments created")
        await cluster.wait_for(lambda: cluster.count_pods() == pods, seconds)
        report.line(f"{pods} pods created")
        await cluster.wait_for(lambda: cluster.count_pods("Running") == pods, seconds)
        report.line(f"{pods} pods running")

        def available() -> bool:
            found = (item.decoded()["status"] for item in cluster.store.items(DEPLOYMENTS))
            return bool(sum(status.get("availableReplicas", 0) for status in found) == pods)

        await cluster.wait_for(available, seconds)
        report.line("all Deployments available")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.embedded", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--deployments", type=int, default=100)
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each step")
    parser.add_argument("--profile", type=int, metavar="LINES", default=0)
    options = parser.parse_args()
    work = run(options.nodes, options.pods, options.deployments, options.timeout)
    if not options.profile:
        asyncio.run(work)
        return 0
    with cProfile.Profile() as profile:
        asyncio.run(work)
    pstats.Stats(profile).sort_stats("tottime").print_stats(options.profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
