"""`mooring cluster up`, as people start it."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import sys
from pathlib import Path

import pytest
from tests.cli.page import ask_page
from tests.cli.process import Running
from tests.cli.running_cluster import READY, ask, send, up
from tests.cli.test_progress import Terminal

from mooring.cli import main
from mooring.cli.cluster import _in_zones
from mooring.cli.cluster_report import PlacementReport
from mooring.client.transport import Request
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.server import new_store
from mooring.cluster.apiserver.store import Store

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: web, image: nginx, resources: {requests: {cpu: "1"}}}]
"""


# --- running -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_runs_a_cluster_until_it_is_told_to_stop(tmp_path: Path, number: int) -> None:
    config = tmp_path / "config"
    words = ("--nodes", "4", "--zones", "2", "--gpus", "1", "--node-cpu", "3")
    with up(config, *words, forked=number == signal.SIGINT) as cluster:
        cluster.until(READY)
        nodes = ask(config, "/api/v1/nodes")["items"]
        assert cluster.stop(number) == 0
    assert [node["metadata"]["name"] for node in nodes] == [f"node-{i}" for i in range(4)]
    zone = "topology.kubernetes.io/zone"
    zones = [node["metadata"]["labels"][zone] for node in nodes]
    assert zones == ["zone-a", "zone-b", "zone-a", "zone-b"]
    allocatable = nodes[0]["status"]["allocatable"]
    assert (allocatable["cpu"], allocatable["nvidia.com/gpu"]) == ("3", "1")
    assert cluster.said[-1] == "stopped"


def test_says_where_it_is_and_what_to_try(tmp_path: Path) -> None:
    config = tmp_path / "config"
    with up(config, "--nodes", "1") as cluster:
        url = cluster.until("server:").split()[1]
        cluster.until(READY)
        cluster.stop()
    assert url.startswith("https://127.0.0.1:")
    assert f"kubeconfig: {config}" in cluster.said
    assert sum(line.startswith(f"  kubectl --kubeconfig {config} ") for line in cluster.said) == 3
    assert any(line.startswith(f"  mooring run --kubeconfig {config}") for line in cluster.said)
    assert f"server: {url}" in config.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "4"], "4 in 3 zones"),
        (["--nodes", "3", "--pool", "gpu:2"], "5, 3 of them in 3 zones (node 3, gpu 2)"),
    ],
)
def test_counts_nodes_and_zones_that_are_there(words: list[str], said: str, tmp_path: Path) -> None:
    with up(tmp_path / "config", *words) as cluster:
        assert cluster.until("nodes:") == f"nodes:      {said}"
        cluster.stop()


@pytest.mark.parametrize(
    ("zones", "said"),
    [
        (["zone-a", "zone-b"], " in 2 zones"),
        (["zone-a"], " in 1 zone"),
        (["zone-a", "zone-a", ""], ", 2 of them in 1 zone"),
        (["", ""], ""),
    ],
)
def test_counts_no_zone_that_has_no_node(zones: list[str], said: str) -> None:
    assert _in_zones(zones) == said


def test_keeps_its_kubeconfig_in_a_folder_of_its_own_that_vanishes() -> None:
    with Running("cluster", "up", "--nodes", "1", forked=True) as cluster:
        config = Path(cluster.until("kubeconfig:").split()[1])
        cluster.until(READY)
        assert len(ask(config, "/api/v1/nodes")["items"]) == 1
        cluster.stop()
    assert not config.parent.exists()


