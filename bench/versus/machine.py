"""On what and with what a benchmark was run, and how busy that was otherwise."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.controlplane.build import binaries

import mooring

_CALM: Final = 0.02  # seconds of CPU in `_LOOK` seconds that are nothing
_LOOK: Final = 0.5
_ROOT = Path(__file__).resolve().parents[2]


def machine() -> dict[str, str]:
    """The processor, the memory, the kernel."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "processor": _processor(),
        "cores": str(cores),
        "memory": f"{memory:.0f} GiB",
        "open files": str(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
    }


def versions() -> dict[str, str]:
    """Of everything that takes part."""
    folder = binaries()
    kube = _said(str(folder / "kube-scheduler"), "--version").split()[-1]
    etcd = _said(str(folder / "etcd"), "--version").splitlines()[0].split()[-1]
    return {
        "mooring": f"{mooring.__version__} ({_revision()})",
        "kube-scheduler, kube-apiserver": kube,
        "etcd": etcd,
        "Python": platform.python_version(),
    }


def busy_seconds() -> float:
    """CPU time of everything on this machine since its start, with what its host took away."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _waiting, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def wait_for_calm(cpu_seconds: Callable[[], float], longest: float) -> float:
    """Wait until programs have nothing left to do, or so many seconds; their CPU seconds then."""
    latest = time.monotonic() + longest
    used = cpu_seconds()
    while time.monotonic() < latest:
        time.sleep(_LOOK)
        before, used = used, cpu_seconds()
        if used - before <= _CALM:
            break
    return used


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _revision() -> str:
    try:
        commit = _said("git", "-C", str(_ROOT), "rev-parse", "--short", "HEAD")
        changed = _said("git", "-C", str(_ROOT), "status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return "not a checkout"
    return f"{commit} with changes" if changed else commit


def _said(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()
