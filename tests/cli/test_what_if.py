"""What the tables of `mooring what-if`, `capacity` and `compare` say of unusual runs."""

from __future__ import annotations

import json

import pytest
from tests.cli.test_imagine import NODE, POD, Folder, drained, folder
from tests.simulator.clusters import snapshot, strategy

from mooring.cli import main
from mooring.testing import node, pod

__all__ = ["folder"]  # a fixture


def test_names_the_pods_that_nothing_would_make_again(folder: Folder) -> None:
    folder.write("x.snap.gz", drained())
    said = folder.run("what-if", "x.snap.gz", "--drain", "n3", "--reschedule")
    assert said.startswith("drain n3; all pods placed anew\n")
    text = "no controller would make these again, although they are counted here: default/d\n"
    assert text in said


def test_names_the_pods_that_are_evicted_for_others(folder: Folder) -> None:
    folder.write("x.snap.gz", snapshot(node("n", cpu=2), pod("old", cpu=2, on="n")))
    folder.write("vip.yaml", POD.replace("150m", '"2"').replace("spec:", "spec:\n  priority: 9", 1))
    said = folder.run("what-if", "x.snap.gz", "--apply", "vip.yaml")
    assert "preemption evicts 1 pod: default/old\n" in said


def test_says_why_a_pod_waits_that_no_node_was_asked_about(folder: Folder) -> None:
    folder.write("x.snap.gz", snapshot(node("n", cpu=2)))
    volume = "  volumes: [{name: v, persistentVolumeClaim: {claimName: absent}}]\n"
    folder.write("small.yaml", POD + volume)
    said = folder.run("what-if", "x.snap.gz", "--apply", "small.yaml")
    assert 'persistentvolumeclaim "absent" not found' in " ".join(said.split())


def test_a_sweep_tells_a_note_once(folder: Folder) -> None:
    extender = "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n"
    folder.write("x.snap.gz", drained())
    folder.write("config.yaml", strategy("MostAllocated") + extender)
    words = ("--config", "config.yaml", "--seed", "1", "2", "--jobs", "1")
    said = folder.run("what-if", "x.snap.gz", "--cordon", "n1", *words)
    assert said.count("note: extenders are not called: http://127.0.0.1:1") == 1


def test_answers_for_several_configurations_are_divided(folder: Folder) -> None:
    folder.write("x.snap.gz", drained())
    for kind in ("Least", "Most"):
        folder.write(f"{kind.lower()}.yaml", strategy(f"{kind}Allocated"))
    said = folder.run("compare", "x.snap.gz", "least.yaml", "most.yaml", "least.yaml")
    assert said.count("─" * 80) == 1


def test_names_the_kinds_that_it_does_not_use(
    folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.write("x.snap.gz", drained())
    words = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}}
    folder.write("words.json", json.dumps(words))
    assert main(["what-if", "x.snap.gz", "--apply", "words.json"]) == 0
    assert capsys.readouterr().err == "words.json: not used: ConfigMap\n"


def test_needs_one_node_one_configuration_and_a_pod(folder: Folder) -> None:
    folder.write("x.snap.gz", drained())
    folder.write("two.yaml", f"{NODE}\n---{NODE.replace('big', 'other')}")
    folder.write("small.yaml", POD)
    assert folder.problem("what-if", "x.snap.gz", "--add-nodes", "1", "--like", "two.yaml") == (
        "two.yaml: expected one Node, found 2"
    )
    assert folder.problem("capacity", "x.snap.gz", "two.yaml") == (
        "two.yaml: expected a Pod, or a workload with a template"
    )
    configs = ("--config", "a.yaml", "--config", "b.yaml")
    assert folder.problem("capacity", "x.snap.gz", "small.yaml", *configs, code=2) == (
        "--config: expected one configuration, got several"
    )