def test_schedules_and_runs_pods_when_asked_to(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    words = ["--nodes", "2", "--scheduler", "--apply", str(tmp_path / "pod.yaml")]
    with up(tmp_path / "config", *words) as cluster:
        line = cluster.until("placed default/web on node-")
        assert line.endswith((" (zone-a)", " (zone-b)"))
        cluster.stop()


def test_begins_with_a_dump_of_another_cluster(tmp_path: Path) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text(POD)
    dump = tmp_path / "dump.json"
    with up(tmp_path / "first", "--nodes", "2", "--scheduler", "--apply", str(file)) as cluster:
        cluster.until("placed default/web on node-")
        lists = [ask(tmp_path / "first", f"/api/v1/{kind}") for kind in ("nodes", "pods")]
        for one, kind in zip(lists, ("Node", "Pod"), strict=True):
            for item in one["items"]:
                item |= {"apiVersion": "v1", "kind": kind}  # as kubectl prints lists
        items = [item for one in lists for item in one["items"]]
        dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        cluster.stop()
    assert all(item["metadata"]["resourceVersion"] for item in items)
    with up(tmp_path / "second", "--nodes", "0", "--apply", str(dump)) as cluster:
        cluster.until(READY)
        nodes = ask(tmp_path / "second", "/api/v1/nodes")["items"]
        assert [node["metadata"]["name"] for node in nodes] == ["node-0", "node-1"]
        assert nodes[0]["status"]["allocatable"] == items[0]["status"]["allocatable"]
        [pod] = ask(tmp_path / "second", "/api/v1/pods")["items"]
        assert pod["spec"]["nodeName"] == items[-1]["spec"]["nodeName"]
        cluster.stop()


def test_says_why_a_pod_waits(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD.replace('cpu: "1"', 'cpu: "100"'))
    words = ["--nodes", "2", "--scheduler", "--apply", str(tmp_path / "pod.yaml")]
    with up(tmp_path / "config", *words) as cluster:
        page = cluster.until("page:").split()[1]
        cluster.until("waits  default/web: 0/2 nodes are available: 2 Insufficient cpu.")
        found = ask_page(page, "/lens/v1/queue")
        assert [(one["name"], one["plugins"]) for one in found["pods"]] == [
            ("web", ["NodeResourcesFit"])
        ]
        cluster.stop()


def test_uses_the_configuration_and_plugins_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "last_node.py").write_text(
        "import mooring.framework as fw\n\n\n"
        "class LastNode(fw.Filter):\n"
        '    name = "LastNode"\n'
        "    wakes_on = ()\n\n"
        "    def filter(self, state, pod, node):\n"
        '        return fw.OK if node.name == "node-4" else fw.Status.unschedulable("no")\n'
    )
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: mine, plugins: {filter: {enabled: [{name: LastNode}]}}}]\n"
    )
    (tmp_path / "pod.yaml").write_text(POD.replace("spec:", "spec:\n  schedulerName: mine"))
    words = ["cluster", "up", "--nodes", "5", "--scheduler", "--config", "config.yaml"]
    words += ["--plugin", "last_node:LastNode", "--apply", "pod.yaml"]
    with Running(*words, folder=tmp_path, forked=True) as cluster:
        assert cluster.until("scheduler:").split() == ["scheduler:", "mine"]
        cluster.until('--overrides=\'{"spec":{"schedulerName":"mine"}}\'')
        cluster.until("placed default/web on node-4")
        cluster.stop()


def test_leaves_pods_alone_without_kubelets(tmp_path: Path) -> None:
    config = tmp_path / "config"
    (tmp_path / "pod.yaml").write_text(POD)
    words = ["--nodes", "1", "--scheduler", "--no-kubelets"]
    with up(config, *words, "--apply", str(tmp_path / "pod.yaml")) as cluster:
        cluster.until("placed default/web on node-0")
        pod = ask(config, "/api/v1/namespaces/default/pods/web")
        assert (pod["spec"]["nodeName"], pod["status"]["phase"]) == ("node-0", "Pending")
        cluster.stop()


def test_finds_everything_again_in_its_file(tmp_path: Path) -> None:
    config, data = tmp_path / "config", str(tmp_path / "cluster.sqlite")
    (tmp_path / "pod.yaml").write_text(POD)
    with up(config, "--nodes", "2", "--data", data, "--apply", str(tmp_path / "pod.yaml")) as first:
        first.until(READY)
        before = ask(config, "/api/v1/namespaces/default/pods/web")
        with up(tmp_path / "other", "--data", data) as second:
            assert second.end() == 1
            assert f"{data}: is in use by another process" in second.all()
        assert first.stop() == 0
    with up(config, "--nodes", "3", "--data", data) as again:
        again.until(f" objects in {data}")
        again.until(READY)
        assert ask(config, "/api/v1/namespaces/default/pods/web") == before
        assert len(ask(config, "/api/v1/nodes")["items"]) == 3
        assert again.stop() == 0


MAPS = "/api/v1/namespaces/default/configmaps"
READYZ = Request(method="GET", path="/readyz")


def config_map(name: str) -> Request:
    """A request for an object of 20 KB."""
    value = {"metadata": {"name": name}, "data": {"text": "x" * 20_000}}
    return Request(method="POST", path=MAPS, body=json.dumps(value).encode())


