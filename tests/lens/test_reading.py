from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from mooring.api import codec, core
from mooring.errors import ConfigError
from mooring.lens.reading import read_manifests, read_snapshot
from mooring.lens.snapshot import KINDS, ClusterState, MissingKind, QueuedState, Snapshot
from mooring.lens.writing import encoded, stripped, write_snapshot
from mooring.testing import node, pod

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "uid": "u-n", "resourceVersion": "7", "managedFields": [{}]},
    "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "shop", "uid": "u-p", "resourceVersion": "8"},
    "spec": {"containers": [{"name": "c", "env": [{"name": "PASSWORD", "value": "hunter2"}]}]},
    "status": {"phase": "Pending", "nominatedNodeName": "n"},
}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "djE="}}


def read(folder: Path, content: str | bytes, name: str = "dump.yaml") -> Snapshot:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_snapshot(file)


def problem(folder: Path, content: str | bytes) -> str:
    with pytest.raises(ConfigError) as raised:
        read(folder, content)
    (one,) = raised.value.problems
    text = str(one)
    assert text.startswith(f"{folder / 'dump.yaml'}: ")
    assert "\n" not in text
    return text.partition(": ")[2]


def full_snapshot() -> Snapshot:
    web = pod("web", cpu="1", labels={"app": "web"}, annotations={"note": "hunter2"})
    spec = msgspec.structs.replace(
        web.api.spec, containers=(core.Container(name="c", args=("--password=hunter2",)),)
    )
    return Snapshot(
        cluster=ClusterState(
            nodes=(node("b").api, node("a", zone="z").api),
            pods=(msgspec.structs.replace(web.api, spec=spec), pod("db", on="a").api),
        ),
        config={"apiVersion": "kubescheduler.config.k8s.io/v1", "profiles": []},
        queue=(QueuedState(uid=web.uid, queue="backoff", attempts=2, retry_at=5.5),),
        missing=(MissingKind("csinodes.storage.k8s.io", "forbidden"),),
        at=12.5,
        seq=7,
        scheduler="mooring 1",
    )


def test_a_written_snapshot_is_read_back_without_what_no_plugin_reads(tmp_path: Path) -> None:
    file = tmp_path / "x.snap.gz"
    given = full_snapshot()
    assert write_snapshot(given, file) == file.stat().st_size
    found = read_snapshot(file)
    assert found.cluster.nodes == given.cluster.nodes  # in the order given
    assert [one.metadata.name for one in found.cluster.pods] == ["web", "db"]
    assert b"hunter2" not in gzip.decompress(file.read_bytes())
    for field in ("config", "queue", "missing", "at", "seq", "scheduler", "redacted"):
        assert getattr(found, field) == getattr(given, field)


def test_volumes_that_influence_nothing_are_not_written(tmp_path: Path) -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
    volumes = {"volumes": [{"name": "kube-api-access-x7k2p"}, claim]}
    given = Snapshot(cluster=ClusterState(pods=(pod("p", spec=volumes).api,)))
    write_snapshot(given, tmp_path / "x.snap.gz")
    (found,) = read_snapshot(tmp_path / "x.snap.gz").cluster.pods
    assert [volume.name for volume in found.spec.volumes] == ["data"]


def test_every_kind_is_written_and_read(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        field: (codec.convert({"metadata": {"name": "x", "namespace": "y", "uid": "u"}}, kind),)
        for field, kind in KINDS.items()
    }
    given = Snapshot(cluster=ClusterState(**values))
    write_snapshot(given, tmp_path / "x.snap.gz")
    assert read_snapshot(tmp_path / "x.snap.gz") == given


def test_no_queue_and_an_empty_one_are_told_apart(tmp_path: Path) -> None:
    for queue in (None, ()):
        write_snapshot(Snapshot(queue=queue), tmp_path / "x.snap.gz")
        assert read_snapshot(tmp_path / "x.snap.gz").queue == queue


