"""The flags of `mooring run` and the file, laid over each other."""

import argparse
from pathlib import Path

import pytest

from mooring.cli import _with_command, main
from mooring.cli.options import from_namespace
from mooring.cli.parser import make_parser
from mooring.cli.run.flags import add_flags
from mooring.cli.run.options import RunOptions
from mooring.cli.run.settings import Settings, complete_settings
from mooring.errors import ConfigError

FILE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: mine}]
leaderElection: {leaseDuration: 30s, renewDeadline: 20s}
"""


def settled(*arguments: str) -> Settings:
    parsed = make_parser().parse_args(["run", *arguments])
    return complete_settings(from_namespace(RunOptions, parsed))


def problems(*arguments: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        settled(*arguments)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(FILE)
    return str(path)


def test_takes_the_lease_of_its_first_profile(file: str) -> None:
    election = settled("--config", file).config.leader_election
    assert (election.resource_name, election.resource_namespace) == ("mine", "kube-system")
    assert election.lease_duration.seconds == 30


def test_lets_flags_of_leader_election_override_the_file(file: str) -> None:
    election = settled(
        "--config",
        file,
        "--leader-elect=false",
        "--leader-elect-lease-duration=1m",
        "--leader-elect-resource-name",
        "other",
    ).config.leader_election
    assert election.leader_elect is False
    assert election.lease_duration.seconds == 60
    assert election.renew_deadline.seconds == 20
    assert election.resource_name == "other"


@pytest.mark.parametrize(
    ("spelling", "meaning"),
    [("--leader-elect", True), ("--leader-elect=true", True), ("--leader-elect=0", False)],
)
def test_reads_booleans_as_go_spells_them(spelling: str, meaning: bool) -> None:
    assert settled(spelling).config.leader_election.leader_elect is meaning


def test_refuses_the_lease_of_kube_scheduler() -> None:
    [problem] = problems("--leader-elect-resource-name=kube-scheduler")
    assert "kube-system/kube-scheduler" in problem
    assert "--leader-elect-resource-name" in problem


def test_does_not_mind_that_lease_where_nobody_elects() -> None:
    settled("--leader-elect=false", "--leader-elect-resource-name=kube-scheduler")


def test_reports_all_that_is_wrong_with_the_flags_at_once() -> None:
    found = problems("--tls-cert-file=x", "--secure-port=70000", "--node-selector=a=b=c")
    assert [line.split(":")[0] for line in found] == [
        "--tls-cert-file",
        "--secure-port",
        "--node-selector",
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--leader-elect=perhaps",), "--leader-elect: expected true or false, got 'perhaps'"),
        (
            ("--leader-elect-retry-period=soon",),
            '--leader-elect-retry-period: time: invalid duration "soon"',
        ),
        (("--record-size=²",), "--record-size: expected a number of attempts, got '²'"),
        (("--record-file-limit=big",), "--record-file-limit: expected a quantity such as"),
        (("--record-file-limit=5Ki",), "expected a size of 1Mi or more, got '5Ki'"),
        (("--record-otlp-share=half",), "expected a number from 0 to 1, got 'half'"),
        (("--record-otlp-share=1.5",), "expected a number from 0 to 1, got '1.5'"),
    ],
)
def test_says_how_the_value_of_a_flag_is_spelled(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        settled(*words)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err.splitlines()[-1]


def test_reads_the_size_of_a_record_as_it_is_written() -> None:
    options = settled("--record-size=5", "--record-file-limit=2Mi").options
    assert (options.record_size, options.record_file_limit) == (5, 2 << 20)


def test_refuses_flags_that_have_no_effect_without_another() -> None:
    nothing = "records nothing with --record-size 0"
    assert problems("--record-size=0", "--record-file=f", "--record-otlp=http://c:4318") == [
        f"--record-file: {nothing}",
        f"--record-otlp: {nothing}",
    ]
    assert problems("--shadow-report=f") == ["--shadow-report: needs --shadow beside it"]


# A start that connects to nothing: it is only checked, or ends before it connects.
START = ("run", "--master=http://127.0.0.1:1", "--secure-port=0", "--leader-elect=false")


def test_warns_of_flags_of_kube_scheduler_that_do_nothing_here(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*START, "--check-start", "--profiling=false", "--vmodule=x=1"]) == 0
    said = capsys.readouterr().err
    for flag in ("--profiling", "--vmodule"):
        assert f'the flag has no effect" flag="{flag}"' in said


def test_names_the_report_of_a_shadow_that_can_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "no" / "report"
    assert main([*START, "--shadow", "--shadow-report", str(report)]) == 1
    why = f"--shadow-report: can't write {report}: No such file or directory"
    assert why in capsys.readouterr().err


def test_says_which_feature_gates_can_not_be_turned() -> None:
    assert problems("--feature-gates=GangScheduling=true,SchedulerQueueingHints=false,Nope=1") == [
        "--feature-gates: GangScheduling is not served in mooring",
        "--feature-gates: SchedulerQueueingHints is always on in mooring",
        "--feature-gates: expected NAME=true or false: 'Nope=1'",
    ]
    assert problems("--feature-gates=Nope=true") == [
        "--feature-gates: unrecognized feature gate: Nope"
    ]
    assert not settled(
        "--feature-gates", "GangScheduling=false,SchedulerQueueingHints=true"
    ).feature_gates


def test_turns_the_feature_gates_that_can_be_turned() -> None:
    gate = "TaintTolerationComparisonOperators"
    assert settled("--feature-gates", f"{gate}=true").feature_gates == {gate}
    assert settled("--feature-gates", f"{gate}=True,GangScheduling=false").feature_gates == {gate}
    assert not settled("--feature-gates", f"{gate}=true,{gate}=false").feature_gates
    assert not settled().feature_gates


def test_is_what_plain_mooring_with_flags_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert _with_command(["--config", "x"]) == ["run", "--config", "x"]
    assert _with_command(["--help"]) == ["--help"]
    assert _with_command(["demo"]) == ["demo"]
    assert _with_command([]) == []
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert _with_command([]) == ["run"]


def test_writes_the_full_configuration_and_exits(file: str, tmp_path: Path) -> None:
    target = tmp_path / "full.yaml"
    assert main(["--config", file, "--write-config-to", str(target)]) == 0
    text = target.read_text()
    assert "schedulerName: mine" in text
    assert "resourceName: mine" in text
    assert "name: NodeResourcesFit" in text
    again = tmp_path / "again.yaml"
    assert main(["run", "--config", str(target), "--write-config-to", str(again)]) == 0
    assert again.read_text() == text


def test_names_a_file_that_can_not_be_written(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "no" / "such" / "folder.yaml"
    assert main(["--config", file, "--write-config-to", str(target)]) == 1
    assert str(target) in capsys.readouterr().err


def test_says_where_a_broken_file_is_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(FILE + "parallelism: many\n")
    assert main(["--config", str(path)]) == 1
    assert "parallelism" in capsys.readouterr().err


def test_has_every_flag_in_its_reference() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    add_flags(parser)
    page = (Path(__file__).parents[2] / "docs/reference/flags.md").read_text()
    flags = [flag for action in parser._actions for flag in action.option_strings]
    assert len(flags) > 40
    assert not [flag for flag in flags if f"`{flag}" not in page]


def test_reads_what_follows_an_overrun(file: str) -> None:
    flags = ("--on-overrun", "NodeAffinity=skip", "--on-overrun=*=isolate")
    assert settled("--config", file, *flags).policies == {"NodeAffinity": "skip", "*": "isolate"}
    assert settled("--config", file).policies == {}


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("X=skip", "--on-overrun: no profile enables the plugin 'X'"),
        ("*=stop", "--on-overrun: expected PLUGIN=fail|skip|isolate, got '*=stop'"),
        ("skip", "--on-overrun: expected PLUGIN=fail|skip|isolate, got 'skip'"),
    ],
)
def test_refuses_what_can_not_follow_an_overrun(file: str, flag: str, problem: str) -> None:
    assert problems("--config", file, "--on-overrun", flag) == [problem]
