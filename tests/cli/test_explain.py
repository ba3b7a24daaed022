from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.stub_scheduler import Answer, stub_scheduler
from tests.lens.clusters import cluster_of

from mooring.api import codec
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cli import explain, main
from mooring.config.source import dump_yaml
from mooring.errors import ConfigError
from mooring.lens.explainer import find_pod
from mooring.lens.snapshot import ClusterState, Snapshot
from mooring.testing import node, pod


def written(folder: Path, *objects: Node | Pod) -> str:
    """A dump as kubectl writes it."""
    items = []
    for one in objects:
        kind = "Node" if isinstance(one, Node) else "Pod"
        items.append({"apiVersion": "v1", "kind": kind, **codec.to_builtins(one.api)})
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def config(folder: Path, **fields: Any) -> str:
    file = folder / "config.yaml"
    header = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    file.write_text(dump_yaml({**header, **fields}))
    return str(file)


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    return written(
        tmp_path,
        node("a", taints=["team=ml:NoSchedule"]),
        node("b", cpu=2),
        pod("busy", cpu="1500m", on="b"),
        pod("big", namespace="shop", cpu=2),
        pod("small", namespace="shop", cpu="500m"),
        pod("busy", namespace="shop", cpu="10m"),
    )


def test_a_pod_that_fits_nowhere_has_exit_code_3(
    cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "shop/big", "--from", cluster]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "shop/big is pending: no node of 2 [waits for room]"
    assert any(line.split()[:2] == ["1", "TaintToleration"] for line in lines)
    fixes = [" ".join(line.split()) for line in lines]
    assert "pod tolerate team=ml:NoSchedule 1 node" in fixes
    last = fixes.index("cluster add a node like b 1 node")
    assert fixes[last + 1].startswith("Tried again when a node is added")
    assert all(line == line.rstrip() and len(line) <= 80 for line in lines)


def test_a_pod_that_fits_has_exit_code_0(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "small", "-n", "shop", "--from", cluster, "--node", "a"]) == 0
    text = capsys.readouterr().out
    assert "shop/small fits 1 of 2 nodes; b is the best" in text
    assert "It is the only node that fits." in text
    assert "a is refused by" in text


def test_says_where_a_bound_pod_would_go_now(
    cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "default/busy", "--from", cluster, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["node"], found["exactness"]) == ("scheduled", "b", "now")
    assert found["choice"]["node"] == "b"


