"""Output that cannot be written, and command lines that are malformed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mooring.cli import main
from mooring.cli.output import use_plain_spellings

HOWTO = Path(__file__).parents[2] / "docs" / "howto"
COMMANDS = ["--help", f"evaluate {HOWTO / 'scenario.jsonl'}", "demo"]  # argparse, bytes, rich
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(words: str, stdout: int, **env: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "mooring", *words.split()]
    process = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **env}, check=False
    )
    return process.returncode, process.stderr.decode()


@pytest.mark.parametrize("words", COMMANDS)
def test_ends_quietly_when_the_reader_has_gone(words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert run(words, writing) == (141, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("words", COMMANDS[:2])
def test_says_in_one_line_that_the_disk_is_full(words: str) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        expected = "mooring: can't write the output: No space left on device\n"
        assert run(words, full) == (1, expected)
    finally:
        os.close(full)


def test_writes_to_a_terminal_without_utf_8(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        assert run("--help", out.fileno(), **ASCII) == (0, "")
        assert run("run --help", out.fileno(), **ASCII) == (0, "")
        assert run("demo", out.fileno(), **ASCII) == (0, "")
    text = (tmp_path / "out").read_bytes().decode("ascii")
    assert "...`" in text
    assert "Traceback" not in text


def test_leaves_a_terminal_with_utf_8_alone(capsys: pytest.CaptureFixture[str]) -> None:
    use_plain_spellings()
    print("…")
    assert capsys.readouterr().out == "…\n"


@pytest.mark.parametrize(
    ("words", "meant"),
    [("clutser up", "cluster"), ("config valdate x", "validate"), ("new plugn X", "plugin")],
)
def test_suggests_the_command_that_was_meant(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f'; did you mean "{meant}"?\n')


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("cluster up --nodes ten", "--nodes"),
        ("cluster up --node-cpu lots", "--node-cpu"),
        ("cluster up --config x.yaml", "--config"),
        ("run --feature-gates Nonsense=true", "--feature-gates"),
        ("run --secure-port 70000", "--secure-port"),
        ("run --on-overrun X=explode", "--on-overrun"),
        ("manifests --name UPPER", "--name"),
        ("what-if x.yaml --scale web", "--scale"),
        ("snapshot -o x.json --redact everything", "--redact"),
    ],
)
def test_a_malformed_flag_has_exit_code_2_and_is_named(
    words: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(words.split())
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert f"{flag}: " in capsys.readouterr().err


def test_names_the_file_in_which_the_problem_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\ncurrent-context: absent\n")
    words = ["run", "--config", str(config), "--kubeconfig", str(kubeconfig), "--secure-port", "0"]
    assert main(words) == 1
    errors = capsys.readouterr().err
    assert f"{kubeconfig}: " in errors
    assert str(config) not in errors
