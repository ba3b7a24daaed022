"""Which tests of a run CI tries a second time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "failed_tests.py"


def tried_again(folder: Path, failed: list[str]) -> tuple[int, str]:
    file = folder / ".pytest_cache/v/cache/lastfailed"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(dict.fromkeys(failed, True)))
    command = [sys.executable, str(TOOL), "--at-most", "2"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


def test_few_are_named_and_tried_again(tmp_path: Path) -> None:
    assert tried_again(tmp_path, ["b", "a"]) == (0, "tried again, alone:\n  a\n  b\n")


@pytest.mark.parametrize(("failed", "why"), [([], "no test"), (["a", "b", "c"], "3 tests failed")])
def test_none_or_too_many_end_the_run(tmp_path: Path, failed: list[str], why: str) -> None:
    code, said = tried_again(tmp_path, failed)
    assert code == 1
    assert said.startswith(why)
