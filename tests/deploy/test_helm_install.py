"""`helm` itself against `mooring cluster up`: charts with custom resources, and our own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.process import Running
from tests.controlplane.build import binaries
from tests.deploy.rendering import CHART, helm_binary

CHARTS = Path(__file__).parent / "charts"

pytestmark = pytest.mark.usefixtures("helm_program", "real_programs")


class Shell:
    """helm and kubectl with the kubeconfig of a cluster."""

    def __init__(self, kubeconfig: Path) -> None:
        home = kubeconfig.parent / "helm"
        self._env = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        self._env |= {f"HELM_{kind}_HOME": str(home) for kind in ("CACHE", "CONFIG", "DATA")}

    def helm(self, *words: str) -> str:
        return self._run(str(helm_binary()), *words, "--namespace", "default")

    def get(self, *words: str) -> Any:
        """Objects as kubectl lists them; none if there is none."""
        command = [str(binaries() / "kubectl"), "get", *words, "--output=json"]
        return json.loads(self._run(*command, "--ignore-not-found") or "{}")

    def releases(self) -> dict[str, tuple[str, str]]:
        """Revision and status by name."""
        found = json.loads(self.helm("list", "--all", "--output=json"))
        return {one["name"]: (one["revision"], one["status"]) for one in found}

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self._env, capture_output=True, text=True, check=False, timeout=90
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    path = tmp_path_factory.mktemp("helm") / "kubeconfig"
    words = ["--nodes", "2", "--scheduler", "--job-duration", "1s", "--kubeconfig", str(path)]
    with Running("cluster", "up", *words, forked=True) as running:
        running.until("Ctrl-C ends it")
        yield Shell(path)


def test_chart_with_a_definition_in_its_own_folder(shell: Shell) -> None:
    chart = str(CHARTS / "crds-folder")
    shell.helm("install", "g", chart, "--wait")
    assert shell.get("gadget", "g")["spec"] == {"color": "red", "size": 1}
    assert shell.get("deployment", "g")["status"]["readyReplicas"] == 1
    shell.helm("upgrade", "g", chart, "--set", "color=blue,replicas=3", "--wait")
    assert shell.get("gadget", "g")["spec"] == {"color": "blue", "size": 1}
    assert shell.get("deployment", "g")["status"]["readyReplicas"] == 3
    shell.helm("rollback", "g", "1", "--wait")
    assert shell.get("gadget", "g")["spec"]["color"] == "red"
    assert shell.get("configmap", "g")["data"] == {"color": "red"}
    assert shell.get("deployment", "g")["spec"]["replicas"] == 1
    assert shell.releases()["g"] == ("3", "deployed")
    history = json.loads(shell.helm("history", "g", "--output=json"))
    assert [one["status"] for one in history] == ["superseded", "superseded", "deployed"]
    shell.helm("uninstall", "g", "--wait")
    assert "g" not in shell.releases()
    assert shell.get("gadgets") == {}
    assert shell.get("crd", "gadgets.example.com") != {}  # Helm never deletes these


def test_invalid_value_for_a_custom_resource_fails_the_release(shell: Shell) -> None:
    chart = str(CHARTS / "crds-folder")
    with pytest.raises(AssertionError, match=r'spec.color: Unsupported value: "green"'):
        shell.helm("install", "bad", chart, "--set", "color=green")
    assert shell.releases()["bad"] == ("1", "failed")
    shell.helm("uninstall", "bad")


def test_chart_with_a_definition_among_its_templates_and_hooks(shell: Shell) -> None:
    chart = str(CHARTS / "crd-template")
    shell.helm("install", "z", chart, "--wait")
    assert shell.get("gizmo", "z")["spec"] == {"shape": "round"}
    assert shell.get("statefulset", "z")["status"]["readyReplicas"] == 1
    assert shell.get("job", "z-prepare") == {}  # it succeeded
    shell.helm("upgrade", "z", chart, "--set", "shape=square", "--wait")
    assert shell.get("gizmo", "z")["spec"] == {"shape": "square"}
    assert "Succeeded" in shell.helm("test", "z")
    shell.helm("uninstall", "z", "--wait")
    assert shell.get("crd", "gizmos.example.com") == {}


def test_own_chart(shell: Shell) -> None:
    profiles = "config.profiles[0].schedulerName=packed,config.profiles[1].schedulerName=plain"
    notes = shell.helm("install", "my-scheduler", str(CHART), "--wait", "--set", profiles)
    for name in ("packed", "plain"):
        assert f"Pods with `schedulerName: {name}` are scheduled by my-scheduler." in notes
    assert shell.get("deployment", "my-scheduler")["status"]["readyReplicas"] == 2
    assert shell.get("poddisruptionbudget", "my-scheduler")["status"]["currentHealthy"] == 2
    shell.helm("uninstall", "my-scheduler", "--wait")
    assert shell.get("clusterrole", "my-scheduler") == {}
