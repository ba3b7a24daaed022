"""The client of one extender: sends a verb and reads the result.

Every failure is an `ExtenderError` that names the extender and the verb, because it ends up in the
Events of a pod. Texts are kube-scheduler's where it has one.
"""

from __future__ import annotations

from typing import Final

import msgspec

from mooring import config as cfg
from mooring.api import core
from mooring.api.codec import DecodeError, encode
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.errors import Unreachable
from mooring.client.raw_objects import RawObjects
from mooring.client.transport import Fence, Request, Transport
from mooring.extender import wire
from mooring.extender.wire import A, AnyVerb, R, Verb

# The largest answer in bytes: a constant, and a multiple of the request, whose names and nodes are
# returned with a reason each.
_MOST_ALWAYS: Final = 1024 * 1024
_MOST_TIMES: Final = 4

NAME: Final = "Extender"
"""The plugin name of the refusals of extenders."""


class ExtenderError(Exception):
    """An extender gave no answer, or an invalid one."""


class Documents:
    """Pods and nodes as extenders get them: the raw JSON of the API server, where it was kept.

    Other objects are encoded from the structs of `mooring.api`.
    """

    def __init__(
        self,
        pods: RawObjects[core.Pod] | None = None,
        nodes: RawObjects[core.Node] | None = None,
    ) -> None:
        self.pods: RawObjects[core.Pod] | None = pods
        self.nodes: RawObjects[core.Node] | None = nodes

    def pod(self, pod: Pod) -> msgspec.Raw:
        found = self.pods.get(pod.uid) if self.pods is not None else None
        return msgspec.Raw(encode(pod.api) if found is None else found)

    def node(self, node: core.Node) -> msgspec.Raw:
        found = self.nodes.get(node.metadata.uid) if self.nodes is not None else None
        return msgspec.Raw(encode(node) if found is None else found)


class ExtenderCaller:
    """One entry of `extenders:`; the transport includes its `urlPrefix`."""

    def __init__(
        self, config: cfg.Extender, transport: Transport, documents: Documents | None = None
    ) -> None:
        self.config: cfg.Extender = config
        self.name: str = config.url_prefix
        self._transport = transport
        self.documents: Documents = documents or Documents()
        self._managed = frozenset(resource.name for resource in config.managed_resources)

    def __repr__(self) -> str:
        return f"ExtenderCaller({self.name!r})"

    def is_interested(self, pod: Pod) -> bool:
        """As HTTPExtender.IsInterested: whether the pod uses one of its managed resources."""
        if not self._managed:
            return True
        spec = pod.spec
        return any(
            not self._managed.isdisjoint(container.resources.requests)
            or not self._managed.isdisjoint(container.resources.limits)
            for container in (*spec.containers, *spec.init_containers)
        )

    def serves(self, verb: AnyVerb) -> bool:
        return bool(verb.path_at(self.config))

    def about(self, pod: Pod, nodes: Nodes) -> wire.ExtenderArgs:
        """The arguments of filter and prioritize."""
        document = self.documents.pod(pod)
        if self.config.node_cache_capable:
            return wire.ExtenderArgs(document, node_names=nodes.names)
        items = tuple(self.documents.node(node.api) for node in nodes)
        return wire.ExtenderArgs(document, nodes=wire.NodeList(items=items))

    async def ask(self, verb: Verb[A, R], args: A, fence: Fence | None = None) -> R:
        """The result of a verb; `fence` is checked at the moment of sending."""
        path, body = verb.path_at(self.config), wire.encode(args)
        request = Request(
            method="POST",
            path=f"/{path}",
            body=body,
            timeout=self.config.http_timeout.seconds,
            max_answer=_MOST_ALWAYS + _MOST_TIMES * len(body),
        )
        try:
            answer = await self._transport.send(request, fence)
        except Unreachable as error:
            raise self.failure(verb, error) from error
        if answer.status != 200:
            text = f"failed {path} with extender at URL {self._url(verb)}, code {answer.status}"
            raise ExtenderError(text)
        try:
            return wire.decode(answer.body, verb.result)
        except DecodeError as error:
            raise self.failure(verb, error) from error

    def failure(self, verb: AnyVerb, why: object) -> ExtenderError:
        return ExtenderError(f'Post "{self._url(verb)}": {why}')

    async def close(self) -> None:
        await self._transport.close()

    def _url(self, verb: AnyVerb) -> str:
        return f"{self.name.rstrip('/')}/{verb.path_at(self.config)}"