def test_is_encoded_in_slices() -> None:
    pods = tuple(pod(f"p{i}", labels={"x": str(i * 7919)}).api for i in range(2000))
    snapshot = Snapshot(cluster=ClusterState(pods=pods))
    chunks = list(encoded(snapshot, seconds=0.0))
    assert len(chunks) > 2000 / 8
    assert gzip.decompress(b"".join(chunks)) == gzip.decompress(b"".join(encoded(snapshot)))


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, POD, SECRET]}),
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [NODE, POD, SECRET]}),
        yaml.safe_dump_all([NODE, POD, SECRET]),
        "\n".join(map(json.dumps, [NODE])) + "\n---\n" + json.dumps(POD) + "\n---\nkind: Secret\n",
        json.dumps({"pods": [POD], "nodes": [NODE], "pvs": [], "secrets": [SECRET]}),
        gzip.compress(yaml.safe_dump_all([NODE, POD, SECRET]).encode()),
    ],
    ids=["json list", "yaml list", "yaml stream", "json stream", "simulator export", "gzip"],
)
def test_reads_what_other_tools_write(tmp_path: Path, content: str | bytes) -> None:
    found = read(tmp_path, content)
    (one,), (two,) = found.cluster.nodes, found.cluster.pods
    assert (one.metadata.name, one.metadata.uid, one.metadata.resource_version) == ("n", "u-n", "")
    assert str(one.status.allocatable["cpu"]) == "3"
    assert (two.key, two.status.nominated_node_name) == ("shop/p", "n")
    (note,) = found.notes  # named once, not fatal
    assert note.partition(": ")[2].lower().startswith("not used, because no plugin reads them: sec")


def test_reads_a_list_of_one_kind_whose_items_do_not_name_it(tmp_path: Path) -> None:
    item = {key: value for key, value in POD.items() if key not in ("kind", "apiVersion")}
    listed = {"apiVersion": "v1", "kind": "PodList", "items": [item]}
    for text in (json.dumps(listed), yaml.safe_dump(listed)):
        assert [one.key for one in read(tmp_path, text).cluster.pods] == ["shop/p"]


def test_reads_the_configuration_of_an_export(tmp_path: Path) -> None:
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    assert read(tmp_path, json.dumps({"nodes": [], "schedulerConfig": config})).config == config


