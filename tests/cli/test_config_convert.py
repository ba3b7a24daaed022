from __future__ import annotations

import io
from pathlib import Path

import pytest

from mooring import config as cfg
from mooring.cli import main

OLD = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
CONFIG_MAP = """
kind: ConfigMap
apiVersion: v1
metadata: {name: scheduler}
data:
  policy.cfg: |
    {"kind": "Policy", "apiVersion": "v1", "predicates": []}
"""


def test_prints_a_file_of_v1_with_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(OLD + "metricsBindAddress: 0.0.0.0:0\n")
    assert main(["config", "convert", str(file)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("# Converted from kubescheduler.config.k8s.io/v1beta2.\n# - metricsBind")
    assert cfg.load_text(out) == cfg.load_file(file)


def test_writes_a_file_that_converts_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(OLD)
    assert main(["config", "convert", str(old), "-o", str(new)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["config", "convert", str(new)]) == 0
    assert capsys.readouterr().out == new.read_text()


def test_reads_a_manifest_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(CONFIG_MAP))
    assert main(["config", "convert", "-"]) == 0
    assert capsys.readouterr().out.startswith("# Converted from Policy.\n")


def test_lists_what_cannot_mean_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("kind: Policy\napiVersion: v1\npredicates: [{name: X}, {name: Y}]\n")
    assert main(["config", "convert", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f'{file}:3: predicates[0].name: predicate type not found for "X"\n' in err
    assert err.endswith("2 problems found\n")


def test_says_where_it_cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(OLD)
    target = str(tmp_path / "absent" / "new.yaml")
    assert main(["config", "convert", str(file), "-o", target]) == 1
    assert capsys.readouterr().err == f"{target}: No such file or directory\n"


@pytest.mark.parametrize("action", ["validate", "show"])
def test_tells_the_notes_of_an_old_file_that_it_checks(
    action: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(OLD)
    assert main(["config", action, str(file)]) == 0
    assert f"{file}: note: profiles[0].plugins.score: written out" in capsys.readouterr().err


def test_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["config", "convert", "--help"])
    out = capsys.readouterr().out
    assert "usage: mooring config convert [-h] [-o FILE] FILE" in out
    assert "v1alpha1" in out
