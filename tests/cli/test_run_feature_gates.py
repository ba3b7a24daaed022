"""`mooring run --feature-gates`, as a process on an embedded cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mooring.cluster.apiserver.resources import PODS
from mooring.cluster.embedded import EmbeddedCluster
from mooring.testing import node, pod

GATE = "TaintTolerationComparisonOperators=true"


def test_compares_taints_where_that_is_turned_on(tmp_path: Path) -> None:
    config = tmp_path / "config"

    def place(cluster: EmbeddedCluster) -> str:
        item = cluster.store.get(PODS, "default", "p")
        assert item is not None
        return str(item.decoded()["spec"].get("nodeName", ""))

    async def run() -> None:
        async with EmbeddedCluster(kubelets=False, controllers=False) as cluster:
            await cluster.serve()
            assert cluster.http is not None
            cluster.http.kubeconfig(config)
            cluster.apply(node("n", cpu=4, memory="4Gi", taints=["level=4:NoSchedule"]))
            cluster.apply(pod("p", cpu=1))
            # An API server with the gate would accept it; this one has none.
            stored = cluster.store.get(PODS, "default", "p")
            assert stored is not None
            value = stored.decoded()
            toleration = {"key": "level", "operator": "Gt", "value": "3"}
            value["spec"]["tolerations"].append(toleration)
            cluster.store.put(PODS, value)
            words = ("run", "--kubeconfig", str(config), "--leader-elect=false", "--secure-port=0")
            scheduler = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "mooring", *words, "--feature-gates", GATE
            )
            try:
                await cluster.wait_for(lambda: place(cluster) == "n")
            finally:
                scheduler.terminate()
                await scheduler.wait()

    asyncio.run(run())