def limit_files(process: Running, size: int) -> None:
    """As on a full disk: no file of the process may become larger than that."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def fill_up(config: Path) -> set[str]:
    """Create objects until they are refused; the names of those that were accepted."""
    accepted: set[str] = set()
    for number in range(500):
        (answer,) = send(config, config_map(f"m{number}"))
        if answer.status != 201:
            break
        accepted.add(f"m{number}")
    assert answer.status == 507
    status = json.loads(answer.body)
    assert status["reason"] == "InsufficientStorage"
    assert status["message"].startswith("nothing can be written at the moment: changes can't be")
    return accepted


def names(config: Path) -> set[str]:
    return {item["metadata"]["name"] for item in ask(config, MAPS)["items"]} - {"kube-root-ca.crt"}


def test_refuses_writes_while_they_can_not_be_saved(tmp_path: Path) -> None:
    config, data = tmp_path / "config", str(tmp_path / "cluster.sqlite")
    with up(config, "--data", data) as cluster:
        cluster.until(READY)
        limit_files(cluster, 1_000_000)
        accepted = fill_up(config)
        (ready,) = send(config, READYZ)
        assert ready.status == 500
        assert ready.body.startswith(b"[-]data failed: ")
        assert names(config) == accepted  # reading goes on
        limit_files(cluster, resource.RLIM_INFINITY)
        cluster.until("changes are saved again")
        (ready, answer) = send(config, READYZ, config_map("late"))
        assert (ready.status, answer.status) == (200, 201)
        assert cluster.stop() == 0
    assert len([line for line in cluster.said if "could not save changes" in line]) == 1
    with up(config, "--data", data) as again:
        again.until(READY)
        assert names(config) == accepted | {"late"}
        assert again.stop() == 0


def test_says_what_it_could_not_save_at_the_end(tmp_path: Path) -> None:
    config, data = tmp_path / "config", str(tmp_path / "cluster.sqlite")
    with up(config, "--data", data) as cluster:
        cluster.until(READY)
        limit_files(cluster, 1_000_000)
        accepted = fill_up(config)
        assert cluster.stop() == 1
    assert f"{data}: changes of " in cluster.all()
    assert "Traceback" not in cluster.all()
    with up(config, "--data", data) as again:
        again.until(READY)
        # All but those that were accepted after the last transaction.
        assert len(accepted - names(config)) < len(accepted) / 2
        assert again.stop() == 0


# --- what can't be -------------------------------------------------------------------------------


def problems(capsys: pytest.CaptureFixture[str], *words: str, code: int = 1) -> str:
    assert main(["cluster", "up", "--nodes", "0", *words]) == code
    said = capsys.readouterr()
    assert said.out == ""  # nothing is introduced that ends at once
    return said.err


def test_names_every_flag_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.yaml").write_text("- just\n- a list\n")
    said = problems(
        capsys, "--node-cpu", "many", "--node-memory", "1Zi", "--config", "c", "--plugin", "a:B",
        "--apply", str(tmp_path / "absent"), "--apply", str(tmp_path / "bad.yaml"), code=2,
    )  # fmt: skip
    for text in (
        "mooring cluster up: --node-cpu: ",
        "mooring cluster up: --node-memory: ",
        "mooring cluster up: --config: is for a scheduler in this process; expected --scheduler",
        "mooring cluster up: --plugin: is for a scheduler",
        f"mooring cluster up: {tmp_path / 'absent'}: No such file or directory",
        f"{tmp_path / 'bad.yaml'}, document 0: expected an object with apiVersion and kind",
        "6 problems found",
    ):
        assert text in said


def test_names_every_pool_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    absent, bad = tmp_path / "absent.yaml", tmp_path / "bad.yaml"
    said = problems(
        capsys, "--job-duration", "long", "--pool", "gpu", "--pool", "a:1", "--pool", "a:2",
        "--pools", str(absent), code=2,
    )  # fmt: skip
    for text in (
        "mooring cluster up: --job-duration: ",
        "mooring cluster up: --pool: pool 'gpu': expected NAME:COUNT first, such as gpu:4",
        f"mooring cluster up: {absent}: No such file or directory",
        "mooring cluster up: --pool: pool a: expected once, found twice",
        "4 problems found",
    ):
        assert text in said
    bad.write_text("pools: [{name: a, count: many}]\n")
    said = problems(capsys, "--pools", str(bad), code=2)
    assert said.startswith(f"mooring cluster up: --pools: {bad}: ")


class EndedAt(Terminal):
    """A terminal at which Ctrl-C is pressed as soon as it shows a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def write(self, text: str) -> int:
        if self._text in text:
            signal.raise_signal(signal.SIGINT)
        return super().write(text)


