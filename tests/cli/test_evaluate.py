from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.test_progress import Terminal
from tests.simulator.clusters import snapshot

from mooring.cli import main
from mooring.lens.writing import write_snapshot
from mooring.testing import node, pod

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "pods": "9"}}}


def scenario(id_: str, cpu: str = "1", **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [container]}}
    return {"id": id_, "pod": pod, "cluster": {"nodes": [NODE]}, **more}


def write(file: Path, *scenarios: object) -> str:
    file.write_text("".join(f"{json.dumps(s) if isinstance(s, dict) else s}\n" for s in scenarios))
    return str(file)


def test_answers_one_line_per_scenario(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = write(tmp_path / "s.jsonl", scenario("fits"), scenario("big", cpu="64"))
    assert main(["evaluate", file]) == 0
    fits, big = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert (fits["id"], fits["outcome"], fits["best"]) == ("fits", "Scheduled", ["n"])
    assert (big["id"], big["outcome"]) == ("big", "Unschedulable")
    assert big["fitError"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_goes_on_after_a_line_it_cannot_read(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    bad = scenario("bad")
    bad["cluster"]["nodes"][0] = {"metadata": {"name": "n"}, "spec": {"unschedulable": "maybe"}}
    odd = scenario("odd", cpu="two")
    file = write(tmp_path / "s.jsonl", "{", bad, "", odd, scenario("good"))
    assert main(["evaluate", file]) == 1
    broken, typed, quantity, good = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert broken["line"] == 1
    assert (typed["id"], typed["line"]) == ("bad", 2)
    assert typed["error"].startswith("cluster.nodes[0].spec.unschedulable: ")
    assert (quantity["id"], quantity["line"]) == ("odd", 4)
    assert quantity["error"].startswith("pod.spec.containers[0].resources.requests.cpu: ")
    assert good["outcome"] == "Scheduled"


def test_says_what_is_wrong_with_a_profile(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    profile = {"plugins": {"score": {"enabled": [{"name": "Nonsense"}]}}}
    file = write(tmp_path / "s.jsonl", scenario("odd", profile=profile))
    assert main(["evaluate", file]) == 1
    (result,) = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert 'profiles[0].plugins.score.enabled[0].name: plugin "Nonsense"' in result["error"]


def test_uses_the_profile_of_a_configuration(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}}]\n"
    )
    file = write(tmp_path / "s.jsonl", scenario("big", cpu="64"))
    assert main(["evaluate", "--config", str(config), file]) == 0
    (result,) = map(json.loads, capsysbinary.readouterr().out.splitlines())
    assert result["outcome"] == "Scheduled"


def test_unpacks_what_is_packed(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    file = tmp_path / "s.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(scenario("packed")).encode()))
    assert main(["evaluate", str(file)]) == 0
    assert json.loads(capsysbinary.readouterr().out)["id"] == "packed"


def test_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = io.TextIOWrapper(io.BytesIO(json.dumps(scenario("piped")).encode()))
    monkeypatch.setattr("sys.stdin", text)
    assert main(["evaluate"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["id"] == "piped"


def test_names_a_file_that_is_not_there_and_reads_the_others(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = write(tmp_path / "s.jsonl", scenario("fits"))
    assert main(["evaluate", str(tmp_path / "absent"), file]) == 1
    out, err = capsysbinary.readouterr()
    assert json.loads(out)["id"] == "fits"
    assert b"absent: No such file or directory" in err


def test_numbers_lines_across_processes(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    many: list[object] = [scenario(f"s{i}") for i in range(250)]
    many[240] = "{"
    assert main(["evaluate", "--jobs", "2", write(tmp_path / "s.jsonl", *many)]) == 1
    results = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [r["id"] for r in results] == [f"s{i}" if i != 240 else "" for i in range(250)]
    assert results[240]["line"] == 241


def test_counts_on_a_terminal(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert main(["evaluate", write(tmp_path / "s.jsonl", scenario("fits"), "{")]) == 1
    assert terminal.getvalue() == "\r2 scenarios\r2 scenarios, 1 not answered\n"
    assert capsysbinary.readouterr().out.count(b"\n") == 2  # and nothing of it is among the data


def test_decides_as_the_scheduler_of_the_snapshot(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    profile = {"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    file = tmp_path / "x.snap.gz"
    write_snapshot(snapshot(node("n", cpu=2), pod("big", cpu=64), config=config), file)
    assert main(["evaluate", str(file)]) == 0
    assert json.loads(capsysbinary.readouterr().out)["outcome"] == "Scheduled"
    given = tmp_path / "config.yaml"  # which comes first
    given.write_text(yaml.safe_dump({**config, "profiles": []}))
    assert main(["evaluate", "--config", str(given), str(file)]) == 0
    assert json.loads(capsysbinary.readouterr().out)["outcome"] == "Unschedulable"


def test_says_what_of_a_dump_it_does_not_use_and_what_is_no_dump(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    dump, broken = tmp_path / "dump.yaml", tmp_path / "broken.yaml"
    items = [{"apiVersion": "v1", "kind": "Node", **NODE}]
    items.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    dump.write_text(yaml.safe_dump_all(items))
    broken.write_text("just a text")
    assert main(["evaluate", str(dump), str(broken)]) == 1
    used, refused = capsysbinary.readouterr().err.decode().splitlines()
    assert used == f"{dump}: not used, because no plugin reads them: Secret"
    assert refused.startswith(f"{broken}: expected an object")