def test_json_and_yaml_say_the_same(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "shop/big", "--from", cluster]
    assert main([*arguments, "-o", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["version"]) == ("mooring-explanation", 1)
    assert sum(group["nodes"] for group in found["groups"]) == found["nodes"] == 2
    assert main([*arguments, "-o", "yaml"]) == 3
    (as_yaml,) = codec.yaml_documents(capsys.readouterr().out)
    assert as_yaml == found
    assert main([*arguments, "-o", "json", "--no-remedies"]) == 3
    assert json.loads(capsys.readouterr().out)["remedies"] is None


def test_the_matrix_has_every_node_and_plugin(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "shop/small", "--from", cluster, "--matrix", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["node"] for row in rows] == ["a", "b"]
    assert [row["fits"] for row in rows] == ["no", "yes"]
    assert rows[0]["TaintToleration refuses"] == "node(s) had untolerated taint(s)"
    points = [int(v) for k, v in rows[1].items() if k.endswith(" points")]
    assert sum(points) == int(rows[1]["total"])
    file = tmp_path / "matrix.csv"
    assert main(["explain", "shop/small", "--from", cluster, "--matrix", str(file)]) == 0
    assert file.read_text().startswith("node,fits,said,")


def test_the_name_of_a_deployment_leads_to_its_pods() -> None:
    pods = tuple(pod(name).api for name in ("web-1", "web-2", "website", "db"))
    snapshot = Snapshot(cluster=ClusterState(pods=pods))
    with pytest.raises(ConfigError) as raised:
        find_pod(snapshot, "web")
    assert str(raised.value.problems[0]) == (
        "web: no such pod; there is default/web-1 and default/web-2"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["absent"], "absent: no such pod"),
        (["busy"], "busy: 2 pods have this name: default/busy and shop/busy"),
        (["shop/absent"], "shop/absent: no such pod in namespace shop"),
        (["big", "-n", "x"], "big: no such pod in namespace x; there is shop/big"),
        (["shop/big", "--node", "z"], "--node: no node z in the cluster"),
        (["shop/big", "--watch"], "--watch: a file does not change; name a cluster"),
        (
            ["shop/big", "--watch", "--at", "7"],
            "--at: the past does not change: expected no --watch beside it",
        ),
        (["shop/big", "--matrix", "/nowhere/x.csv"], "/nowhere/x.csv: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], problem: str, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = 2 if "--watch" in arguments else 1  # flags that do not go together
    assert main(["explain", *arguments, "--from", cluster]) == code
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"{problem}\n")


def test_a_file_that_is_none_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.snap.gz"
    file.write_bytes(b"\x1f\x8b\x08\x00")
    assert main(["explain", "p", "--from", str(file)]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"{file}: ")


def test_a_scheduler_that_does_not_tell_of_its_queue_is_a_note(
    cluster: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    def answer(path: str) -> Answer:
        return (200, Path(cluster).read_bytes()) if path == "snapshot" else (429, b"too many ask")

    with stub_scheduler(answer) as scheduler:
        assert main(["explain", "shop/big", "--from", scheduler.url, "-o", "json"]) == 3
    assert scheduler.asked == ["snapshot", "pods/shop/big/explain"]
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith("what the queue knows is that of the snapshot: 127.0.0.1:")
    assert "too many ask" in note


def test_a_plugin_that_fails_has_exit_code_1(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "failing.py").write_text(
        "import mooring.framework as fw\n\n\n"
        "class Failing(fw.PreFilter):\n"
        '    name = "Failing"\n\n'
        "    def pre_filter(self, state, pod, nodes):\n"
        '        raise KeyError("x")\n'
    )
    enabled = {"multiPoint": {"enabled": [{"name": "failing:Failing"}]}}
    settings = config(tmp_path, profiles=[{"plugins": enabled}])
    assert main(["explain", "shop/big", "--from", cluster, "--config", settings]) == 1
    assert "KeyError" in capsys.readouterr().out


def test_says_what_it_does_not_know(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = config(
        tmp_path,
        profiles=[
            {
                "schedulerName": "ours",
                "plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}},
                "pluginConfig": [{"name": "Coscheduling", "args": {"x": 1}}],
            }
        ],
        extenders=[{"urlPrefix": "http://extender/", "filterVerb": "filter"}],
    )
    arguments = ["explain", "shop/big", "--from", cluster, "--config", settings, "-o", "json"]
    assert main(arguments) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["exactness"] == "partial"
    notes = "\n".join(found["notes"])
    assert "Coscheduling is not installed here" in notes
    assert "extenders are not asked: http://extender/" in notes
    assert 'no profile for schedulerName "default-scheduler"' in notes


def test_kubectl_finds_it_as_a_plugin() -> None:
    """`kubectl mooring` is this very command."""
    from importlib.metadata import entry_points

    scripts = {one.name: one.value for one in entry_points(group="console_scripts")}
    assert scripts["kubectl-mooring"] == scripts["mooring"] == "mooring.cli:main"


def test_watch_explains_again_until_the_pod_has_a_node(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [
        cluster_of([node("a", cpu=1)], [pod("p", cpu=2)]),
        cluster_of([node("a", cpu=1)], [pod("p", cpu=2)]),  # nothing new
        cluster_of([node("a", cpu=1), node("b")], [pod("p", cpu=2)]),
        cluster_of([node("a", cpu=1), node("b")], [pod("p", cpu=2, on="b")]),
    ]
    waits: list[float] = []
    monkeypatch.setattr(
        explain, "load", lambda options, quiet: Snapshot(cluster=states[len(waits)])
    )
    monkeypatch.setattr(time, "sleep", waits.append)
    assert main(["explain", "p", "--watch", "7"]) == 0
    said = capsys.readouterr().out
    assert waits == [7.0, 7.0, 7.0]
    assert [line for line in said.splitlines() if line.startswith("default/p")] == [
        "default/p is pending: no node of 1 [misconfigured]",
        "default/p fits 1 of 2 nodes; b is the best",
        "default/p is on b, and would be put there again now",
    ]


def test_a_pod_that_has_ended_or_is_being_deleted_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(
        tmp_path, node("a"), pod("done", on="a", phase="Succeeded"), pod("p", deleting=True)
    )
    main(["explain", "done", "--from", file])
    assert "note: the pod has ended (Succeeded)" in capsys.readouterr().out
    main(["explain", "p", "--from", file])
    assert "note: the pod is being deleted" in capsys.readouterr().out