def test_makes_the_nodes_of_a_file_and_shows_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = tmp_path / "pools.yaml"
    pools.write_text("pools: [{name: small, count: 99, cpu: 2}, {name: big, count: 2, cpu: 64}]\n")
    monkeypatch.setattr(sys, "stdout", out := EndedAt(READY))
    monkeypatch.setattr(sys, "stderr", err := Terminal())
    assert main(["cluster", "up", "--no-kubelets", "--pools", str(pools)]) == 0
    assert "nodes:      101 (small 99, big 2)\n" in out.getvalue()
    assert "\r\x1b[Kmaking nodes: 100 of 101\r\x1b[K" in err.getvalue()


def test_makes_no_more_nodes_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := Terminal())
    monkeypatch.setattr(sys, "stderr", EndedAt("making nodes: 100 of 500"))
    assert main(["cluster", "up", "--no-kubelets", "--nodes", "500"]) == 0
    made = re.search(r"nodes: +(\d+)", out.getvalue())
    assert made is not None
    assert int(made[1]) < 500
    assert out.getvalue().endswith("stopped\n")


def test_says_where_a_manifest_is_not_yaml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("kind: Pod\na: b: c\n")
    said = problems(capsys, "--apply", str(file))
    assert said.startswith(
        f"mooring cluster up: {file}: not valid YAML: line 2, column 5: mapping values"
    )
    assert said.count("\n") == 2


def test_serves_others_only_when_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--address: 0.0.0.0 can be reached from outside" in problems(
        capsys, "--address", "0.0.0.0"
    )


def test_leaves_the_kubeconfig_of_somebody_else_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config").write_text("apiVersion: v1\nkind: Config\n")
    said = problems(capsys, "--kubeconfig", str(tmp_path / "config"))
    assert f"{tmp_path / 'config'}: exists and was not made by mooring" in said
    assert (tmp_path / "config").read_text() == "apiVersion: v1\nkind: Config\n"


def test_says_that_a_port_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port}: Address already in use" in problems(capsys, "--port", port)


def test_says_what_the_server_refuses_to_create(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(POD.replace("{name: web}", "{name: Bad_Name}") + "---\nkind: Toaster\n")
    said = problems(capsys, "--apply", str(file))
    assert '--apply: Pod Bad_Name: Pod "Bad_Name" is invalid: metadata.name: Invalid value' in said
    assert "--apply: Toaster : the server has no resource for 'Toaster'" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--nodes", "-1"], "expected 0 to 65536, got '-1'"),
        (["--nodes", "1e3"], "expected 0 to 65536, got '1e3'"),
        (["--zones", "27"], "expected 0 to 26, got '27'"),
        (["--port", "70000"], "expected 0 to 65535, got '70000'"),
    ],
)
def test_refuses_numbers_out_of_range(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["cluster", "up", *words])
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_shows_help_when_not_told_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster"]) == 2
    assert "usage: mooring cluster" in capsys.readouterr().out


# --- telling -------------------------------------------------------------------------------------


def put(store: Store, name: str, node: str = "", why: str = "") -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "message": why}] if why else []
    store.put(
        known("pods"),
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node},
            "status": {"conditions": conditions},
        },
    )


def test_tells_each_thing_once() -> None:
    store, said = new_store(), list[str]()
    report = PlacementReport(store, said.append)
    put(store, "a")
    put(store, "a", why="no room")
    put(store, "a", why="no room")
    report.print_changes()
    put(store, "a", why="no room")
    report.print_changes()
    put(store, "a", why="no light")
    put(store, "a", node="n")
    put(store, "a", node="n")
    report.print_changes()
    store.remove(known("pods"), "default", "a")
    report.print_changes()
    assert said == ["waits  default/a: no room", "placed default/a on n"]


def test_counts_where_there_would_be_too_many_lines() -> None:
    store, said = new_store(), list[str]()
    report = PlacementReport(store, said.append)
    for i in range(50):
        put(store, f"p{i:02}", node=f"n{i % 3}")
        put(store, f"q{i:02}")
        put(store, f"q{i:02}", why="no room")
    report.print_changes()
    assert said[0] == "placed 50 pods on 3 nodes"
    assert said[1] == "waits  default/q00: no room"
    assert (len(said), said[-1]) == (22, "waits  30 more pods")
