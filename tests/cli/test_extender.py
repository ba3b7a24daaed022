"""`mooring extender` as a process of its own, and what it refuses to start with."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.cli.process import Running
from tests.extender.in_process_server import about
from tests.unshowable import RAISES_PARTING

from mooring.cli import main
from mooring.testing import pod

FUNCTIONS = """
from mooring.extender import Extender

extender = Extender()

@extender.filter
def patient(pod, node):
    while "hang" in pod.labels:
        pass
    return node.name != "b" or "not b"
"""
PLUGIN = """
import mooring.framework as fw

class PreferArgs(fw.Args, frozen=True):
    node: str = "a"

class Prefer(fw.Plugin[PreferArgs], fw.Score):
    name = "Prefer"

    def score(self, state, pod, node):
        return 100 if node.name == self.args.node else 0
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: "my_extender:Prefer"}]
    pluginConfig:
      - name: Prefer
        args: {node: c}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_extender.py").write_text(FUNCTIONS + PLUGIN)
    (tmp_path / "parting.py").write_text(RAISES_PARTING)
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def port_of(running: Running) -> int:
    found = re.search(r"port=(\d+)", running.until("Serving an extender"))
    assert found is not None
    return int(found[1])


def ask(port: int, path: str, payload: Any) -> Any:
    body = json.dumps(payload).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", body, timeout=30) as answer:
        return json.loads(answer.read())


def test_serves_functions_and_ends_politely(folder: Path) -> None:
    words = (
        "extender",
        "my_extender:extender",
        "--no-cluster",
        "--port",
        "0",
        "--plugin-timeout",
        "1s",
    )
    with Running(*words, folder=folder) as running:
        port = port_of(running)
        answer = ask(port, "/filter", about(pod("web"), ["a", "b"]))
        assert (answer["NodeNames"], answer["FailedNodes"]) == (["a"], {"b": "not b"})
        # One that never returns is stopped, named, and forgotten.
        hangs = pod("web", labels={"hang": ""})
        told = ask(port, "/filter", about(hangs, ["a"]))["Error"]
        assert told == 'running "patient" filter plugin: took longer than its budget of 1s'
        assert ask(port, "/filter", about(pod("web"), ["a"]))["Error"] == ""
        assert running.stop(signal.SIGTERM) == 0


def test_serves_plugins_with_the_arguments_of_a_configuration(folder: Path) -> None:
    words = ("extender", "--config", "config.yaml", "--no-cluster", "--port", "0")
    with Running(*words, folder=folder) as running:
        port = port_of(running)
        points = ask(port, "/prioritize", about(pod("web"), ["a", "c"]))
        assert points == [{"Host": "a", "Score": 0}, {"Host": "c", "Score": 10}]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(port, "/filter", about(pod("web"), ["a"]))
        assert running.stop(signal.SIGINT) == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["my_extender:nothing"], "can't import my_extender:nothing: AttributeError"),
        (["parting:thing"], "can't import parting:thing: Parting: <Parting that can't be shown>"),
        (["--plugin", "my_extender:Nothing"], "--plugin my_extender:Nothing: can't import"),
        (["my_extender:FUNCTIONS"], "my_extender:FUNCTIONS"),
        ([], "there is nothing to serve"),
        (["--plugin", "my_extender:Prefer", "--serve-bind"], "binding pods needs a cluster"),
        (["--plugin", "my_extender:Prefer", "--client-names", "x"], "--client-names: needs"),
        (["--plugin", "my_extender:Prefer", "--tls-cert-file", "x"], "--tls-private-key-file"),
        (["--plugin", "my_extender:Prefer", "--bind-address", "x"], "--bind-address: 'x' does not"),
        (
            ["--plugin", "my_extender:Prefer", "--bind-address", "192.0.2.1"],
            "can't listen on 192.0.2.1",
        ),
    ],
)
def test_says_why_it_does_not_start(
    words: list[str],
    why: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (folder / "my_extender.py").write_text(FUNCTIONS + PLUGIN + "\nFUNCTIONS = 3\n")
    monkeypatch.delitem(sys.modules, "my_extender", raising=False)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    code = 2 if why.startswith(("--client-names", "--tls-private-key-file")) else 1
    assert main(["extender", "--no-cluster", *words]) == code
    assert why in capsys.readouterr().err
