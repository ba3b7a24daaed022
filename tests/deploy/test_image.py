"""What goes into the image: its Dockerfile, and the wheel that its steps make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from tests.deploy.dockerfile import all_of, read
from tests.deploy.rendering import ROOT, one

import mooring
from mooring.cli.manifests.command import objects
from mooring.cli.manifests.options import ManifestOptions, plan_release

BUILD, FINAL = read(ROOT / "Dockerfile")
SOURCES = [source for copy in all_of(BUILD, "COPY") for source in copy.words[:-1]]


# --- the Dockerfile -----------------------------------------------------------------------------


def test_runs_as_nobody_and_does_what_the_deployment_asks() -> None:
    (user,), (entry,) = all_of(FINAL, "USER"), all_of(FINAL, "ENTRYPOINT")
    assert user.rest == "65532:65532"
    assert entry.words == ["mooring"]
    pod = one(objects(plan_release(ManifestOptions(name="mooring"))), "Deployment")["spec"][
        "template"
    ]["spec"]
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["containers"][0]["args"][0] == "run"
    assert "command" not in pod["containers"][0]
    (port,) = all_of(FINAL, "EXPOSE")
    assert port.rest == str(pod["containers"][0]["ports"][0]["containerPort"])


def test_nothing_is_written_at_run_time() -> None:
    words = [word for env in all_of(FINAL, "ENV") for word in env.words]
    assert "PYTHONDONTWRITEBYTECODE=1" in words
    (health,) = all_of(FINAL, "HEALTHCHECK")
    assert health.rest == "NONE"


def test_base_is_pinned_and_no_step_depends_on_the_architecture() -> None:
    bases = {stage[0].words[0] for stage in (BUILD, FINAL)}
    assert bases == {"python:3.12-slim"}
    text = (ROOT / "Dockerfile").read_text()
    steps = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert not re.search(r"amd64|arm64|x86_64|aarch64|TARGETARCH|apt-get|curl|wget", steps)


def test_everything_installed_is_locked_with_hashes() -> None:
    installs = [
        command
        for run in all_of(BUILD, "RUN")
        for command in run.commands
        if command[0].endswith("pip")
    ]
    assert len(installs) == 3
    for command in installs:
        assert "--require-hashes" in command or "--no-index" in command
    for name in ("run.lock", "build.lock"):
        text = (ROOT / "deploy" / "image" / name).read_text()
        _, *entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)
        assert entries
        assert all("--hash=sha256:" in entry for entry in entries)


def test_label_is_of_this_version() -> None:
    (labels,) = all_of(FINAL, "LABEL")
    assert f"org.opencontainers.image.version={mooring.__version__}" in labels.words


def test_what_is_copied_is_in_the_build_context() -> None:
    allowed = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    ]
    for source in SOURCES:
        assert (ROOT / source).exists()
        assert any(source == path or source.startswith(f"{path}/") for path in allowed), source


# --- the wheel ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with mooring in it, made by the steps of the Dockerfile from what it copies."""
    folder = tmp_path_factory.mktemp("image")
    for source in SOURCES:
        if (ROOT / source).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, folder / source, ignore=unwanted)
        else:
            shutil.copy(ROOT / source, folder)
    build, install = all_of(BUILD, "RUN")[-1].commands
    assert build[:3] == ["python", "-m", "hatchling"]
    assert install[0] == "/opt/mooring/bin/pip"
    run_in(folder, *build[1:])
    target = ("--target", str(folder / "target"), "--quiet", "--disable-pip-version-check")
    run_in(folder, "-m", "pip", *install[1:], *target)
    return folder / "target"


def run_in(folder: Path, *arguments: str, path: Path | None = None) -> str:
    env = {**os.environ, **({"PYTHONPATH": str(path)} if path else {})}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_has_every_file_of_the_package(installed: Path) -> None:
    def files(folder: Path) -> set[str]:
        return {
            str(path.relative_to(folder))
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }

    found = files(installed / "mooring")
    assert found == files(installed.parent / "src" / "mooring")
    assert {
        "py.typed",
        "cluster/apiserver/schema.txt",
        "cli/templates/plugin/plugin.py.txt",
    } <= found


def test_wheel_registers_the_plugins_and_the_command(installed: Path) -> None:
    (metadata,) = installed.glob("mooring-*.dist-info")
    assert metadata.name == f"mooring-{mooring.__version__}.dist-info"
    entries = ConfigParser(delimiters="=")
    entries.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their case
    entries.read(metadata / "entry_points.txt")
    assert entries["console_scripts"]["mooring"] == "mooring.cli:main"
    assert "NodeResourcesFit" in entries["mooring.plugins"]


def test_what_is_installed_runs_and_leaves_no_file_behind(installed: Path, tmp_path: Path) -> None:
    where = "import mooring; print(mooring.__file__)"
    assert run_in(tmp_path, "-c", where, path=installed).startswith(str(installed))
    said = run_in(tmp_path, "-m", "mooring", "--version", path=installed)
    assert said == f"mooring {mooring.__version__}\n"
    (warm_up,) = all_of(FINAL, "RUN")
    assert warm_up.words[0] == "python"
    run_in(tmp_path, *warm_up.words[1:], path=installed)
    printed = run_in(tmp_path, "-m", "mooring", "manifests", "--name=mooring", path=installed)
    assert "kind: Deployment" in printed
    assert list(tmp_path.iterdir()) == []
