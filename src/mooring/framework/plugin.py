"""The contract: one small class per extension point.

A plugin inherits from the points it serves, and from `Plugin[ItsArgs]` if it takes arguments:

    class Headroom(Plugin[HeadroomArgs], Filter, Score): ...
    class ByName(Score): ...

The per-node methods are the specification and always exist. The `*_all` methods answer for every
node at once; without one the base class asks node by node. Both must agree:
`mooring.testing.check_plugin` proves it. Decisions are plain `def`; only `pre_bind`, `bind` and
`post_bind` may wait for the world.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, get_args

import msgspec
import numpy as np

from mooring.api.meta import Object
from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.events import ClusterEvent
from mooring.framework.handle import Handle
from mooring.framework.results import (
    LabelScores,
    LocalTable,
    Nominate,
    OnlyNodes,
    QueuedPod,
    Wait,
)
from mooring.framework.scope import Scope, everything_of
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Base of a plugin's arguments: camelCase in YAML, unknown fields refused.

    Cross-field rules raise ValueError in `__post_init__`; the loader adds the place in the file.
    """


class NoArgs(Args, frozen=True):
    """For plugins that take none."""


A = TypeVar("A", bound=Args)


class Base(abc.ABC):
    """What every plugin has, whatever its points."""

    name: ClassVar[str]
    """The name in configuration files, metrics and messages."""

    wakes_on: ClassVar[tuple[ClusterEvent, ...] | None] = None
    """Events that may make a pod schedulable that this plugin refused. None: any; (): none."""

    reads: ClassVar[tuple[type[Object], ...]] = ()
    """Kinds that this plugin looks up through `handle.objects`. Only these are watched for it."""

    writes: ClassVar[tuple[type[Object], ...]] = ()
    """Kinds that this plugin changes through `handle.client.update`."""

    scope: ClassVar[Scope | None] = None
    """What PreFilter, Filter, PreScore and Score say depends on; None: on anything.

    With a scope, pods with equal cache keys are asked about once, and then only about nodes that
    changed. What such a plugin stores in the cycle state is shared by those pods. When an object of
    `reads` changes, all is asked anew.
    """

    # For plugins of this project, and subject to change without notice:
    key_from_spec: ClassVar[bool] = False
    """Whether `applies_to`, `scope_of` and `cache_key` look at nothing but the pod's spec."""
    skip_is_final: ClassVar[bool] = False
    """Whether SKIP at PreFilter also means that there is nothing to reserve or to prepare."""

    args_type: ClassVar[type[Args]] = NoArgs
    """The type of `args`; filled in from `Plugin[...]`."""

    def __init__(self, args: Args, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for base in getattr(cls, "__orig_bases__", ()):
            for argument in get_args(base):
                if isinstance(argument, type) and issubclass(argument, Args):
                    cls.args_type = argument

    def scope_of(self, pod: Pod) -> Scope | None:
        """The scope for pods of this one's class, if it is not the same for all."""
        return self.scope

    def applies_to(self, pod: Pod) -> bool:
        """Whether this plugin has anything to say for such a pod, by the pod alone.

        If it has none, PreFilter, Filter, PreScore, Score, Reserve, Permit and PreBind leave this
        plugin out.
        """
        return True

    def cache_key(self, pod: Pod) -> Hashable:
        """All that answers with a scope depend on besides the node; equal keys share the answers.

        By default the pod's namespace, labels, annotations, controller and spec. A key may also
        hold what is known of other nodes or of objects; it is asked for again when a node, an
        object, or what `count_features` finds in pods has changed. Answers are also asked for about
        nodes that other filters refuse.
        """
        return everything_of(pod)

    def hint(self, event: ClusterEvent, pod: Pod, old: object | None, new: object | None) -> bool:
        """Whether this event may really help this pod.

        Asked only for events of `wakes_on`. Pods come as `Pod`, other objects as `mooring.api`
        values.
        """
        return True

    def key_version(self) -> Hashable:
        """A value that differs when a pod may have another `cache_key`; None: it always may.

        For plugins of this project, and subject to change without notice. A plugin that overrides
        it also answers for the objects that it reads.
        """
        return None

    def close(self) -> None:  # noqa: B027 - optional by design
        """Called once when the scheduler stops."""


class Plugin(Base, Generic[A]):
    """A plugin with typed arguments."""

    if TYPE_CHECKING:
        args: A

        def __init__(self, args: A, handle: Handle) -> None: ...


class QueueSort(Base):
    """Which of two pods is scheduled first. One per scheduler."""

    @abc.abstractmethod
    def less(self, a: QueuedPod, b: QueuedPod) -> bool: ...

    def sort_key(self, queued: QueuedPod) -> object | None:
        """A key that sorts as `less` does, if there is one: much cheaper for a long queue."""
        return None


class PreEnqueue(Base):
    """May this pod enter the queue at all? Any refusal gates it."""

    @abc.abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status: ...


class PreFilter(Base):
    """Once per attempt, before the nodes are looked at.

    SKIP: this plugin's Filter has nothing to say about this pod. `OnlyNodes`: look no further than
    these. `add_pod`/`remove_pod` keep what was stored in the state true when a what-if moves a pod;
    the node they are given has been changed already.
    """

    @abc.abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | OnlyNodes: ...

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: Node) -> Status:
        return OK

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: Node) -> Status:
        return OK


