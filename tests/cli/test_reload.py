"""A scheduler that takes changed files: by `--reload` at once, by SIGHUP the configuration only."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.process import Running

from mooring import config as cfg
from mooring.api import core
from mooring.cli import main
from mooring.cli.run.reload import code_of
from mooring.client.client import ApiClient
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.runtime.profile import plan_profiles
from mooring.runtime.registry import Registry
from mooring.testing import pod

PLUGIN = """
import mooring.framework as fw
from near import WANTED

class Only(fw.Plugin, fw.Filter):
    name = "Only"

    def filter(self, state, pod, node):
        return fw.OK if node.name == WANTED else fw.Status.unschedulable("not wanted")
"""


class Rig:
    """A cluster, and a folder with a configuration, a plugin, and a module beside it."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self.kubeconfig = kubeconfig
        self.configure()
        self.want("node-0")
        (folder / "only.py").write_text(PLUGIN)

    def configure(self, *, plugin: str = "only:Only", name: str = "mooring") -> None:
        enabled = {"multiPoint": {"enabled": [{"name": plugin}]}} if plugin else {}
        (self.folder / "config.yaml").write_text(
            json.dumps(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "leaderElection": {"leaderElect": False},
                    "profiles": [{"schedulerName": name, "plugins": enabled}],
                }
            )
        )

    def want(self, node: str) -> None:
        (self.folder / "near.py").write_text(f"WANTED = {node!r}  # {time.time_ns()}\n")

    def running(self, *flags: str) -> Running:
        where = ("--config", "config.yaml", "--kubeconfig", str(self.kubeconfig))
        quiet = ("--secure-port", "0", "-v", "2")
        return Running("run", *where, *quiet, *flags, folder=self.folder)

    def schedule(self, name: str, scheduler: str = "mooring") -> str:
        """Create a pod and wait for its node."""
        return asyncio.run(self._schedule(name, scheduler))

    async def _schedule(self, name: str, scheduler: str) -> str:
        transport = HttpTransport(find_endpoint(str(self.kubeconfig)), user_agent="tests")
        client = ApiClient(transport)
        try:
            await client.create(pod(name, scheduler=scheduler).api)
            for _ in range(600):
                found = await client.get(core.Pod, name, "default")
                if found.spec.node_name:
                    return found.spec.node_name
                await asyncio.sleep(0.05)
        finally:
            await transport.close()
        raise AssertionError(f"{name} has no node")


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    file = tmp_path_factory.mktemp("cluster") / "kubeconfig"
    words = ("cluster", "up", "--nodes", "3", "--kubeconfig", str(file))
    with Running(*words, forked=True) as cluster:
        cluster.until("Ctrl-C")
        yield file


@pytest.fixture
def rig(tmp_path: Path, kubeconfig: Path) -> Rig:
    return Rig(tmp_path, kubeconfig)


def test_a_changed_plugin_is_taken_and_a_broken_one_is_not(rig: Rig) -> None:
    with rig.running("--reload") as scheduler:
        scheduler.until("Handlers synced")
        pid = scheduler.pid
        assert rig.schedule("first") == "node-0"
        (rig.folder / "near.py").write_text("WANTED = \n")
        line = scheduler.until("The change is not taken")
        assert "near.py" in line
        assert "invalid syntax" in line
        assert rig.schedule("second") == "node-0"
        rig.want("node-2")
        scheduler.until("Starting again")
        scheduler.until("Handlers synced")
        assert rig.schedule("third") == "node-2"
        assert scheduler.pid == pid
        rig.configure(name="renamed")
        scheduler.until("Starting again")
        scheduler.until('profiles="renamed"')
        assert rig.schedule("fourth", "renamed") == "node-2"
        assert scheduler.stop() == 0


def test_sighup_takes_the_configuration_and_no_changed_code(rig: Rig) -> None:
    with rig.running() as scheduler:
        scheduler.until("Handlers synced")
        rig.configure(plugin="only:Missing", name="next")
        scheduler.send(signal.SIGHUP)
        assert "Missing" in scheduler.until("The change is not taken")
        rig.configure(name="next")
        scheduler.send(signal.SIGHUP)
        scheduler.until("Starting again")
        scheduler.until('profiles="next"')
        scheduler.until("Handlers synced")
        assert rig.schedule("fifth", "next") == "node-0"
        rig.want("node-1")
        scheduler.send(signal.SIGHUP)
        line = scheduler.until("The change is not taken")
        assert "near.py has changed" in line
        assert rig.schedule("sixth", "next") == "node-0"
        assert scheduler.stop() == 0


@pytest.mark.parametrize(
    ("flags", "server", "code", "text"),
    [
        (["--leader-elect=true"], "127.0.0.1", 2, "--reload: is for development and needs"),
        (["--shadow"], "127.0.0.1", 2, "--reload: can't be used with --shadow"),
        ([], "192.0.2.1", 1, "--reload: is for development, with a server on this machine"),
    ],
)
def test_reload_is_refused_where_writing_a_file_must_not_run_code(
    rig: Rig,
    flags: list[str],
    server: str,
    code: int,
    text: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed = rig.folder / "kubeconfig"
    changed.write_text(rig.kubeconfig.read_text().replace("127.0.0.1", server))
    words: list[Any] = ["--config", str(rig.folder / "config.yaml"), "--kubeconfig", str(changed)]
    assert main(["run", *words, "--reload", "--secure-port", "0", *flags]) == code
    assert text in capsys.readouterr().err


def test_the_default_plugins_are_no_code_that_could_change() -> None:
    assert code_of(plan_profiles(cfg.default_configuration(), Registry.discover())) == []
