"""The trees that the in-process benchmarks compare: this one, and another commit checked out."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = "here"


@contextmanager
def trees(against: str = "") -> Iterator[dict[str, Path]]:
    """This tree under the name `HERE`, and the commit `against`, if given, under its own name.

    The other commit is a git worktree in a temporary folder and is removed at the end.
    """
    found = {HERE: ROOT}
    if not against:
        yield found
        return
    with tempfile.TemporaryDirectory(prefix="mooring-bench-") as scratch:
        found[against] = Path(scratch) / "tree"
        _git("worktree", "add", "--detach", str(found[against]), against)
        try:
            yield found
        finally:
            _git("worktree", "remove", "--force", str(found[against]))


def _git(*words: str) -> None:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {words[0]} {words[1]}: {done.stderr.strip()}")