def test_manifests_are_completed_as_a_server_would(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {capacity: {cpu: "4"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  priorityClassName: high
  hostNetwork: true
  containers:
    - name: c
      resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}
      ports: [{containerPort: 80}]
---
apiVersion: v1
kind: Pod
metadata: {name: critical}
spec: {priorityClassName: system-node-critical, containers: [{name: c}]}
"""
    found = read(tmp_path, text)
    assert str(found.cluster.nodes[0].status.allocatable["cpu"]) == "4"
    first, second = found.cluster.pods
    assert (first.key, first.spec.priority) == ("default/p", 1000)
    assert second.spec.priority == 2_000_001_000
    assert first.metadata.uid != second.metadata.uid != ""
    (container,) = first.spec.containers
    assert {key: str(one) for key, one in container.resources.requests.items()} == {
        "cpu": "1",
        "memory": "1Gi",
    }
    assert container.ports[0].host_port == 80


def test_bad_files_have_one_clear_line(tmp_path: Path) -> None:
    whole = b"".join(encoded(full_snapshot()))
    lines = gzip.decompress(whole).splitlines(keepends=True)
    newer = lines[0].replace(b'"version":1', b'"version":2') + b"".join(lines[1:])
    assert problem(tmp_path, whole[:-20]).startswith("truncated: ")
    assert problem(tmp_path, b"".join(lines[:-1])) == (
        "truncated: 4 objects were found, the last line is missing"
    )
    assert problem(tmp_path, b"".join(lines[:2] + lines[3:])) == (
        "truncated: 3 objects were found, it had 4"
    )
    assert problem(tmp_path, newer) == "a snapshot of version 2; this mooring reads version 1"
    assert problem(tmp_path, whole[:40] + b"????" + whole[44:]).startswith("damaged: ")
    assert problem(tmp_path, b"") == "empty; expected a snapshot, or objects in JSON or YAML"
    assert problem(tmp_path, b"\x89PNG\xff\xfe\x00") == (
        "neither a snapshot nor text: expected JSON or YAML"
    )
    assert problem(tmp_path, "hello: world") == "expected an object with apiVersion and kind"
    assert problem(tmp_path, "just text").startswith("expected an object with apiVersion")
    assert problem(tmp_path, "a: [").startswith("not valid YAML: ")
    assert problem(tmp_path, json.dumps(SECRET)) == "nothing that a scheduler reads, only Secret"
    bad = {**POD, "spec": {"priority": "high"}}
    assert problem(tmp_path, json.dumps({"kind": "List", "items": [NODE, bad]})) == (
        "items[1]: Pod shop/p: spec.priority: expected int | null, got str"
    )
    with pytest.raises(ConfigError, match="no such file or directory"):
        read_snapshot(tmp_path / "missing")
    with pytest.raises(ConfigError, match="is a directory"):
        read_snapshot(tmp_path)


def test_pods_of_one_template_share_what_they_have_in_common(tmp_path: Path) -> None:
    """And are read as if each were read alone."""
    pods = [
        *(pod(f"p{i}", cpu="100m", labels={"app": "x"}, on=f"n{i}").api for i in range(3)),
        pod("waits", cpu="100m", labels={"app": "x"}).api,
        pod("bare", on="n1").api,
        pod("other", cpu="200m", labels={"app": "x"}, on="n2").api,
    ]
    file = tmp_path / "x.snap.gz"
    write_snapshot(Snapshot(cluster=ClusterState(pods=tuple(pods))), file)
    found = read_snapshot(file).cluster.pods
    assert found == tuple(map(stripped, pods))
    assert found[0].spec.containers is found[2].spec.containers
    assert found[0].metadata.labels is found[3].metadata.labels
    assert found[0].spec.containers is not found[5].spec.containers


def test_a_pod_that_is_no_pod_is_named_with_its_place(tmp_path: Path) -> None:
    lines = [
        {"format": "mooring-snapshot", "version": 1},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "s"},
            "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "x"}}}]},
        },
        {"end": 1},
    ]
    file = tmp_path / "x.snap"
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ConfigError, match=r"line 2: Pod s/p: spec.*requests.cpu"):
        read_snapshot(file)


def test_lines_of_a_snapshot_that_are_damaged_are_named(tmp_path: Path) -> None:
    header = b'{"format":"mooring-snapshot","version":1}\n'
    assert problem(tmp_path, header.replace(b"1}", b'1,"at":"noon"}')).startswith("line 1: ")
    for damaged in (b'{"queued":3}\n', b'{"apiVersion":3,"kind":"Pod"}\n', b"{\n"):
        assert problem(tmp_path, header + damaged).startswith("line 2: ")
    assert problem(tmp_path, header + b'{"apiVersion":"v2","kind":"Pod"}\n') == (
        "line 2: unknown kind Pod of v2"
    )


def test_items_and_documents_that_are_no_objects_are_named(tmp_path: Path) -> None:
    assert problem(tmp_path, '{"kind": "List", "items": [3]}').startswith("items[0]: ")
    assert problem(tmp_path, "---\n---\n") == (
        "no objects; expected a snapshot, or objects in JSON or YAML"
    )


def test_reads_a_configuration_beside_the_objects(tmp_path: Path) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 3,
    }
    found = read(tmp_path, yaml.safe_dump_all([NODE, config]))
    assert [one.metadata.name for one in found.cluster.nodes] == ["n"]
    assert found.config == config
    assert found.notes == ()


def test_manifests_that_are_not_there_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read_manifests(tmp_path / "missing.yaml")
    assert str(refused.value) == f"{tmp_path / 'missing.yaml'}: no such file or directory"