class Filter(Base):
    """Can this pod run on that node?"""

    @abc.abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: Node) -> Status: ...

    def filter_all(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts:
        return Verdicts.of(self.filter(state, pod, node) for node in nodes)


class DomainFilter(Filter):
    """A Filter that knows a node only by its topology domains: by the values of some labels.

    If it has to be asked for every pod, it is asked for tables instead of about every node.
    """

    @abc.abstractmethod
    def filter_by_domain(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Mapping[str, BoolArray | LocalTable[np.bool_]]:
        """Whom `filter` refuses, by label key and code: any table refuses, whatever others say.

        Each table has an entry for every code (`nodes.label_count`), code 0 for nodes without the
        label, and is kept: it must not change later. A `LocalTable` is cheaper to follow.
        """


class PostFilter(Base):
    """No node fits. `verdicts` says why, node by node; `Nominate` claims room that will be made."""

    evicts: ClassVar[bool] = True
    """Whether it may name victims. Without any such plugin, no right to delete pods is needed."""

    @abc.abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, nodes: Nodes, verdicts: Verdicts
    ) -> Status | Nominate: ...


class PreScore(Base):
    """Once per attempt, with the nodes that fit. SKIP: this plugin's Score does not count."""

    @abc.abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status: ...


class Score(Base):
    """How good is that node? Any int64; 0 to 100 once normalised."""

    @abc.abstractmethod
    def score(self, state: CycleState, pod: Pod, node: Node) -> int: ...

    def score_all(self, state: CycleState, pod: Pod, nodes: Nodes) -> IntArray:
        # index() refuses floats, which an int64 array would cut off without a word.
        scores = [operator.index(self.score(state, pod, node)) for node in nodes]
        return np.array(scores, dtype=np.int64)

    def final_by_label(self, state: CycleState, pod: Pod, nodes: Nodes) -> LabelScores | None:
        """What the nodes that fit get in the end, if that depends on one label of theirs.

        The points of `score_all`, normalised if they are: with an entry for every label code
        (`nodes.label_count`), also for those of no node that fits. It is much cheaper where a
        plugin has to be asked for every pod. None: it does not depend on one label alone.
        """
        return None


class DomainScore(Score):
    """A Score that knows a node only by its topology domains: by the values of some labels.

    If it has to be asked for every pod, `pre_score` is told of all nodes, whether or not they fit.
    """

    @abc.abstractmethod
    def score_by_domain(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Mapping[str, IntArray | LocalTable[np.int64]]:
        """The points of `score`, by label key and code: what all tables say of a node is added up.

        As with `filter_by_domain`, tables are kept.
        """


class NormalizeScore(Score):
    """A Score whose points are rescaled over the nodes that fit."""

    by_extremes: ClassVar[bool] = False
    """Whether a normalized score depends only on the raw score, the least and the most of them.

    Which nodes have a score, and how many, must not matter, and of the pod no more than its cache
    key: then each number is normalized only once.
    """

    @abc.abstractmethod
    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: Nodes, scores: IntArray
    ) -> IntArray: ...


class Reserve(Base):
    """The node is chosen: set aside what the pod needs.

    `unreserve` must cope with being called although `reserve` never was, and must not fail.
    """

    @abc.abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status: ...

    @abc.abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


class Permit(Base):
    """Let the pod go on to binding, refuse it, or make it wait."""

    @abc.abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | Wait: ...


class PreBind(Base):
    """Prepare the world for this pod on that node.

    `pre_flight` says beforehand whether there will be anything to do: OK or SKIP.
    """

    parallel: ClassVar[bool] = False
    """May run at the same time as neighbouring PreBind plugins that say so too."""

    def pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return OK

    @abc.abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status: ...


class Bind(Base):
    """Make it so. SKIP leaves it to the next Bind plugin."""

    @abc.abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status: ...


class PostBind(Base):
    """The pod is bound; tidy up. Cannot fail the pod any more."""

    @abc.abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None: ...
