"""Signals: SIGUSR1 is ignored, SIGUSR2 writes the state to the log, SIGTERM ends the process.

SIGTERM also ends a process whose log is not read.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.process import Running
from tests.cli.test_extender import ask, port_of
from tests.extender.in_process_server import about

from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import load_kubeconfig
from mooring.client.transport import Request
from mooring.testing import pod

MODULE = """
import asyncio

from mooring.controller import controller
from mooring.extender import Extender

extender = Extender()

@extender.filter
def not_b(pod, node):
    return node.name != "b"

@controller(scheduler_name="default-scheduler")
def choose(pod, nodes):
    return nodes[0].name

@controller(scheduler_name="default-scheduler")
async def never(pod, nodes):
    print("choosing")
    await asyncio.sleep(1000)
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a_module.py").write_text(MODULE)
    return tmp_path


@pytest.fixture
def cluster(folder: Path) -> Iterator[Running]:
    up = ("cluster", "up", "--nodes", "1", "--kubeconfig", str(folder / "kubeconfig"))
    with Running(*up, forked=True) as running:
        running.until("Ctrl-C ends it.")
        yield running


def create_pod(folder: Path, name: str = "web") -> None:
    async def create() -> Any:
        transport = HttpTransport(load_kubeconfig(str(folder / "kubeconfig")), user_agent="test")
        try:
            path = "/api/v1/namespaces/default/pods"
            body = json.dumps({**POD, "metadata": {"name": name}}).encode()
            return await transport.send(Request(method="POST", path=path, body=body))
        finally:
            await transport.close()

    assert asyncio.run(create()).status == 201


def send_both(running: Running, *, has_scheduler: bool = False) -> None:
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        running.send(number)
        if has_scheduler and number == signal.SIGUSR2:
            running.until("Dump of cached NodeInfo")
            running.until("Dump of scheduling queue")
        else:
            line = running.until("Received a signal that is ignored")
            assert f'signal="{number.name}"' in line


@pytest.mark.parametrize(
    "command", [("run", "--leader-elect=false"), ("controller", "a_module:choose")]
)
def test_goes_on_placing_pods(folder: Path, cluster: Running, command: tuple[str, ...]) -> None:
    words = (*command, "--kubeconfig", "kubeconfig", "--secure-port", "0", "-v", "2")
    with Running(*words, folder=folder) as running:
        running.until("Handlers synced")
        send_both(running, has_scheduler=command[0] == "run")
        create_pod(folder)
        assert 'pod="default/web"' in running.until("Successfully bound pod to node")
        assert running.stop() == 0


def test_signals_in_its_first_and_last_moments_do_not_end_a_process(folder: Path) -> None:
    """From its first statement on, long before its modules are loaded."""
    words = ("run", "--kubeconfig", "there-is-none", "--secure-port", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "mooring", *words], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    with process:
        while not _ignores(process.pid, signal.SIGUSR2):
            assert process.poll() is None
        sent = 0
        while process.poll() is None:
            process.send_signal(signal.SIGUSR2)
            process.send_signal(signal.SIGUSR1)
            sent += 1
            time.sleep(0.01)
        assert process.stderr is not None
        assert "there-is-none" in process.stderr.read()
    assert process.returncode == 1
    assert sent > 1


def test_nothing_slow_is_loaded_before_signals_are_handled() -> None:
    code = """
import signal, sys
from mooring import cli

outlive = cli._outlive_signals

def first():
    outlive()
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
    print(*sys.modules)
    sys.exit(0)

cli._outlive_signals = first
cli.main(["--version"])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(found.stdout.split())
    plain = subprocess.run(
        [sys.executable, "-c", "import __future__, signal, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded - set(plain.stdout.split()) == {"mooring", "mooring.cli"}


def _ignores(pid: int, number: signal.Signals) -> bool:
    """Whether a process ignores a signal, as the kernel knows."""
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)


def test_a_second_signal_does_not_wait_for_work_under_way(folder: Path, cluster: Running) -> None:
    words = ("controller", "a_module:never", "--kubeconfig", "kubeconfig", "--secure-port", "0")
    with Running(*words, folder=folder) as running:
        create_pod(folder)
        running.until("choosing")
        running.send(signal.SIGTERM)
        running.until("Requested to terminate, exiting")
        assert running.stop() == -signal.SIGTERM
        assert "second signal: exiting at once" in running.all()


def test_the_cluster_goes_on_answering(folder: Path, cluster: Running) -> None:
    send_both(cluster)
    create_pod(folder)
    assert cluster.stop() == 0


def test_an_extender_goes_on_answering(folder: Path) -> None:
    words = ("extender", "a_module:extender", "--no-cluster", "--port", "0")
    with Running(*words, folder=folder) as running:
        port = port_of(running)
        send_both(running)
        assert ask(port, "/filter", about(pod("web"), ["a", "b"]))["NodeNames"] == ["a"]
        assert running.stop() == 0


def test_a_log_that_is_not_read_stops_neither_pods_nor_the_end(
    folder: Path, cluster: Running
) -> None:
    reading, writing = os.pipe()
    words = ("run", "--leader-elect=false", "--kubeconfig", "kubeconfig", "--secure-port", "0")
    with (
        open(reading, "rb"),
        open(writing, "wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "mooring", *words, "-v", "5"], cwd=folder, stderr=stderr
        ) as running,
    ):
        try:
            os.set_blocking(writing, False)
            with contextlib.suppress(BlockingIOError):
                while os.write(writing, b"x" * 65_536):
                    pass
            os.set_blocking(writing, True)
            for number in range(20):
                create_pod(folder, f"web-{number}")
            for _ in range(20):
                cluster.until("placed default/web-")
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=60) == 0
        finally:
            running.kill()
