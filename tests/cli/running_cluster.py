"""A laptop cluster in a process of its own, and questions to its API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.cli.process import Running

from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import load_kubeconfig
from mooring.client.transport import Request, Response

READY = "Ctrl-C ends it."


def send(kubeconfig: Path, *requests: Request) -> list[Response]:
    """What the server of a kubeconfig answers."""

    async def asking() -> list[Response]:
        transport = HttpTransport(load_kubeconfig(str(kubeconfig)), user_agent="test")
        try:
            return [await transport.send(request) for request in requests]
        finally:
            await transport.close()

    return asyncio.run(asking())


def ask(kubeconfig: Path, path: str) -> Any:
    (answer,) = send(kubeconfig, Request(method="GET", path=path))
    assert answer.status == 200, answer.body
    return json.loads(answer.body)


def up(kubeconfig: Path, *words: str, forked: bool = True) -> Running:
    return Running("cluster", "up", "--kubeconfig", str(kubeconfig), *words, forked=forked)
