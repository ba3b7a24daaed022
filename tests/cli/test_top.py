"""`mooring top` and `mooring queue`, of `mooring cluster up`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console
from tests.cli.process import Running

from mooring.cli.top import TopAnswer, rendered

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  containers: [{name: c, image: app, resources: {requests: {cpu: "1"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: big, namespace: default}
spec:
  containers: [{name: c, image: app, resources: {requests: {cpu: "100"}}}]
"""


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("top")
    file, pods = folder / "kubeconfig", folder / "pods.yaml"
    pods.write_text(PODS)
    words = ("--scheduler", "--nodes", "3", "--zones", "2", "--apply", str(pods))
    with Running("cluster", "up", *words, "--kubeconfig", str(file), forked=True) as cluster:
        cluster.until("big")
        yield file


def mooring(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mooring", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_top_shows_rates_queue_zones_and_decisions(kubeconfig: Path) -> None:
    done = mooring("top", "--once", "--kubeconfig", kubeconfig)
    assert (done.returncode, done.stderr) == (0, "")
    for text in ("3 nodes", "unschedulable 1", "NodeResourcesFit", "100 cpu", "zone-a", "web"):
        assert text in done.stdout
    found = json.loads(mooring("top", "-o", "json", "--kubeconfig", kubeconfig).stdout)
    assert (found["version"], found["nodes"], found["pods"]) == (1, 3, 1)
    assert found["refusedBy"] == [{"what": "NodeResourcesFit", "pods": 1}]
    assert {one["zone"] for one in found["zones"]} == {"zone-a", "zone-b"}
    assert {row["pod"] for row in found["newest"]} == {"web", "big"}
    # Few attempts are measured plugin by plugin.
    slow = {"plugin": "Slow", "point": "Filter", "calls": 3, "meanUs": 1234.5, "share": 0.75}
    answer = msgspec.convert({**found, "plugins": [slow]}, TopAnswer)
    console = Console(width=100)
    with console.capture() as shown:
        console.print(rendered(answer))
    assert re.search(r"75% +1,23[45] +Filter +Slow", shown.get())


def test_queue_shows_who_waits_and_why(kubeconfig: Path) -> None:
    done = mooring("queue", "--once", "--kubeconfig", kubeconfig)
    assert (done.returncode, done.stderr) == (0, "")
    assert "default/big" in done.stdout
    assert "0/3 nodes are" in done.stdout
    found = json.loads(mooring("queue", "-o", "json", "--kubeconfig", kubeconfig).stdout)
    assert [(one["name"], one["place"]) for one in found["pods"]] == [("big", "unschedulable")]
    none = mooring("queue", "--once", "--place", "gated", "--kubeconfig", kubeconfig)
    assert "no pod waits" in none.stdout


def test_a_caller_without_a_token_gets_nothing(kubeconfig: Path) -> None:
    text = re.sub("token: (.*)", "token: wrong", kubeconfig.read_text())
    other = kubeconfig.with_name("other")
    other.write_text(text)
    done = mooring("top", "--once", "--kubeconfig", other)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Unauthorized" in done.stderr
