"""`mooring run` as a process: no text of a plugin's ends it, and what it says is cut."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.process import Running

from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import load_kubeconfig
from mooring.client.transport import Request

PLUGIN = """
import mooring.framework as fw


class Parting(Exception):
    def __init__(self, last):
        self.last = last

    def __str__(self):
        raise self.last

    __repr__ = __str__


class Meta(type):
    def __getattribute__(cls, name):
        if name in ("__name__", "__qualname__", "__module__"):
            raise SystemExit(9)
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=Meta):
    pass


ERRORS = {
    "exit-in-text": Parting(SystemExit(9)),
    "interrupt-in-text": Parting(KeyboardInterrupt()),
    "interrupt": KeyboardInterrupt(),
    "nameless": Nameless("boom"),
    "huge": ValueError("x" * 20_000_000),
}


class Misbehaving(fw.PreFilter, fw.PreBind):
    name = "Misbehaving"

    def pre_filter(self, state, pod, nodes):
        if pod.name == "huge-reason":
            return fw.Status.unschedulable("x" * 20_000_000)
        if pod.name in ERRORS:
            raise ERRORS[pod.name]
        return fw.OK

    async def pre_bind(self, state, pod, node_name):
        if pod.name.removesuffix("-later") in ERRORS:
            raise ERRORS[pod.name.removesuffix("-later")]
        return fw.OK
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: "misbehaving:Misbehaving"}]
"""
TEXTS = {
    "exit-in-text": "Parting: <Parting that can't be shown>",
    "interrupt-in-text": "Parting: <Parting that can't be shown>",
    "interrupt": "KeyboardInterrupt: ",
    "nameless": "Nameless: boom",
    "huge": "ValueError: xxx",
    "huge-reason": "0/2 nodes are available: xxx",
}
ALL = TEXTS | {f"{name}-later": TEXTS[name] for name in TEXTS if name != "huge-reason"}
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers: [{{name: c, image: i}}]
---
"""
_PATIENCE = 60.0  # seconds; a machine may be busy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "misbehaving.py").write_text(PLUGIN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "pods.yaml").write_text("".join(POD.format(name=name) for name in [*ALL, "good"]))
    return tmp_path


def listed(folder: Path, path: str) -> list[Any]:
    async def asking() -> Any:
        transport = HttpTransport(load_kubeconfig(str(folder / "kubeconfig")), user_agent="test")
        try:
            answer = await transport.send(Request(method="GET", path=path))
            return json.loads(answer.body)["items"]
        finally:
            await transport.close()

    found: list[Any] = asyncio.run(asking())
    return found


def conditions(folder: Path) -> dict[str, str]:
    """What pods are told in their PodScheduled condition; of those that have a node, the node."""
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName") or condition["message"]
        for pod in listed(folder, "/api/v1/namespaces/default/pods")
        for condition in pod["status"].get("conditions", ())
        if condition["type"] == "PodScheduled"
    }


def notes(folder: Path) -> dict[str, str]:
    """The notes of FailedScheduling Events, by pod."""
    return {
        event["involvedObject"]["name"]: event["message"]
        for event in listed(folder, "/api/v1/namespaces/default/events")
        if event["reason"] == "FailedScheduling"
    }


def check_that_all_pods_are_told(folder: Path, running: Running) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not conditions(folder).keys() >= {*ALL, "good"} or not notes(folder).keys() >= {*ALL}:
        assert time.monotonic() < deadline, (conditions(folder), notes(folder))
        time.sleep(0.2)
    told, noted = conditions(folder), notes(folder)
    assert told["good"].startswith("node-")
    for name, text in ALL.items():
        assert text in told[name]
        assert len(told[name]) <= 4096
        assert text in noted[name]
    assert running.stop() == 0
    assert len(running.all()) < 200_000


def test_run_survives_every_text_of_a_plugin(folder: Path) -> None:
    up = ("cluster", "up", "--nodes", "2", "--kubeconfig", "kubeconfig", "--apply", "pods.yaml")
    with Running(*up, folder=folder, forked=True) as cluster:
        cluster.until("Ctrl-C ends it.")
        words = ("--kubeconfig", "kubeconfig", "--leader-elect=false", "--secure-port", "0")
        with Running(
            "run", "--config", "config.yaml", *words, folder=folder, forked=True
        ) as running:
            running.until("Handlers synced")
            check_that_all_pods_are_told(folder, running)


def test_a_cluster_with_a_scheduler_survives_every_text_of_a_plugin(folder: Path) -> None:
    up = ("cluster", "up", "--nodes", "2", "--kubeconfig", "kubeconfig", "--apply", "pods.yaml")
    with Running(
        *up, "--scheduler", "--config", "config.yaml", folder=folder, forked=True
    ) as cluster:
        cluster.until("Ctrl-C ends it.")
        check_that_all_pods_are_told(folder, cluster)
