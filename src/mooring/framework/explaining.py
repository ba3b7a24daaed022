"""What a plugin can say beyond its refusal: facts about it, and edits that would lift it.

Both are asked for when a decision is explained, never when one is made. Facts are shown; edits are
tried out on a private copy of the cluster, and only those that help are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.pods import Pod

WaitsFor = Literal["room", "others", "nothing"]
"""What may lift a refusal while the pod waits: pods that leave, something else, or no event."""

Target = Literal["pod", "cluster", "others", "configuration"]
"""What an edit changes: the pod itself, nodes, other pods and objects, or the configuration."""


class Span(msgspec.Struct, frozen=True):
    """The least and the most of an amount over some nodes, as Kubernetes quantities."""

    least: str
    most: str


class Fact(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a plugin knows about its refusal of some nodes."""

    text: str
    nodes: int = 0  # how many of them it is true of; 0: of all
    node: str = ""  # the one of them where the least is missing
    waits_for: WaitsFor | None = None  # None: by the code of the status
    resource: str = ""  # what is short
    asks: str = ""  # of it, by the pod
    missing: Span | None = None
    offers: str = ""  # the most that is left of it on any of them
    pods: tuple[str, ...] = ()  # "namespace/name": who holds, repels or is counted
    counts: Mapping[str, int] = {}  # pods by topology domain


class ObjectChange(NamedTuple):
    """One object before and after; without a name, the pod that is being explained.

    `to` is given the object as it is, or None if there is none, and returns what it becomes, or
    None if it is gone.
    """

    kind: type[Object]
    namespace: str
    name: str
    to: Callable[[Any], Any]


class PluginChange(NamedTuple):
    """Other arguments for a plugin of the profile; None: the plugin is disabled."""

    plugin: str
    args: msgspec.Struct | None


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be changed so that a node is not refused any more.

    Of several edits with one `family` the first that helps is enough: yield the mildest first.
    """

    target: Target
    text: str  # "tolerate pool=gpu:NoSchedule"
    changes: tuple[ObjectChange, ...]
    family: str
    amount: float = 0.0  # how far it goes: of one family, the least that helps is told
    cost: int = 0  # of edits of one target the cheaper is told first: pods that end, and the like
    one_of: str = ""  # its text for several nodes alike, with {count} and {node}
    plugin: PluginChange | None = None  # a change of the configuration

    @classmethod
    def of_pod(
        cls,
        text: str,
        to: Callable[[core.Pod], core.Pod],
        *,
        family: str,
        amount: float = 0.0,
        cost: int = 0,
    ) -> Edit:
        """A change of the pod that is being explained."""
        changes = (ObjectChange(core.Pod, "", "", to),)
        return cls(
            target="pod", text=text, changes=changes, family=family, amount=amount, cost=cost
        )

    @classmethod
    def of_pod_spec(
        cls, text: str, *, family: str, amount: float = 0.0, cost: int = 0, **fields: Any
    ) -> Edit:
        """Other values for fields of its spec."""

        def to(pod: core.Pod) -> core.Pod:
            return structs.replace(pod, spec=structs.replace(pod.spec, **fields))

        return cls.of_pod(text, to, family=family, amount=amount, cost=cost)

    @classmethod
    def of_node(
        cls,
        text: str,
        name: str,
        to: Callable[[core.Node], core.Node],
        *,
        family: str,
        cost: int = 0,
        one_of: str = "",
    ) -> Edit:
        """A change of one node."""
        return cls(
            target="cluster",
            text=text,
            changes=(ObjectChange(core.Node, "", name, to),),
            family=family,
            cost=cost,
            one_of=one_of,
        )

    @classmethod
    def end_pods(
        cls, text: str, pods: Iterable[Pod], *, family: str, target: Target = "others"
    ) -> Edit:
        """These pods end, or are moved elsewhere."""
        changes = tuple(ObjectChange(core.Pod, pod.namespace, pod.name, gone) for pod in pods)
        return cls(target=target, text=text, changes=changes, family=family, cost=len(changes))

    @classmethod
    def of_args(
        cls,
        text: str,
        plugin: str,
        args: msgspec.Struct | None,
        *,
        family: str,
        amount: float = 0.0,
        cost: int = 0,
    ) -> Edit:
        """Other arguments for a plugin of the profile; without any, the plugin is disabled."""
        return cls(
            target="configuration",
            text=text,
            changes=(),
            family=family,
            amount=amount,
            cost=cost,
            plugin=PluginChange(plugin, args),
        )


def gone(before: object) -> None:
    """What an object becomes that ends."""


LAST_RESORT: Final = 1_000
"""The cost of an edit that is told only if nothing else helps."""

MOST_ENDING: Final = 10
"""Pods that an edit may end: with more it is no small change."""

MOST_NAMES: Final = 5


def listed(names: Iterable[str], most: int = MOST_NAMES) -> str:
    """Some names in a sentence: "a, b and 3 more"."""
    every = list(names)
    if len(every) > most:
        return f"{', '.join(every[:most])} and {len(every) - most} more"
    return ", ".join(every[:-1]) + " and " + every[-1] if len(every) > 1 else "".join(every)
