"""`mooring ui` as a process: the address, and what is wrong in one line."""

from __future__ import annotations

import re
import signal
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.page import ask_page
from tests.cli.process import Running
from tests.cli.stub_scheduler import stub_scheduler

from mooring.cli import main

CLUSTER = str(Path(__file__).parents[2] / "docs" / "howto" / "cluster.yaml")


def test_serves_a_file_until_it_is_told_to_stop() -> None:
    with Running("ui", CLUSTER, "--no-browser") as process:
        address = urlsplit(process.until("http://").strip())
        assert re.fullmatch(r"token=[\w-]{43}", address.fragment)
        assert not address.query
        assert len(ask_page(address.geturl(), "/lens/v1/state")["nodes"]["names"]) == 5
        assert process.stop(signal.SIGINT) == 0


def test_writes_page_and_data_into_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cluster.html"
    assert main(["ui", CLUSTER, "--html", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    page = out.read_text()
    assert page.startswith("<!doctype html>")
    assert 'http-equiv="Content-Security-Policy"' in page


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.snap"], "nowhere.snap: no such file or directory"),
        ([CLUSTER, "--html", "/nowhere/out.html"], "/nowhere/out.html: No such file or directory"),
        (["http://127.0.0.1:1"], "127.0.0.1:1: can't reach the server"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", *words, "--no-browser"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that a browser was told, which presses Ctrl-C afterwards."""
    found: list[str] = []

    def browse(address: str) -> bool:
        found.append(address)
        signal.raise_signal(signal.SIGINT)
        return True

    monkeypatch.setattr(webbrowser, "open", browse)
    return found


def test_opens_the_page_of_a_scheduler_in_a_browser(
    opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with stub_scheduler(lambda path: (200, b"{}")) as scheduler:
        assert main(["ui", scheduler.url]) == 0
    assert scheduler.asked == ["state"]
    assert capsys.readouterr().out.splitlines()[0] == opened[0]


def test_tells_a_reader_of_one_namespace_to_name_it(
    opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status = b'{"kind": "Status", "message": "nodes is forbidden", "reason": "Forbidden"}'
    with stub_scheduler(lambda path: (403, status)) as scheduler:
        assert main(["ui", scheduler.url]) == 1
        named = "a reader of one namespace names it: --namespace NAME"
        assert f"nodes is forbidden; {named}\n" in capsys.readouterr().err
        assert main(["ui", scheduler.url, "--namespace", "shop"]) == 1
        assert named not in capsys.readouterr().err
    assert opened == []
