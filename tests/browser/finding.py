"""A Chromium for tests: found on this machine, or installed from Debian's packages.

`python -m tests.browser.finding` installs it if need be and prints its path. `MOORING_CHROMIUM`
names one instead. Only a process of root on a machine with apt-get installs anything, and only if
tests are required to run (`MOORING_REQUIRE_REAL=1`) or this module is run by hand.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys

from tests.golang import cache_folder

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core")
_APT = ("apt-get", "-y", "-qq", "-o", "DPkg::Lock::Timeout=300")


class BrowserError(RuntimeError):
    """There is no browser here, or it does not start."""


def chromium(*, install: bool = False) -> str:
    """The path of the program; raises BrowserError with what to do."""
    given = os.environ.get("MOORING_CHROMIUM")
    if given:
        if not os.access(given, os.X_OK):
            raise BrowserError(f"MOORING_CHROMIUM names {given}, which is no program")
        return given
    found = _on_path()
    if found is None and install:
        _install()
        found = _on_path()
    if found is None:
        packages = " ".join(PACKAGES)
        raise BrowserError(f"there is no Chromium on this machine: apt-get install {packages}")
    return found


def _on_path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def _install() -> None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "browser.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of tests begin at once
        if _on_path() is not None:
            return
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for action in (["update"], ["install", "--no-install-recommends", *PACKAGES]):
            done = subprocess.run(
                [*_APT, *action], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                lines = (done.stderr or done.stdout).strip().splitlines()
                raise BrowserError(f"apt-get {action[0]} failed: {lines[-1] if lines else ''}")


if __name__ == "__main__":
    try:
        print(chromium(install=True))
    except BrowserError as error:
        sys.exit(str(error))
