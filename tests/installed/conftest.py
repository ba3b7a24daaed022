"""Wheel and sdist, and the wheel in empty environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.installed.environment import Environment, call
from tests.sizes import sized

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist."""
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "hatchling", "build", "-d", str(folder), cwd=ROOT)
    return folder


def python_of(version: str) -> str:
    """An interpreter; skips where there is none."""
    if version == HERE:
        return sys.executable
    if sized(1) == 1:
        pytest.skip("MOORING_TEST_SIZE is 1: only the running Python")
    for found in (shutil.which(f"python{version}"), *_pyenv(version)):
        if found and _runs(found):  # a shim of pyenv is there for every version, and works for some
            return found
    pytest.skip(f"there is no Python {version} on this machine")


def _runs(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


def _pyenv(version: str) -> list[str]:
    folder = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [str(one / "bin" / "python") for one in sorted(folder.glob(f"{version}.*"))]


@pytest.fixture(scope="session", params=VERSIONS)
def installed(
    request: pytest.FixtureRequest, dist: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment with `mooring[test]` and nothing else."""
    python = python_of(request.param)
    folder = tmp_path_factory.mktemp("env")
    uv = [sys.executable, "-m", "uv"]
    call(*uv, "venv", "--quiet", "--python", python, str(folder), cwd=folder)
    [wheel] = dist.glob("*.whl")
    target = [*uv, "pip", "install", "--quiet", "--python", str(folder), f"{wheel}[test]"]
    if subprocess.run([*target, "--offline"], capture_output=True, check=False).returncode != 0:
        online = subprocess.run(target, capture_output=True, text=True, check=False)
        if online.returncode != 0:
            assert request.param != HERE, online.stderr
            pytest.skip(f"the dependencies can't be had for Python {request.param}")
    return Environment(folder)
