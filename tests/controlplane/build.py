"""etcd, kube-apiserver, kube-scheduler and kubectl, built once into the cache folder.

`python -m tests.controlplane.build` builds them if need be and prints, as its last line, the
folder they are in. `MOORING_KUBE_BIN` names a folder with ready ones instead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests import golang

PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler", "kubectl")
KUBERNETES = "v1.36.0"

_MODULE = Path(__file__).parent / "binaries"
# Without these a program believes to be v0.0.0 and reads its feature gates accordingly.
_VERSION = {"gitVersion": KUBERNETES, "gitMajor": "1", "gitMinor": "36", "gitTreeState": "clean"}


class ControlPlaneError(RuntimeError):
    """The programs of the control plane can't be had, or do not run."""


def binaries() -> Path:
    """The folder that holds all of `PROGRAMS`."""
    given = os.environ.get("MOORING_KUBE_BIN")
    folder = Path(given) if given else _built()
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing:
        where = "MOORING_KUBE_BIN names" if given else "the cache holds"
        raise ControlPlaneError(f"{where} {folder}, which lacks {', '.join(missing)}")
    return folder


def _built() -> Path:
    stamps = " ".join(
        f"-X k8s.io/component-base/version.{name}={value}" for name, value in _VERSION.items()
    )
    try:
        return golang.build(
            "control-plane",
            _MODULE,
            [_MODULE / "go.mod", _MODULE / "go.sum"],
            packages=["tool"],
            ldflags=f"-s -w {stamps}",
            rename={"server": "etcd"},  # Go names a program after its package
        )
    except golang.GoError as error:
        raise ControlPlaneError(str(error)) from error


if __name__ == "__main__":
    print("building the control plane, some minutes the first time", file=sys.stderr)
    print(binaries())
