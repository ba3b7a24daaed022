"""A cluster in the process of the test, and commands that ask it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mooring.cli import main
from mooring.cluster.embedded import EmbeddedCluster


@asynccontextmanager
async def serving(
    kubeconfig: Path, *objects: Any, **options: Any
) -> AsyncIterator[EmbeddedCluster]:
    """A cluster with these objects, and the kubeconfig of its first user; options of its server."""
    async with EmbeddedCluster(kubelets=False, controllers=False) as cluster:
        await cluster.serve(**options)
        assert cluster.http is not None
        cluster.http.kubeconfig(kubeconfig)
        cluster.apply(*objects)
        yield cluster


async def command(*words: object) -> int:
    """The exit code of a command, which runs in a thread beside the cluster."""
    return await asyncio.to_thread(main, [str(word) for word in words])
