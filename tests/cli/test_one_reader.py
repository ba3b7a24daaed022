"""Every command reads a configuration as `mooring config validate` does."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from tests.cli.process import Running

from mooring.cli import main

MANIFEST = Path(__file__).parents[1] / "config" / "data" / "seeds" / "000-beside.yaml"
BROKEN = MANIFEST.read_text().replace("leaderElect:", "leaderElct:")
CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: a}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec: {schedulerName: my-scheduler, containers: [{name: c, image: nginx}]}
"""
COMMANDS = {
    "validate": "config validate {config}",
    "show": "config show {config}",
    "convert": "config convert {config}",
    "run": "run --config {config} --write-config-to {folder}/written.yaml",
    "manifests": "manifests --name my-scheduler --config {config}",
    "evaluate": "evaluate --config {config} {folder}/cluster.yaml",
    "explain": "explain web --config {config} --from {folder}/cluster.yaml",
    "what-if": "what-if {folder}/cluster.yaml --config {config} --add-nodes 1 --like a",
    "capacity": "capacity {folder}/cluster.yaml {folder}/pod.yaml --config {config}",
    "compare": "compare {folder}/cluster.yaml {config}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "pod.yaml").write_text(CLUSTER.partition("---\n")[2])
    (tmp_path / "plain.py").write_text(
        "import mooring.framework as fw\n\nclass Plain(fw.Score):\n    name = 'Plain'\n"
        "    def score(self, state, pod, node):\n        return 1\n"
    )
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_reads_a_manifest_with_the_configuration_in_a_config_map(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = COMMANDS[command].format(config=MANIFEST, folder=folder).split()
    code = main(words)
    assert code == 0, capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_names_file_line_and_path_of_what_is_wrong(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = folder / "broken.yaml"
    config.write_text(BROKEN)
    assert main(COMMANDS[command].format(config=config, folder=folder).split()) == 1
    line = BROKEN[: BROKEN.index("leaderElct")].count("\n") + 1
    expected = f"{config}:{line}: leaderElection.leaderElct: unknown field; expected one of: "
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("command", ["validate", "run", "manifests", "evaluate", "explain"])
def test_reads_standard_input(
    command: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(MANIFEST.read_text()))
    words = COMMANDS[command].format(config="-", folder=folder).split()
    code = main(words)
    assert code == 0, capsys.readouterr().err


def test_scenarios_and_configuration_cannot_both_be_standard_input(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["evaluate", "--config", "-"]) == 2
    assert "standard input has the scenarios already" in capsys.readouterr().err


def test_a_cluster_and_an_extender_start_with_it(folder: Path) -> None:
    up = ("cluster", "up", "--nodes", "1", "--scheduler", "--config", str(MANIFEST))
    with Running(*up, folder=folder) as cluster:
        cluster.until("scheduler:  my-scheduler")
    serve = ("extender", "plain:Plain", "--no-cluster", "--port", "0", "--config", str(MANIFEST))
    with Running(*serve, folder=folder) as extender:
        extender.until("Serving an extender")
