from __future__ import annotations

import io
from pathlib import Path

import pytest

from mooring.cli import main

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
PLUGIN = """
import mooring.framework as fw

class Mine(fw.Score):
    name = "Mine"
    def score(self, state, pod, node):
        return 1
"""


def write(folder: Path, text: str) -> str:
    file = folder / "config.yaml"
    file.write_text(HEAD + text)
    return str(file)


def test_says_that_a_good_file_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, "profiles: [{schedulerName: a}, {schedulerName: b}]")
    assert main(["config", "validate", file]) == 0
    assert capsys.readouterr().out == f"{file}: valid; 2 profiles: a, b\n"


def test_lists_every_problem_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
profiles:
  - plugins:
      filter: {enabled: [{name: Nonsense}, {name: "no.such:Thing"}]}
      score: {enabled: [{name: NodeName}]}
    pluginConfig:
      - {name: NodeResourcesFit, args: {colour: blue}}
      - {name: NodeAffinity, args: {addedAffinity: 7}}
"""
    file = write(tmp_path, text)
    assert main(["config", "validate", file]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    for line, expected in (
        (6, 'profiles[0].plugins.filter.enabled[0].name: plugin "Nonsense" does not exist'),
        (6, "profiles[0].plugins.filter.enabled[1].name: can't import no.such:Thing"),
        (7, 'profiles[0].plugins.score.enabled[0]: plugin "NodeName" does not extend ScorePlugin'),
        (9, "profiles[0].pluginConfig[NodeResourcesFit].args.colour: unknown field"),
        (10, "profiles[0].pluginConfig[NodeAffinity].args.addedAffinity: "),
    ):
        assert f"{file}:{line}: {expected}" in err
    assert "5 problems found" in err


def test_lists_the_problems_of_fields_rules_and_plugins_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
paralelism: 4
percentageOfNodesToScore: 150
profiles:
  - plugins:
      score: {enabled: [{name: ImageLocality, weight: -1}, {name: Nonsense}]}
    pluginConfig:
      - {name: InterPodAffinity, args: {colour: blue}}
"""
    assert main(["config", "validate", write(tmp_path, text)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1] for line in lines[:-1]] == ["4", "5", "8", "8", "10"]
    assert lines[-1] == "5 problems found"


def test_says_which_arguments_have_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
profiles:
  - plugins:
      multiPoint: {disabled: [{name: ImageLocality}]}
    pluginConfig:
      - {name: NodeResourcesFti, args: {}}
      - {name: ImageLocality, args: {}}
"""
    file = write(tmp_path, text)
    assert main(["config", "validate", file]) == 0
    place = "note: profiles[0].pluginConfig"
    assert capsys.readouterr().err.splitlines() == [
        f"{file}:8: {place}[NodeResourcesFti]: has no effect: there is no plugin NodeResourcesFti;"
        ' did you mean "NodeResourcesFit"?',
        f"{file}:9: {place}[ImageLocality]: has no effect: the plugin ImageLocality is not enabled"
        " in this profile",
    ]


def test_shows_the_defaults_of_plugins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", write(tmp_path, "")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(HEAD)
    assert "schedulerName: default-scheduler" in shown
    assert "type: LeastAllocated" in shown


def test_shows_what_it_would_read_again_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["config", "show", write(tmp_path, "percentageOfNodesToScore: 40")])
    once = capsys.readouterr().out
    again = tmp_path / "again.yaml"
    again.write_text(once)
    assert main(["config", "show", str(again)]) == 0
    assert capsys.readouterr().out == once


def test_finds_plugins_in_the_current_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_of_the_test.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # undone after the test, unlike what main() adds
    file = write(tmp_path, "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]")
    assert main(["config", "validate", file]) == 1
    assert main(["config", "validate", file, "--plugin", "mine_of_the_test:Mine"]) == 0
    assert "valid" in capsys.readouterr().out


def test_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(HEAD + "parallelism: 0\n"))
    assert main(["config", "validate", "-"]) == 1
    assert "<stdin>:3: parallelism: Invalid value: 0" in capsys.readouterr().err


def test_names_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "absent.yaml")
    assert main(["config", "validate", file]) == 1
    assert f"{file}: No such file or directory" in capsys.readouterr().err


def test_accepts_extenders(tmp_path: Path) -> None:
    file = write(tmp_path, "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]")
    assert main(["config", "validate", file]) == 0


@pytest.mark.parametrize("words", [[], ["config"]])
def test_shows_help_when_asked_for_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "usage: mooring" in capsys.readouterr().out
