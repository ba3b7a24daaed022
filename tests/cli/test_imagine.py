"""`mooring snapshot`, `what-if`, `capacity` and `compare` on files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulator.clusters import budget, owned, snapshot, strategy

from mooring.cli import main, workers
from mooring.lens.reading import read_snapshot
from mooring.lens.snapshot import MissingKind, Snapshot
from mooring.lens.writing import write_snapshot
from mooring.testing import node, pod

POD = """
apiVersion: v1
kind: Pod
metadata: {name: small}
spec:
  containers:
    - {name: c, image: x, resources: {requests: {cpu: 150m, memory: 100Mi}}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: c, image: x, resources: {limits: {cpu: 1}}}
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: big}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "110"}}
"""


class Folder:
    """A folder in which the commands run."""

    def __init__(self, path: Path, out: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self._out = out

    def write(self, name: str, content: str | Snapshot) -> str:
        file = self.path / name
        if isinstance(content, Snapshot):
            write_snapshot(content, file)
        else:
            file.write_text(content)
        return name

    def run(self, *words: str) -> str:
        """What a command prints; it must succeed."""
        code = main(words)
        said = self._out.readouterr()
        assert code == 0, said.err
        return said.out

    def data(self, *words: str) -> Any:
        return json.loads(self.run(*words, "-o", "json"))

    def problem(self, *words: str, code: int = 1) -> str:
        """The one line of a command that fails; with code 2, its command line is malformed."""
        assert main(words) == code
        said = self._out.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        return line


@pytest.fixture
def folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    return Folder(tmp_path, capsys)


def drained() -> Snapshot:
    return snapshot(
        *(node(name) for name in ("n1", "n2", "n3")),
        owned(pod("a", cpu=2, on="n1", labels={"app": "web"}), "ReplicaSet", "web-1"),
        owned(pod("b", cpu=2, on="n1", labels={"app": "web"}), "ReplicaSet", "web-1"),
        pod("c", cpu=3, on="n2"),
        pod("d", cpu=2, on="n3"),
        budget("keep", "web", 0),
    )


# --- snapshot ------------------------------------------------------------------------------------


def test_a_dump_becomes_a_snapshot(folder: Folder) -> None:
    dump = {"kind": "List", "apiVersion": "v1", "items": [yaml.safe_load(NODE)]}
    folder.write("dump.yaml", yaml.safe_dump(dump))
    said = folder.run("snapshot", "--from", "dump.yaml", "-o", "x.snap.gz")
    assert said.startswith("wrote x.snap.gz: 1 nodes, 0 pods, 0 other objects; ")
    found = read_snapshot(folder.path / "x.snap.gz")
    assert found.cluster.nodes[0].metadata.name == "big"
    assert found.scheduler.startswith("mooring ")


def test_a_redacted_snapshot_has_none_of_the_names(folder: Folder) -> None:
    folder.write("x.snap.gz", snapshot(node("secret-n"), pod("secret-p", on="secret-n")))
    said = folder.run("snapshot", "--from", "x.snap.gz", "--redact", "all", "-o", "r.snap.gz")
    assert said.rstrip().endswith("redacted: names, labels, images")
    assert b"secret" not in gzip.decompress((folder.path / "r.snap.gz").read_bytes())
    folder.write("key", "k" * 32)
    names = []
    for file in ("1.snap.gz", "2.snap.gz"):
        words = ("--redact", "names", "--key-file", "key", "-o", file)
        folder.run("snapshot", "--from", "x.snap.gz", *words)
        names.append(read_snapshot(folder.path / file).cluster.nodes[0].metadata.name)
    assert names[0] == names[1] != "secret-n"


def test_exports_for_other_tools_are_read_back(folder: Folder) -> None:
    folder.write("x.snap.gz", drained())
    for name in ("sim.json", "kwok.yaml"):
        folder.run("snapshot", "--from", "x.snap.gz", "-o", name)
        found = read_snapshot(folder.path / name)
        assert [one.metadata.name for one in found.cluster.nodes] == ["n1", "n2", "n3"]
        assert {one.key: one.spec.node_name for one in found.cluster.pods}["default/a"] == "n1"
    export = json.loads((folder.path / "sim.json").read_text())
    assert set(export) == {
        "pods",
        "nodes",
        "pvs",
        "pvcs",
        "storageClasses",
        "priorityClasses",
        "namespaces",
        "schedulerConfig",
    }
    assert "uid" not in export["pods"][0]["metadata"]
    assert export["nodes"][0]["status"]["capacity"]["cpu"] == "4"
    for document in yaml.safe_load_all((folder.path / "kwok.yaml").read_text()):
        assert document["apiVersion"]
        assert document["kind"]


# --- what-if -------------------------------------------------------------------------------------


def test_what_if_tells_moves_shortages_and_budgets(folder: Folder) -> None:
    folder.write("x.snap.gz", drained())
    said = folder.run("what-if", "x.snap.gz", "--drain", "n1")
    assert "pods: 1 moved, 1 newly pending" in said
    assert "default/a   n1     n3" in said
    assert "short by 1 cpu on n2, 2 cpu on n3" in said
    assert "budget default/keep allows 0 evictions, not 2" in said
    assert max(map(len, said.splitlines())) <= 80
    answer = folder.data("what-if", "x.snap.gz", "--drain", "n1")
    assert (answer["format"], answer["version"]) == ("mooring-what-if", 1)
    assert answer["moved"] == [{"pod": "default/a", "from": "n1", "to": "n3", "waits": False}]
    assert answer["pending"][0]["pod"] == "default/b"
    assert answer["budgets"][0]["budget"] == "default/keep"
    assert (
        yaml.safe_load(folder.run("what-if", "x.snap.gz", "--drain", "n1", "-o", "yaml")) == answer
    )


def test_what_if_takes_patterns_manifests_and_scalings(folder: Folder) -> None:
    folder.write("x.snap.gz", drained())
    folder.write("web.yaml", DEPLOYMENT)
    folder.write("big.yaml", NODE)
    words = (
        "--apply",
        "web.yaml",
        "--scale",
        "rs/web-1=1",
        "--add-nodes",
        "1",
        "--like",
        "big.yaml",
    )
    answer = folder.data("what-if", "x.snap.gz", *words, "--cordon", "n*")
    assert {one["to"] for one in answer["placed"]} == {"big-new-1"}
    assert [one["pod"] for one in answer["placed"]] == [f"default/web-{i}" for i in range(3)]
    assert answer["gone"] == ["default/a"]
    assert answer["changes"] == [
        "cordon n1, n2, n3",
        "add 1 node like big.yaml",
        "scale rs/web-1=1",
        "apply web.yaml",
    ]


def test_a_sweep_has_a_line_for_each_run(folder: Folder) -> None:
    folder.write("x.snap.gz", snapshot(node("n1", cpu=2), *(pod(f"p{i}", cpu=2) for i in range(6))))
    folder.write("big.yaml", NODE)
    words = ("what-if", "x.snap.gz", "--add-nodes", "0..3", "--like", "big.yaml")
    answers = folder.data(*words, "--jobs", "1")
    assert [one["after"]["waiting"] for one in answers] == [5, 3, 1, 0]
    assert folder.data(*words, "--jobs", "2") == answers
    said = folder.run(*words, "--jobs", "1")
    assert [line.split()[-5] for line in said.splitlines() if "add " in line] == list("5310")
    assert len(folder.data(*words, "--seed", "1", "2", "--jobs", "1")) == 8
    assert len(folder.data(*words, "--also", "x.snap.gz", "--jobs", "1")) == 8


# --- capacity and compare ------------------------------------------------------------------------


def test_capacity_of_manifests(folder: Folder) -> None:
    nodes = [node(f"n{i}", cpu=2, memory="4Gi") for i in range(4)]
    missing = (MissingKind("poddisruptionbudgets.policy", "forbidden"),)
    folder.write("x.snap.gz", snapshot(*nodes, missing=missing))
    folder.write("small.yaml", POD)
    said = folder.run("capacity", "x.snap.gz", "small.yaml")
    assert said.startswith("52 more pods fit on 4 nodes\n")
    assert "could not be read: poddisruptionbudgets.policy" in said
    answer = folder.data("capacity", "x.snap.gz", "small.yaml")
    assert (answer["total"], answer["bottlenecks"]) == (52, {"cpu": 4})
    assert answer["nodes"] == {f"n{i}": 13 for i in range(4)}
    folder.write("web.yaml", DEPLOYMENT)
    mixed = folder.data("capacity", "x.snap.gz", "small.yaml", "web.yaml", "--mix", "3:1")
    # Four rounds of 450m and 1 cpu; of the fifth, what keeps another web off each node fits.
    assert [one["count"] for one in mixed["pods"]] == [15, 4]
    limited = folder.data("capacity", "x.snap.gz", "small.yaml", "--max", "5", "--no-gains")
    assert (limited["total"], limited["limited"], limited["gains"]) == (5, True, [])


def test_compare_names_pods_and_plugin(folder: Folder) -> None:
    nodes = [node(name, cpu=4, memory="8Gi") for name in "ab"]
    pods = [pod(f"p{i}", cpu=1, memory="1Gi") for i in range(4)]
    folder.write("x.snap.gz", snapshot(*nodes, *pods))
    for kind in ("Least", "Most"):
        folder.write(f"{kind.lower()}.yaml", strategy(f"{kind}Allocated"))
    said = folder.run("compare", "x.snap.gz", "least.yaml", "most.yaml")
    assert said.startswith("least.yaml and most.yaml: 2 of 4 pods placed under both differ\n")
    assert max(map(len, said.splitlines())) <= 80
    answer = folder.data("compare", "x.snap.gz", "least.yaml", "most.yaml")
    assert {one["pod"]: one["plugin"] for one in answer["differences"]} == {
        "default/p1": "NodeResourcesFit",
        "default/p3": "NodeResourcesFit",
    }
    several = folder.data("compare", "x.snap.gz", "least.yaml", "most.yaml", "least.yaml")
    assert [len(one["differences"]) for one in several] == [2, 0]
    alone = folder.data("compare", "x.snap.gz", "most.yaml")
    assert (alone["firstConfig"], alone["secondConfig"]) == ("as it is", "most.yaml")


def test_a_plugin_of_ones_own_takes_part_also_in_processes(folder: Folder) -> None:
    folder.write(
        "mine.py",
        "import mooring.framework as fw\n\n\n"
        "class OnlyB(fw.Filter):\n"
        '    name = "OnlyB"\n'
        '    NO = fw.Status.unschedulable("not b")\n\n'
        "    def filter(self, state, pod, node):\n"
        '        return fw.OK if node.name == "b" else self.NO\n',
    )
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "OnlyB"}]}},
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    folder.write("mine.yaml", yaml.safe_dump(config))
    folder.write("x.snap.gz", snapshot(node("a"), node("b"), pod("p", cpu=1), pod("q", cpu=1)))
    words = ("compare", "x.snap.gz", "mine.yaml", "--plugin", "mine:OnlyB")
    for jobs in ("1", "2"):
        answer = folder.data(*words, "--jobs", jobs)
        assert answer["byPlugin"] == {"OnlyB": 1}
        assert answer["differences"][0]["why"] == "a was refused: not b"


# --- mistakes ------------------------------------------------------------------------------------


def test_mistakes_are_one_line(folder: Folder) -> None:
    folder.write("x.snap.gz", drained())
    folder.write("small.yaml", POD)
    whole = (folder.path / "x.snap.gz").read_bytes()
    (folder.path / "cut.snap.gz").write_bytes(whole[:-10])
    folder.write("foreign.txt", "hello")
    lines = gzip.decompress(whole)
    (folder.path / "new.snap").write_bytes(lines.replace(b'"version":1', b'"version":9', 1))
    problem = folder.problem
    assert problem("capacity", "none.snap.gz", "small.yaml") == (
        "none.snap.gz: no such file or directory"
    )
    assert problem("what-if", "cut.snap.gz").startswith("cut.snap.gz: truncated: ")
    assert problem("what-if", "foreign.txt").startswith("foreign.txt: expected an object")
    assert problem("what-if", "new.snap") == (
        "new.snap: a snapshot of version 9; this mooring reads version 1"
    )
    assert problem("snapshot", "-o", "y.snap.gz").endswith("give --kubeconfig")
    assert problem("what-if", "x.snap.gz", "--drain", "n9") == "--drain: there is no node n9"
    assert problem("what-if", "x.snap.gz", "--add-nodes", "some", code=2) == (
        "--add-nodes: expected a number, or two such as 0..5, got 'some'"
    )
    assert problem("what-if", "x.snap.gz", "--add-nodes", "1", "--like", "n9") == (
        "--like: there is no node and no file n9"
    )
    assert problem("capacity", "x.snap.gz", "x.snap.gz").startswith("x.snap.gz: ")
    assert problem("capacity", "x.snap.gz", "small.yaml", "--mix", "1:2", code=2) == (
        "--mix: expected 1 numbers such as 1, one for each pod, got '1:2'"
    )
    assert problem("compare", "x.snap.gz", "none.yaml").startswith("none.yaml: ")
    redact = ("snapshot", "--from", "x.snap.gz", "--redact", "secrets", "-o", "y")
    assert problem(*redact, code=2) == (
        "--redact: expected names, labels, images or all, got 'secrets'"
    )
    assert problem("snapshot", "--from", "x.snap.gz", "-o", "no/where.snap.gz") == (
        "no/where.snap.gz: No such file or directory"
    )


def test_a_dask_scheduler_that_is_not_there_is_one_line(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    folder.write("x.snap.gz", drained())
    said = folder.problem("what-if", "x.snap.gz", "--dask", "tcp://127.0.0.1:1")
    assert said.startswith("--dask: can't reach tcp://127.0.0.1:1: ")


def test_evaluates_the_waiting_pods_of_a_snapshot(folder: Folder) -> None:
    given = snapshot(node("n", cpu=2), pod("fits", cpu=1), pod("big", cpu=64), pod("on", on="n"))
    folder.write("x.snap.gz", given)
    folder.write("dump.json", json.dumps({"kind": "List", "items": [yaml.safe_load(POD)]}))
    lines = [json.loads(line) for line in folder.run("evaluate", "x.snap.gz").splitlines()]
    assert [(one["id"], one["outcome"]) for one in lines] == [
        ("default/fits", "Scheduled"),
        ("default/big", "Unschedulable"),
    ]
    (alone,) = map(json.loads, folder.run("evaluate", "dump.json").splitlines())
    assert alone["outcome"] == "NoNodes"
