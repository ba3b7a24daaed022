"""A served extender for tests: real sockets on loopback, an embedded cluster or none behind it."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import msgspec

from mooring import config as cfg
from mooring.api.codec import to_builtins
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.client.endpoint import Tls
from mooring.cluster.embedded import EmbeddedCluster
from mooring.extender import Extender
from mooring.extender.serving.app import App, Options
from mooring.framework.plugin import Base
from mooring.testing import node, pod


class Reply(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Served:
    """A running extender, and a connection to it that is kept."""

    def __init__(
        self, app: App, cluster: EmbeddedCluster | None, context: ssl.SSLContext | None
    ) -> None:
        self.app: App = app
        self._cluster = cluster
        self._context = context
        self._connection: http.client.HTTPConnection | None = None

    @property
    def cluster(self) -> EmbeddedCluster:
        assert self._cluster is not None
        return self._cluster

    async def post(self, path: str, payload: Any) -> Reply:
        body = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
        return await self.request("POST", path, body)

    async def ask(self, path: str, payload: Any) -> Any:
        """The answer to something that is answered."""
        reply = await self.post(path, payload)
        assert reply.status == 200, reply
        return reply.json

    async def filter(self, asked: Pod, nodes: Iterable[Node | str], path: str = "/filter") -> Any:
        return await self.ask(path, about(asked, nodes))

    async def prioritize(self, asked: Pod, nodes: Iterable[Node | str]) -> dict[str, int]:
        answer = await self.ask("/prioritize", about(asked, nodes))
        return {one["Host"]: one["Score"] for one in answer}

    async def request(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        return await asyncio.to_thread(self._request, method, path, body, headers or {})

    def _request(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        if self._connection is None:
            self._connection = self.connection()
        self._connection.request(method, path, body=body or None, headers=dict(headers))
        answer = self._connection.getresponse()
        return Reply(answer.status, dict(answer.getheaders()), answer.read())

    def connection(self) -> http.client.HTTPConnection:
        """A connection of one's own, to be closed."""
        if self._context is None:
            return http.client.HTTPConnection("127.0.0.1", self.app.port, timeout=20)
        return http.client.HTTPSConnection(
            "127.0.0.1", self.app.port, timeout=20, context=self._context
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


@asynccontextmanager
async def serve(
    served: Sequence[type[Base]] | Extender,
    *,
    cluster: bool = False,
    objects: Sequence[Any] = (),
    tls: Tls | None = None,
    context: ssl.SSLContext | None = None,
    config: str = "",
    ready: bool = True,
    **options: Any,
) -> AsyncIterator[Served]:
    """An extender that serves, with a cluster that holds some objects, or without any."""
    async with AsyncExitStack() as resources:
        embedded: EmbeddedCluster | None = None
        if cluster or objects:
            embedded = EmbeddedCluster(kubelets=False, controllers=())
            await resources.enter_async_context(embedded)
            embedded.apply(*objects)
        app = App(
            served.plugins if isinstance(served, Extender) else served,
            connect=embedded.transport if embedded is not None else None,
            options=Options(port=0, cluster=embedded is not None, **options),
            config=cfg.load_text(config) if config else None,
            tls=tls,
        )
        started = asyncio.Event()
        running = asyncio.create_task(app.run(lambda port: started.set()))
        await asyncio.wait(
            [running, asyncio.create_task(started.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
        if ready:
            await app.cluster.informers.wait_synced()
        told = Served(app, embedded, context)
        try:
            yield told
        finally:
            told.close()
            app.stop()
            await running


def about(asked: Pod, nodes: Iterable[Node | str]) -> dict[str, Any]:
    """ExtenderArgs, as kube-scheduler writes them: whole nodes, or their names."""
    listed = list(nodes)
    names = [one for one in listed if isinstance(one, str)]
    whole = [to_builtins(one.api) for one in listed if isinstance(one, Node)]
    full = {"metadata": {}, "items": whole} if whole or not names else None
    return {"Pod": to_builtins(asked.api), "Nodes": full, "NodeNames": names or None}


def binding(asked: Pod, to: str, uid: str = "") -> dict[str, str]:
    """ExtenderBindingArgs."""
    return {
        "PodName": asked.name,
        "PodNamespace": asked.namespace,
        "PodUID": uid or asked.uid,
        "Node": to,
    }


__all__ = ["Reply", "Served", "about", "binding", "node", "pod", "serve"]
