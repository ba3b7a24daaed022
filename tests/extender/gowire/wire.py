"""Builds the Go program that knows Kubernetes' own types of payloads, and asks it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests import golang

_SOURCES = Path(__file__).parent


def build() -> Path:
    """The binary for the sources as they are; `golang.GoError` if there is no Go."""
    sources = [*_SOURCES.glob("*.go"), _SOURCES / "go.mod", _SOURCES / "go.sum"]
    return golang.build("gowire", _SOURCES, sources, packages=["."]) / "gowire"


def through_go(payloads: Iterable[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Each payload, by the name of its type, as Go reads it strictly and writes it again."""
    lines = [json.dumps({"type": kind, "data": data}) for kind, data in payloads]
    done = subprocess.run(
        [str(build())],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = [json.loads(line) for line in done.stdout.split("\n") if line]
    assert len(found) == len(lines), done.stderr
    return found
