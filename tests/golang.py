"""Building Go programs that tests run against: once, kept outside the tree, found by content.

A build is named after the hash of what it is made from, so the first use takes minutes and every
later one nothing. Without Go there is nothing to build with: `GoError` says so in a sentence.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

# Where Go's installer puts it; the folder is not always on the path.
_USUAL_PLACE = Path("/usr/local/go/bin/go")
_KEPT_BUILDS = 3


class GoError(RuntimeError):
    """There is no Go here, or it could not build."""


def cache_folder() -> Path:
    """Where builds and findings are kept, outside the tree."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mooring"


def go() -> str | None:
    """The Go command, or None."""
    return shutil.which("go") or (str(_USUAL_PLACE) if _USUAL_PLACE.exists() else None)


def build(
    name: str,
    module: Path,
    sources: Iterable[Path],
    *,
    packages: Sequence[str],
    ldflags: str = "-s -w",
    rename: Mapping[str, str] | None = None,
) -> Path:
    """The folder with the programs of one module, built if these sources were never seen."""
    digest = hashlib.sha256(ldflags.encode())
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    folder = cache_folder() / name / digest.hexdigest()[:16]
    if folder.exists():
        return folder
    command = go()
    if command is None:
        raise GoError(f"{name} is built with Go, and there is no Go on this machine's PATH")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one build is enough for all who wait
        if not folder.exists():
            go_build = [command, "build", "-trimpath", f"-ldflags={ldflags}"]
            fresh = _compile(go_build, module, folder.parent, packages)
            for old, new in (rename or {}).items():
                (fresh / old).rename(fresh / new)
            fresh.rename(folder)
            _prune(folder.parent)
    return folder


def _compile(command: list[str], module: Path, parent: Path, packages: Sequence[str]) -> Path:
    fresh = parent / f"building-{os.getpid()}"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    built = subprocess.run(
        [*command, "-o", f"{fresh}/", *packages],
        cwd=module,
        env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        shutil.rmtree(fresh)
        raise GoError(f"go build failed:\n{built.stderr.strip()}")
    return fresh


def _prune(parent: Path) -> None:
    folders = [path for path in parent.iterdir() if path.is_dir()]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in folders[_KEPT_BUILDS:]:
        shutil.rmtree(old, ignore_errors=True)
