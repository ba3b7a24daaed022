"""The five documents that mooring grew from: their files run as printed, unless they are wrong.

The texts lie beside the repository; without them there is nothing to read.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from mooring.cli import main
from mooring.testing import Simulation, node
from mooring.testing.sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ROOT.parent / "shared" / "seeds"
pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"there is no {SEEDS}")


def text_of(number: str) -> str:
    [file] = SEEDS.glob(f"{number}_*.txt")
    return file.read_text(encoding="utf-8")


def blocks(number: str, containing: str) -> list[str]:
    """The code blocks that have this text."""
    found = re.findall(r"^(?:```|~~~)\w*\n(.*?)^(?:```|~~~)$", text_of(number), re.M | re.S)
    return [block for block in found if containing in block]


def example(name: str, cls: str, monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "examples" / name))
    __import__(name)
    plugin: type[Any] = getattr(sys.modules[name], cls)
    return plugin


def asks_for(command: str) -> tuple[str, str]:
    """The name and the schedulerName of `kubectl run NAME --overrides='…'`."""
    found = re.search(r"kubectl run (\S+) .*--overrides='(.*?)'", command)
    assert found is not None
    return found[1], json.loads(found[2])["spec"]["schedulerName"]


# --- 000: a second scheduler, a controller, an extender ------------------------------------------


def test_000_the_manifests_of_a_second_scheduler(tmp_path: Path) -> None:
    manifests = blocks("000", "kind: KubeSchedulerConfiguration")
    commands = [asks_for(block) for block in blocks("000", "--overrides=")]
    assert len(manifests) == 2
    for manifest in manifests:
        file = tmp_path / "deploy-manifests.yaml"
        file.write_text(manifest)
        assert main(["config", "validate", str(file)]) == 0
        written = str(tmp_path / "written.yaml")
        assert main(["run", "--config", str(file), "--write-config-to", written]) == 0
    name, scheduler = commands[0]
    with Sandbox() as cluster:
        cluster.add_nodes(2, cpu="4")
        for manifest in manifests:
            cluster.apply(manifest)  # ServiceAccounts, roles, Deployments: all is accepted
        cluster.start_scheduler(config=manifests[0])
        pod = {"metadata": {"name": name}, "spec": {"schedulerName": scheduler}}
        pod["spec"]["containers"] = [{"name": name, "image": "nginx"}]  # type: ignore[assignment]
        cluster.apply({"apiVersion": "v1", "kind": "Pod", **pod})
        cluster.wait_until_bound(name)
        assert cluster.node_of(name)


# --- 001: v1alpha1, a Policy, an extender --------------------------------------------------------


def test_001_the_old_configuration_with_its_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [config] = blocks("001", "v1alpha1")
    [policy] = blocks("001", "kind: Policy")
    (tmp_path / "scheduler-config.yaml").write_text(config)
    (tmp_path / "scheduler-policy.yaml").write_text(policy)
    file = str(tmp_path / "scheduler-config.yaml")
    assert main(["config", "validate", file]) == 0
    assert "read " in capsys.readouterr().err  # the Policy was found beside the file
    assert main(["run", "--config", file, "--write-config-to", str(tmp_path / "new.yaml")]) == 0
    written = yaml.safe_load((tmp_path / "new.yaml").read_text())
    assert written["extenders"][0]["urlPrefix"] == "http://127.0.0.1:8888/"
    assert written["extenders"][0]["filterVerb"] == "filter"
    [static] = blocks("001", "name: kube-scheduler\n  namespace")
    with Sandbox() as cluster:
        cluster.apply(static)


# --- 002: sample-plugin; its text is one line, and its arguments are not those of its struct ------


def test_002_the_plugin_with_the_names_of_its_own_struct(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of("002")
    example("sample_plugin", "SamplePlugin", monkeypatch)
    for word in ('favorColor: "#326CE5"', "favorNumber: 7", 'thanksTo: "Kubernetes"'):
        assert word in text  # as printed, without line breaks
    file = tmp_path / "scheduler-config.yaml"
    printed = (ROOT / "tests/config/data/seeds/002-configmap.yaml").read_text()
    assert "resourceLock: endpointsleases" in printed
    file.write_text(printed)
    plugin = ["--plugin", "sample_plugin:SamplePlugin"]
    assert main(["config", "validate", str(file), *plugin]) == 1
    assert 'did you mean "favoriteColor"?' in capsys.readouterr().err
    for word in ("Color", "Number"):
        printed = printed.replace(f"favor{word}", f"favorite{word}")
    file.write_text(printed)
    assert main(["config", "validate", str(file), *plugin]) == 0
    assert "leases" in capsys.readouterr().err  # a note on the old lock


# --- 003: namescore ------------------------------------------------------------------------------


def test_003_the_pod_goes_where_the_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [pod] = blocks("003", "kind: Pod")
    example("namescore", "NameScore", monkeypatch)
    config = (ROOT / "examples/namescore/config.yaml").read_text()
    with Simulation(config=config.replace("/v1\n", "/v1beta3\n")) as sim:  # the version of the text
        sim.apply(*(node(name) for name in ("k8s-master", "k8s-node01", "k8s-node02")))
        (tmp_path / "pod.yaml").write_text(pod)
        sim.schedule(tmp_path / "pod.yaml")
        assert sim.node_of("busybox-test-scheduler") == "k8s-node02"
        assert "k8s-node02" in text_of("003")


# --- 004: tonodename; comments are glued to what is before them -----------------------------------


def test_004_the_configuration_once_its_comments_are_comments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    to_node_name = example("tonodename_scoring", "ToNodeName", monkeypatch)
    [manifest] = blocks("004", 'tonodename-scoring-plugin"#')
    printed = manifest.partition("---\napiVersion: apps/v1")[0]  # the rest is in the next block
    file = tmp_path / "scheduler.yaml"
    file.write_text(printed)
    plugin = ["--plugin", "tonodename_scoring:ToNodeName"]
    assert main(["config", "validate", str(file), *plugin]) == 1
    # YAML reads `score:#…` as a text that goes on in the next line.
    line = printed[: printed.index("score:#")].count("\n") + 2
    assert f"{file}:{line}: mapping values are not allowed here" in capsys.readouterr().err
    mended = re.sub(r"(\S)#", r"\1 #", printed)
    file.write_text(mended)
    assert main(["config", "validate", str(file), *plugin]) == 0
    assert "sample-scheduler" in capsys.readouterr().out
    [deployment] = blocks("004", "name: test-scheduler")
    with Sandbox() as cluster:
        cluster.apply(*(node(name) for name in ("node", "piworknode001", "piworknode002")))
        cluster.start_scheduler(plugins=[to_node_name], config=mended)
        cluster.apply(deployment)
        cluster.wait_until_bound()
        placed = list(cluster.placements("app=test-scheduler").values())
        # With weight 1 the other plugins have a say; on the nodes of the text it was all ten.
        assert len(placed) == 10
        assert Counter(placed).most_common(1)[0][0] == "piworknode001"
