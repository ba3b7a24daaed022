"""`mooring run` until it binds its first pod: what is loaded, and what is left for later."""

from __future__ import annotations

from pathlib import Path

from tests.cli.process import Running
from tests.cli.test_signals import create_pod

PLUGIN = """
import gc
import sys

import mooring.framework as fw
from mooring.client.watch import Reflector

begin_with = Reflector.begin_with


def told(self, first):
    print("begins with:", first.query.kind.KIND, gc.get_threshold()[0])
    begin_with(self, first)


Reflector.begin_with = told


class Loaded(fw.PostBind):
    name = "Loaded"

    def __init__(self, *_):
        pass

    async def post_bind(self, state, pod, node_name):
        print("bound:", gc.get_threshold()[0])
        print("loaded:", *sys.modules)
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: kubeconfig}
leaderElection: {leaderElect: false}
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: "loaded:Loaded"}]
"""
# What is needed by other commands, by endpoints, by signals, or for a device's selector.
FOR_LATER = (
    "aiohttp",
    "cryptography",
    "dask",
    "hypothesis",
    "mooring.cluster",
    "mooring.controller",
    "mooring.lens",
    "mooring.plugins.dynamicresources.cel",
    "mooring.simulator",
    "mooring.testing",
    "mooring.ui",
    "rich",
)


def test_first_bind_does_not_wait_for_what_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "loaded.py").write_text(PLUGIN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    up = ("cluster", "up", "--nodes", "1", "--kubeconfig", str(tmp_path / "kubeconfig"))
    with Running(*up, forked=True) as cluster:
        cluster.until("Ctrl-C ends it.")
        run = ("run", "--config", "config.yaml", "--secure-port", "0")
        with Running(*run, folder=tmp_path) as scheduler:
            for kind in ("Node", "Pod"):  # lists that began before the plugin was loaded
                line = scheduler.until(f"begins with: {kind}")
                assert int(line.split()[-1]) > 1_000_000, "nothing is collected meanwhile"
            create_pod(tmp_path)
            assert scheduler.until("bound:").split()[-1] == "50000", "as usual from now on"
            loaded = scheduler.until("loaded:").split()[1:]
            assert scheduler.stop() == 0
    assert "mooring.scheduler.scheduler" in loaded
    needless = [name for name in loaded if name.startswith(FOR_LATER)]
    assert needless == []
