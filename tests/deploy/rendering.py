"""The ways to the same objects: our command, kustomize and Helm, each run for real."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from tests import golang
from tests.controlplane.build import binaries

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "mooring"
BASE = ROOT / "deploy" / "kustomize"

_MODULE = Path(__file__).parent / "helm"
# What Helm wants on its objects, and says nothing about them.
_OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart")


class ChartError(RuntimeError):
    """Helm refused to render, and why."""


def helm_binary() -> Path:
    """The program `helm`; raises GoError if it can't be built."""
    sources = [_MODULE / name for name in ("go.mod", "go.sum")]
    return golang.build("helm", _MODULE, sources, packages=["tool"]) / "helm"


def helm(
    values: Mapping[str, Any] | None = None,
    *,
    name: str = "mooring",
    namespace: str = "kube-system",
) -> list[Object]:
    """The objects of a release of our chart."""
    words = ["template", name, str(CHART), "--namespace", namespace]
    done = subprocess.run(
        [helm_binary(), *words, "--kube-version=1.36.0", "--values=-"],
        input=json.dumps(values or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise ChartError(done.stderr)
    return documents(done.stdout)


def kustomize(folder: Path = BASE) -> list[Object]:
    """The objects of a kustomization."""
    command = [str(binaries() / "kubectl"), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return documents(done.stdout)


def documents(text: str) -> list[Object]:
    return [value for value in yaml.safe_load_all(text) if value]


def by_name(objects: list[Object]) -> dict[str, Object]:
    """Objects under their kinds and names, without what only Helm has to say."""
    found = {f"{value['kind']}/{value['metadata']['name']}": _plain(value) for value in objects}
    assert len(found) == len(objects)
    return found


def one(objects: list[Object], kind: str) -> Object:
    (found,) = (value for value in objects if value["kind"] == kind)
    return found


def _plain(value: Object) -> Object:
    meta = value["metadata"]
    labels = {key: text for key, text in meta["labels"].items() if key not in _OF_HELM}
    return {**value, "metadata": {**meta, "labels": labels}}
