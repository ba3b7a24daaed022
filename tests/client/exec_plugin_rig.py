"""A plugin made of a shell script, for tests of exec plugins."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Pair

from mooring.client.endpoint import Headers
from mooring.client.errors import Unreachable
from mooring.client.exec_plugin import ExecPlugin, ExecSettings

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
NOW = 1_700_000_000.0


class ExecPluginRig:
    """A plugin made of a shell script, with clocks that are moved by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder: Path = folder
        self.monotonic: float = 100.0
        self.now: float = NOW
        self.terminal: bool = False
        self.answer: Path = folder / "answer"
        self.script("cat answer")

    def script(self, *lines: str) -> None:
        """Replace what the plugin does; each run leaves a line in `runs`."""
        text = ["#!/bin/sh", f"cd {self.folder}", "echo run >> runs", *lines, ""]
        new = self.folder / "plugin.new"
        new.write_text("\n".join(text))
        new.chmod(0o755)
        new.replace(self.folder / "plugin")

    def say(self, status: Mapping[str, Any] | None, version: str = V1, **more: Any) -> None:
        answer: dict[str, Any] = {"kind": "ExecCredential", "apiVersion": version, **more}
        if status is not None:
            answer["status"] = status
        self.answer.write_text(json.dumps(answer))

    def plugin(self, *, time_limit: float = 60.0, **settings: Any) -> ExecPlugin:
        defaults = {
            "command": str(self.folder / "plugin"),
            "api_version": V1,
            "interactive_mode": "Never",
        }
        return ExecPlugin(
            ExecSettings(**(defaults | settings)),
            environ={"PATH": os.environ["PATH"], "COLOUR": "red"},
            has_terminal=lambda: self.terminal,
            clock=lambda: self.monotonic,
            now=lambda: self.now,
            time_limit=time_limit,
        )

    @property
    def runs(self) -> int:
        file = self.folder / "runs"
        return len(file.read_text().splitlines()) if file.exists() else 0

    def let_pass(self, seconds: float) -> None:
        self.monotonic += seconds
        self.now += seconds


def headers(plugin: ExecPlugin) -> Headers:
    return asyncio.run(plugin.headers())


def failure(plugin: ExecPlugin) -> str:
    with pytest.raises(Unreachable) as error:
        headers(plugin)
    assert not error.value.sent
    return str(error.value)


def bearer(token: str) -> Headers:
    return (("authorization", f"Bearer {token}"),)


def certificate(pair: Pair) -> dict[str, str]:
    return {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
    }
