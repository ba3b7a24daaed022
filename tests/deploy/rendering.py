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

_RENDERER = Path(__file__).parent / "helmrender"
# What Helm wants on its objects, and says nothing about them.
_OF_HELM = ("app.kubernetes.io/managed-by", "helm.sh/chart")


class ChartError(RuntimeError):
    """Helm refused to render, and why."""


def helm_renderer() -> Path:
    """The program that renders charts; raises GoError if it can't be built."""
    sources = [_RENDERER / name for name in ("main.go", "go.mod", "go.sum")]
    return golang.build("helmrender", _RENDERER, sources, packages=["."]) / "helmrender"


def helm_files(
    values: Mapping[str, Any] | None = None,
    *,
    release: str = "mooring",
    namespace: str = "kube-system",
) -> dict[str, str]:
    """The rendered templates by their file names."""
    asked = {"chart": str(CHART), "release": release, "namespace": namespace}
    done = subprocess.run(
        [helm_renderer()],
        input=json.dumps({**asked, "values": values or {}}) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise ChartError(answer["error"])
    return {Path(name).name: text for name, text in answer["files"].items()}


def helm(values: Mapping[str, Any] | None = None, **release: str) -> list[Object]:
    """The objects of a release."""
    files = helm_files(values, **release)
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    return [value for text in texts for value in documents(text)]


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
