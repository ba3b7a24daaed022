"""`mooring ui` as a process: the address, and what is wrong in one line."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.page import ask_page
from tests.cli.process import Running

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
