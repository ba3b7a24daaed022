"""The wheel in an empty environment, outside of the repository: what a user does first.

Demo and tutorials, as printed. With the running Python; with MOORING_TEST_SIZE above 1 with each
that is on this machine.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.controlplane.build import ControlPlaneError, binaries
from tests.installed.environment import Environment
from tests.installed.page import Terminal, steps

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIAL = DOCS / "tutorial-cluster.md"


def kubectl() -> Path | None:
    """The folder with kubectl, if it can be had."""
    try:
        return binaries()
    except ControlPlaneError as error:
        if os.environ.get("MOORING_REQUIRE_REAL") == "1":
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        return None


def test_runs_the_demo(installed: Environment, tmp_path: Path) -> None:
    assert "binds on 7 nodes" in installed.call("mooring", "demo", cwd=tmp_path)


def test_runs_the_first_tutorial(installed: Environment, tmp_path: Path) -> None:
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    code = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert len(code) > 5
    (tmp_path / "tutorial.py").write_text("\n".join(code))
    installed.call("python", "tutorial.py", cwd=tmp_path)


def test_runs_the_second_tutorial_step_by_step(installed: Environment, tmp_path: Path) -> None:
    with Terminal(installed, tmp_path, kubectl()) as terminal:
        for step in steps(TUTORIAL):
            terminal.take(step)


def test_the_second_tutorial_says_of_every_command_what_to_do_with_it() -> None:
    commands = TUTORIAL.read_text(encoding="utf-8").count("```sh\n")
    assert commands == len([step for step in steps(TUTORIAL) if step.text]) > 5
