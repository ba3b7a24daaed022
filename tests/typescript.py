"""The TypeScript compiler for tests: found on this machine, or installed with npm into the cache.

`python -m tests.typescript` installs it if need be and prints how it is called. `MOORING_TSC` names
a `tsc` instead. Nothing is installed unless tests are required to run (`MOORING_REQUIRE_REAL=1`) or
this module is run by hand.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.golang import cache_folder

VERSION = "5.9.3"


class TypeScriptError(RuntimeError):
    """There is no TypeScript here."""


def tsc(*, install: bool = False) -> list[str]:
    """The command; raises TypeScriptError with the reason if there is none."""
    given = os.environ.get("MOORING_TSC") or shutil.which("tsc")
    if given:
        return [given]
    node = shutil.which("node")
    if node is None:
        raise TypeScriptError("there is no Node on this machine, which TypeScript needs")
    folder = cache_folder() / f"typescript-{VERSION}"
    script = folder / "node_modules" / "typescript" / "lib" / "tsc.js"
    if not script.exists() and install:
        _install(folder)
    if not script.exists():
        raise TypeScriptError("TypeScript is not installed: python -m tests.typescript")
    return [node, str(script)]


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise TypeScriptError("there is no npm on this machine to install TypeScript with")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "typescript.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of tests begin at once
        if folder.exists():
            return
        fresh = folder.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock"]
        done = subprocess.run(
            [npm, "install", *options, "--prefix", str(fresh), f"typescript@{VERSION}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise TypeScriptError(f"npm could not install it: {lines[-1] if lines else ''}")
        fresh.rename(folder)


if __name__ == "__main__":
    try:
        print(*tsc(install=True))
    except TypeScriptError as error:
        sys.exit(str(error))
