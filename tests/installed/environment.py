"""A shell in which mooring is installed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


class Environment:
    """A virtual environment and the variables that activate it."""

    def __init__(self, folder: Path) -> None:
        self.python = str(folder / "bin" / "python")
        self.variables = {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "VIRTUAL_ENV": str(folder),
            "PYTHONPATH": "",
            "PYTHONDONTWRITEBYTECODE": "",  # modules are compiled once, not in each process
        }

    def call(self, *command: str, cwd: Path) -> str:
        """What a command prints, which must succeed."""
        return call(*command, cwd=cwd, env=self.variables)


def call(*command: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """What a command prints, which must succeed."""
    found = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, f"{command}\n{found.stdout}\n{found.stderr}"
    return found.stdout
