"""The client of one extender: a method per verb, with checks of the answer.

Every failure is an `ExtenderError` that names the extender and the verb, because it ends up in the
Events of a pod. Texts are kube-scheduler's where it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from mooring import config as cfg
from mooring.api.codec import DecodeError
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.client.errors import Unreachable
from mooring.client.transport import Fence, Request, Transport
from mooring.extender import wire
from mooring.extender.calling.documents import Documents
from mooring.framework.results import Candidate
from mooring.framework.status import Status

T = TypeVar("T")

# The most bytes of an answer: a constant, and a multiple of the request, since names and nodes come
# back with a reason each.
_MOST_ALWAYS: Final = 1024 * 1024
_MOST_TIMES: Final = 4

NAME: Final = "Extender"
"""The plugin name of the refusals of extenders."""


class ExtenderError(Exception):
    """An extender gave no answer, or an invalid one."""


class Filtered(msgspec.Struct, frozen=True):
    """The result of filter: the nodes that are left, and reasons for others."""

    left: frozenset[str]
    refused: dict[str, Status]  # a node that is not left need not have a reason


class ExtenderCaller:
    """One entry of `extenders:`; the transport leads to its host, `urlPrefix` included."""

    def __init__(
        self, config: cfg.Extender, transport: Transport, documents: Documents | None = None
    ) -> None:
        self.config: cfg.Extender = config
        self.name: str = config.url_prefix
        self._transport = transport
        self._documents = documents or Documents()
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

    # --- the verbs -----------------------------------------------------------------------------

    async def filter(self, pod: Pod, nodes: Nodes) -> Filtered:
        verb = self.config.filter_verb
        result = await self._ask(verb, self._about(pod, nodes), wire.ExtenderFilterResult)
        if result.error:
            raise ExtenderError(result.error)
        names: Iterable[str] = ()
        if self.config.node_cache_capable and result.node_names is not None:
            names = result.node_names
        elif result.nodes is not None:
            names = self._names_of(verb, result.nodes)
        left = frozenset(names)
        unknown = left.difference(nodes.names)
        if unknown:
            raise ExtenderError(
                f'extender "{self.name}" claims a filtered node "{min(unknown)}" which is not'
                " found in the input node list"
            )
        failed = result.failed_nodes or {}
        unresolvable = result.failed_and_unresolvable_nodes or {}
        refused = {name: Status.unschedulable(why).by(NAME) for name, why in failed.items()}
        refused |= {name: Status.unresolvable(why).by(NAME) for name, why in unresolvable.items()}
        return Filtered(left, refused)

    async def prioritize(self, pod: Pod, nodes: Nodes) -> dict[str, int]:
        """Scores by node name."""
        verb = self.config.prioritize_verb
        if not verb:
            return dict.fromkeys(nodes.names, 0)
        result = await self._ask(verb, self._about(pod, nodes), wire.HostPriorityList)
        scores: dict[str, int] = {}
        for one in result:
            scores[one.host] = scores.get(one.host, 0) + one.score
        return scores

    async def preempt(
        self, pod: Pod, candidates: Sequence[Candidate], nodes: Nodes
    ) -> list[Candidate]:
        """The candidates that are left, possibly with other victims."""
        config, document = self.config, self._documents.pod
        metas: dict[str, wire.MetaVictims] | None = None
        full: dict[str, wire.Victims] | None = None
        if config.node_cache_capable:
            metas = {
                one.node_name: wire.MetaVictims(
                    tuple(wire.MetaPod(victim.uid) for victim in one.victims), one.pdb_violations
                )
                for one in candidates
            }
        else:
            full = {
                one.node_name: wire.Victims(
                    tuple(document(victim) for victim in one.victims), one.pdb_violations
                )
                for one in candidates
            }
        args = wire.ExtenderPreemptionArgs(document(pod), full, metas)
        result = await self._ask(config.preempt_verb, args, wire.ExtenderPreemptionResult)
        kept = (result.node_name_to_meta_victims or {}).items()
        return [self._candidate(nodes, name, victims) for name, victims in kept]

    async def bind(self, pod: Pod, node_name: str, fence: Fence | None = None) -> None:
        """Have the pod bound; `fence` is checked at the moment of sending."""
        args = wire.ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node_name)
        verb = self.config.bind_verb
        result = await self._ask(verb, args, wire.ExtenderBindingResult, fence)
        if result.error:
            raise ExtenderError(result.error)

    async def close(self) -> None:
        await self._transport.close()

    # --- inside --------------------------------------------------------------------------------

    def _about(self, pod: Pod, nodes: Nodes) -> wire.ExtenderArgs:
        document = self._documents.pod(pod)
        if self.config.node_cache_capable:
            return wire.ExtenderArgs(document, node_names=nodes.names)
        items = tuple(self._documents.node(node.api) for node in nodes)
        return wire.ExtenderArgs(document, nodes=wire.NodeList(items=items))

    def _names_of(self, verb: str, nodes: wire.NodeList) -> list[str]:
        try:
            return [wire.name_of(item) for item in nodes.items or ()]
        except DecodeError as error:
            raise ExtenderError(f"{self._at(verb)}: Nodes: {error}") from error

    def _candidate(self, nodes: Nodes, name: str, victims: wire.MetaVictims) -> Candidate:
        node = nodes.get(name)
        if node is None:
            text = f'extender "{self.name}" claims to preempt on a node "{name}" which is not found'
            raise ExtenderError(text)
        here = {pod.uid: pod for pod in node.pods}
        found = []
        for meta in victims.pods or ():
            victim = here.get(meta.uid)
            if victim is None:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: {meta.uid}) on node:"
                    f" {name}, but the pod is not found on that node"
                )
            found.append(victim)
        return Candidate(name, tuple(found), victims.num_pdb_violations)

    async def _ask(self, verb: str, payload: Any, type_: type[T], fence: Fence | None = None) -> T:
        body = wire.encode(payload)
        request = Request(
            method="POST",
            path=f"/{verb}",
            body=body,
            timeout=self.config.http_timeout.seconds,
            max_answer=_MOST_ALWAYS + _MOST_TIMES * len(body),
        )
        try:
            answer = await self._transport.send(request, fence)
        except Unreachable as error:
            raise ExtenderError(f"{self._at(verb)}: {error}") from error
        if answer.status != 200:
            at = f"{self.name.rstrip('/')}/{verb}"
            text = f"failed {verb} with extender at URL {at}, code {answer.status}"
            raise ExtenderError(text)
        try:
            return wire.decode(answer.body, type_)
        except DecodeError as error:
            raise ExtenderError(f"{self._at(verb)}: {error}") from error

    def _at(self, verb: str) -> str:
        return f'Post "{self.name.rstrip("/")}/{verb}"'
