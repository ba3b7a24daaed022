"""`mooring cluster scale`: pools of a laptop cluster that runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.cli.running_cluster import READY, ask, up
from tests.controlplane.waiting import wait_until

from mooring.cli import main


def test_a_pool_gets_more_nodes_or_fewer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"

    def scale(*sizes: str) -> str:
        code = main(["cluster", "scale", *sizes, "--kubeconfig", str(config)])
        said = capsys.readouterr()
        assert code == (0 if not said.err else 2)
        return said.out + said.err

    def has(count: int) -> bool:
        return len(ask(config, "/api/v1/nodes")["items"]) == count

    with up(config, "--nodes", "2") as cluster:
        cluster.until(READY)
        (pool,) = ask(config, "/api/v1/namespaces/kube-system/configmaps/mooring-pools")["data"]
        for count in (3, 1):
            assert scale(f"{pool}={count}") == f"pool {pool}: {count} nodes\n"
            wait_until(partial(has, count), what=f"there are {count} nodes")
        assert f"pool none: expected one of the cluster's pools: {pool}" in scale("none=1")
        assert f"'{pool}=many': expected POOL=N, such as gpu=6" in scale(f"{pool}=many")
        assert cluster.stop() == 0
