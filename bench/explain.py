"""How long explanations take on 5,000 nodes with 50,000 pods: `python -m bench.explain`.

CPU milliseconds in process, the median of some runs after the first: on a shared machine the clock
on the wall says more about the neighbours. The bounds are those of docs/performance.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from mooring import config as cfg
from mooring.framework import Pod
from mooring.lens.private import PrivateCluster
from mooring.lens.remedies import remedies_for
from mooring.lens.snapshot import ClusterState
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry
from mooring.testing import node, pod

GROUPS: Final = 5.0  # ms, an explanation with groups
REMEDIES: Final = 150.0  # ms, with at most 64 candidates
_ZONE: Final = "topology.kubernetes.io/zone"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def cluster(nodes: int, pods: int) -> ClusterState:
    """Three zones, two tainted pools, some cordoned nodes, a hundred apps."""
    made = []
    for i in range(nodes):
        taints = ["pool=gpu:NoSchedule"] if i % 5 == 0 else []
        taints = taints or (["team=ml:NoSchedule"] if i % 7 == 0 else [])
        one = node(
            f"n{i:05}",
            cpu=16,
            memory="64Gi",
            zone="abc"[i % 3],
            taints=taints,
            unschedulable=i % 50 == 1,
            labels={"disk": "ssd" if i % 2 else "hdd"},
        )
        made.append(one.api)
    placed = [
        pod(
            f"p{i}",
            cpu="1500m",
            memory="3Gi",
            labels={"app": f"a{i % 100}"},
            on=f"n{i % nodes:05}",
        ).api
        for i in range(pods)
    ]
    return ClusterState(nodes=tuple(made), pods=tuple(placed))


def cases() -> dict[str, Pod]:
    """Pods that fit, and pods that do not for different reasons."""
    app: dict[str, Any] = {"labels": {"app": "a1"}}
    term = {"labelSelector": {"matchLabels": {"app": "a1"}}, "topologyKey": _ZONE}
    apart = {"podAntiAffinity": {_REQUIRED: [term]}}
    return {
        "fits": pod("w", cpu="500m", memory="1Gi"),
        "no room": pod("w", cpu=3, memory="4Gi"),
        "typo in a selector": pod("w", cpu=3, node_selector={"disk": "sdd"}),
        "spread": pod("w", cpu=3, spread={"zone": 1}, **app),
        "anti-affinity": pod("w", cpu=1, affinity=apart, **app),
    }


def milliseconds(work: Callable[[], object], times: int) -> float:
    """CPU time, the median."""
    taken = []
    for _ in range(times):
        started = time.process_time()
        work()
        taken.append((time.process_time() - started) * 1000)
    return statistics.median(taken)


def main() -> int:
    """Print a table; 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    plan = plan_profiles(cfg.default_configuration(), Registry.discover())[0]
    state = cluster(options.nodes, options.pods)
    started = time.process_time()
    private = PrivateCluster(plan, state)
    print(f"private copy: {(time.process_time() - started) * 1000:,.0f} ms")
    print(f"{'':22}{'groups':>8}{'cold':>8}{'remedies':>10}{'tried':>7}")
    exceeded = False
    explain = private.inspector.explain
    for name, wanted in cases().items():
        cold = milliseconds(lambda: explain(wanted, preemption=False), 1)  # noqa: B023 - at once
        groups = milliseconds(lambda: explain(wanted, preemption=False), options.times)  # noqa: B023
        line = f"{name:22}{groups:8.2f}{cold:8.1f}"
        exceeded |= groups > GROUPS
        if private.fits(wanted) is None:
            tried = remedies_for(private, wanted).tried
            spent = milliseconds(lambda: remedies_for(private, wanted), 3)  # noqa: B023
            exceeded |= spent > REMEDIES
            line += f"{spent:10.1f}{tried:7}"
        print(line)
    return int(exceeded)


if __name__ == "__main__":
    raise SystemExit(main())
