"""Snapshots of a real API server: what is read, what may not be, and that nothing is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import node, pod
from tests.controlplane.users import User

from mooring.cli import main
from mooring.client.http import HttpTransport
from mooring.lens import collect
from mooring.lens.reading import read_snapshot
from mooring.lens.snapshot import KINDS

POD = """
apiVersion: v1
kind: Pod
metadata: {name: small}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
READ = ("get", "list")


@pytest.fixture
def verbs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The methods of all requests that commands send."""
    found: Counter[str] = Counter()
    send, stream = HttpTransport.send, HttpTransport.open_stream

    async def counted(self: HttpTransport, request: Any, fence: Any = None) -> Any:
        found[request.method] += 1
        return await send(self, request, fence)

    async def counted_stream(self: HttpTransport, request: Any) -> Any:
        found["stream"] += 1
        return await stream(self, request)

    monkeypatch.setattr(HttpTransport, "send", counted)
    monkeypatch.setattr(HttpTransport, "open_stream", counted_stream)
    return found


def fill(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many([node(f"n{i}") for i in range(5)])
    control_plane.admin.create_many([pod(f"p{i}", namespace=namespace) for i in range(7)])


def all_objects(control_plane: ControlPlane) -> dict[str, Any]:
    """Everything the commands could have changed, with versions."""
    return {
        kind: sorted(
            (one["metadata"]["name"], one["metadata"]["resourceVersion"])
            for one in json.loads(control_plane.kubectl("get", kind, "-A", "-o", "json"))["items"]
            if not one["metadata"]["name"].startswith("apiserver-")  # which renews its own lease
        )
        for kind in ("nodes", "pods", "events", "leases")
    }


def test_only_reads_are_sent_and_pages_are_followed(
    control_plane: ControlPlane,
    namespace: str,
    verbs: Counter[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(control_plane, namespace)
    monkeypatch.setattr(collect, "PAGE", 2)
    kubeconfig = str(control_plane.kubeconfig_for(control_plane.admin_user))
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "config.yaml").write_text(CONFIG)
    before = all_objects(control_plane)
    where = ("--kubeconfig", kubeconfig)
    for words in (
        ("snapshot", "-o", str(tmp_path / "x.snap.gz")),
        ("what-if", "cluster", "--drain", "n0", "-o", "json"),
        ("capacity", "cluster", str(tmp_path / "pod.yaml"), "-o", "json"),
        ("compare", "cluster", str(tmp_path / "config.yaml"), "-o", "json"),
    ):
        assert main((*words, *where)) == 0, capsys.readouterr().err
    assert set(verbs) == {"GET"}
    assert verbs["GET"] > 4 * len(KINDS)
    assert all_objects(control_plane) == before
    found = read_snapshot(tmp_path / "x.snap.gz").cluster
    listed = json.loads(control_plane.kubectl("get", "nodes,pods", "-A", "-o", "json"))["items"]
    names = [one["metadata"]["name"] for one in listed]
    assert [one.metadata.name for one in (*found.nodes, *found.pods)] == names  # in their order


def test_a_dump_of_kubectl_is_the_same_cluster_as_a_snapshot(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    fill(control_plane, namespace)
    kubeconfig = str(control_plane.kubeconfig_for(control_plane.admin_user))
    snap = str(tmp_path / "x.snap.gz")
    assert main(("snapshot", "-o", snap, "--kubeconfig", kubeconfig)) == 0
    expected = read_snapshot(Path(snap)).cluster
    for form in ("yaml", "json"):
        dump = tmp_path / f"dump.{form}"
        dump.write_text(control_plane.kubectl("get", "nodes,pods", "-A", "-o", form))
        found = read_snapshot(dump).cluster
        assert [one.metadata.uid for one in found.pods] == [
            one.metadata.uid for one in expected.pods
        ]
        assert [one.status.allocatable for one in found.nodes] == [
            one.status.allocatable for one in expected.nodes
        ]


def reader(control_plane: ControlPlane, name: str, *resources: str) -> User:
    user = control_plane.add_user(name)
    if resources:
        control_plane.grant(
            user, [{"apiGroups": [""], "resources": [*resources], "verbs": [*READ]}]
        )
    return user


def test_kinds_that_may_not_be_read_are_named_in_every_answer(
    control_plane: ControlPlane,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fill(control_plane, namespace)
    user = reader(control_plane, "reads-nodes-and-pods", "nodes", "pods")
    where = ("--kubeconfig", str(control_plane.kubeconfig_for(user)))
    snap = str(tmp_path / "x.snap.gz")
    assert main(("snapshot", "-o", snap, *where)) == 0
    said = capsys.readouterr().err
    assert "not read: poddisruptionbudgets.policy: " in said
    found = read_snapshot(Path(snap))
    assert len(found.cluster.nodes) == 5
    assert len(found.missing) == len(KINDS) - 2
    for source in ("cluster", snap):
        assert main(("what-if", source, "--drain", "n0", "-o", "json", *where)) == 0
        answer = json.loads(capsys.readouterr().out)
        assert "poddisruptionbudgets.policy" in [one["resource"] for one in answer["missing"]]
        assert main(("what-if", source, "--drain", "n0", *where)) == 0
        assert "could not be read: " in capsys.readouterr().out
    # A pod with a claim: whether it fits depends on kinds that this user may not read.
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    claimed = pod("claimed", namespace=namespace, spec={"volumes": [volume]})
    control_plane.admin.create_many([claimed])
    assert main(("explain", f"{namespace}/claimed", "-o", "json", *where)) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["exactness"] == "partial"
    assert any("persistentvolumeclaims" in note for note in told["notes"])


def test_without_permissions_or_a_server_there_is_one_line(
    control_plane: ControlPlane, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "config.yaml").write_text(CONFIG)
    commands = (
        ("snapshot", "-o", str(tmp_path / "x")),
        ("explain", "default/web"),
        ("what-if", "cluster", "--drain", "n0"),
        ("capacity", "cluster", str(tmp_path / "pod.yaml")),
        ("compare", "cluster", str(tmp_path / "config.yaml")),
    )

    def problem(
        user: User, server: str = "", commands: Sequence[tuple[str, ...]] = commands
    ) -> str:
        """The one line that all of these commands say."""
        where = str(control_plane.kubeconfig_for(user, server))
        said = set()
        for command in commands:
            assert main((*command, "--kubeconfig", where)) == 1
            output = capsys.readouterr()
            assert output.out == ""
            said.add(output.err)
        (line,) = "".join(said).splitlines()
        return line

    nothing = problem(reader(control_plane, "reads-nothing"))
    assert ": no permission to list anything: nodes is forbidden: " in nothing
    pods = problem(reader(control_plane, "reads-pods", "pods"), commands=commands[:2])
    assert ": no permission: nodes is forbidden: " in pods
    nodes = problem(reader(control_plane, "reads-nodes", "nodes"), commands=commands[:2])
    assert ": no permission: pods is forbidden: " in nodes
    gone = problem(control_plane.admin_user, "https://127.0.0.1:1")
    assert gone.startswith("127.0.0.1:1: can't reach the server: ")
