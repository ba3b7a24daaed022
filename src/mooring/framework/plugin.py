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
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, Final, Generic, NamedTuple, TypeVar, get_args

import msgspec
import numpy as np

from mooring.api.meta import Object
from mooring.cache.arrays import IntArray
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.depends_on import DependsOn, everything_of
from mooring.framework.events import ClusterEvent
from mooring.framework.handle import Handle
from mooring.framework.results import (
    Nominate,
    OnlyNodes,
    QueuedPod,
    Wait,
)
from mooring.framework.scores import Normalizer
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Status
from mooring.framework.verdicts import Verdicts


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Base of a plugin's arguments: camelCase in YAML, unknown fields refused.

    Cross-field rules raise ValueError in `__post_init__`; the loader adds the place in the file. A
    plugin that takes none gets an `Args` without fields.
    """


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

    depends_on: ClassVar[DependsOn | None] = None
    """What PreFilter, Filter, PreScore and Score depend on: NODE, NODE_AND_PODS; None: anything.

    With `depends_on`, the plugin is asked once for all pods with equal cache keys, and then only
    about nodes that changed. What it stores in the cycle state is shared by those pods. When an
    object of `reads` changes, everything is asked again.
    """

    args_type: ClassVar[type[Args]] = Args
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

    def applies_to(self, pod: Pod) -> bool:
        """Whether this plugin has anything to say for such a pod, by the pod alone.

        If it has none, PreFilter, Filter, PreScore, Score, Reserve, Permit and PreBind leave this
        plugin out.
        """
        return True

    def cache_key(self, pod: Pod) -> Hashable:
        """All that the answers depend on besides `depends_on`; pods with equal keys share them.

        By default the pod's namespace, labels, annotations, controller and spec. A key may also
        hold what is known of other nodes or of objects; it is asked for again when a node, an
        object, or an affinity rule of a pod on a node has changed. Answers are also asked for about
        nodes that other filters refuse.
        """
        return everything_of(pod)

    def hint(self, event: ClusterEvent, pod: Pod, old: object | None, new: object | None) -> bool:
        """Whether this event may really help this pod.

        Asked only for events of `wakes_on`. Pods come as `Pod`, other objects as `mooring.api`
        values.
        """
        return True

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

    normalizer: ClassVar[Normalizer | None] = None
    """How raw scores become 0 to 100: BEST_IS_100, LEAST_IS_100, MIN_MAX; None: they are already.

    For any other way, `normalize_score` is overridden instead.
    """

    @abc.abstractmethod
    def score(self, state: CycleState, pod: Pod, node: Node) -> int: ...

    def score_all(self, state: CycleState, pod: Pod, nodes: Nodes) -> IntArray:
        # index() refuses floats, which an int64 array would cut off without a word.
        scores = [operator.index(self.score(state, pod, node)) for node in nodes]
        return np.array(scores, dtype=np.int64)

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: Nodes, scores: IntArray
    ) -> IntArray:
        """The raw scores of the feasible nodes as scores from 0 to 100.

        Without an override, the declared `normalizer` does it; that is cheaper.
        """
        return scores if self.normalizer is None else self.normalizer.normalize(scores)


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


class ExtensionPoint(NamedTuple):
    """What the rest of the code has to know about a point besides its class."""

    name: str  # in configuration files
    contract: type[Base]
    can_refuse: bool = False  # the pod then waits for an event of the plugin's `wakes_on`
    in_decision: bool = False  # part of the evaluation of a pod on the nodes


_TABLE: Final = (
    ExtensionPoint("preEnqueue", PreEnqueue, can_refuse=True),
    ExtensionPoint("queueSort", QueueSort),
    ExtensionPoint("preFilter", PreFilter, can_refuse=True, in_decision=True),
    ExtensionPoint("filter", Filter, can_refuse=True, in_decision=True),
    # While the victims of a nomination leave, the pod is gated in the name of the plugin.
    ExtensionPoint("postFilter", PostFilter, can_refuse=True),
    ExtensionPoint("preScore", PreScore, in_decision=True),
    ExtensionPoint("score", Score, in_decision=True),
    ExtensionPoint("reserve", Reserve, can_refuse=True),
    ExtensionPoint("permit", Permit, can_refuse=True),
    # After a refusal by one of these the pod is tried again without waiting for an event.
    ExtensionPoint("preBind", PreBind),
    ExtensionPoint("bind", Bind),
    ExtensionPoint("postBind", PostBind),
)
POINTS: Final[dict[str, type[Base]]] = {point.name: point.contract for point in _TABLE}
"""The extension points by their names in configuration files."""

CAN_REFUSE: Final = tuple(point.contract for point in _TABLE if point.can_refuse)
IN_DECISIONS: Final = tuple(point.contract for point in _TABLE if point.in_decision)
