"""The contract: one small class per extension point.

A plugin inherits from the points it serves, and from `Plugin[ItsArgs]` if it takes arguments:

    class Headroom(Plugin[HeadroomArgs], Filter, Score): ...
    class ByName(Score): ...

The per-node methods are the specification and always exist. The `*_all` methods answer for all
nodes in one call; by default they call the per-node method for each node. Both must agree:
`mooring.testing.check_plugin` checks that. Methods of a decision are plain `def`; only `pre_bind`,
`bind` and `post_bind` are `async` and may do I/O.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Hashable, Iterable
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
from mooring.framework.explaining import Edit, Fact
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
    """The base of every plugin: declarations, and methods that belong to no extension point."""

    name: ClassVar[str]
    """The name in configuration files, metrics and messages."""

    wakes_on: ClassVar[tuple[ClusterEvent, ...] | None] = None
    """The events that may help a pod that this plugin refused. None: any event; (): none."""

    reads: ClassVar[tuple[type[Object], ...]] = ()
    """Kinds that this plugin looks up through `handle.objects`. Only these are watched for it."""

    writes: ClassVar[tuple[type[Object], ...]] = ()
    """Kinds that this plugin changes through `handle.client.update`."""

    depends_on: ClassVar[DependsOn | None] = None
    """What PreFilter, Filter, PreScore and Score depend on: NODE, NODE_AND_PODS; None: anything.

    With `depends_on`, results are cached: the plugin is called once for all pods with equal cache
    keys, and then only for nodes that changed. Those pods share what it stores in the cycle state.
    When an object of `reads` changes, the cached results are discarded.
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

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        # There are no virtual subclasses; to find none, `abc` would look at all real ones.
        return cls in other.__mro__

    def applies_to(self, pod: Pod) -> bool:
        """Whether this plugin matters for such a pod; it must depend on the pod alone.

        If not, PreFilter, Filter, PreScore, Score, Reserve, Permit and PreBind skip this plugin.
        """
        return True

    def cache_key(self, pod: Pod) -> Hashable:
        """Everything besides `depends_on` that results depend on; pods with equal keys share them.

        By default the pod's namespace, labels, annotations, controller and spec. A key may also
        contain data about other nodes or objects: it is computed again when a node, an object, or
        an affinity rule of a pod on a node has changed. Cached results cover all nodes, also those
        that other filters refuse.
        """
        return everything_of(pod)

    def hint(self, event: ClusterEvent, pod: Pod, old: object | None, new: object | None) -> bool:
        """The queueing hint: whether this event may help this pod.

        Called only for events of `wakes_on`. Pods are passed as `Pod`, other objects as values of
        `mooring.api`.
        """
        return True

    def facts(self, state: CycleState, pod: Pod, nodes: Nodes, status: Status) -> Iterable[Fact]:
        """What is behind a refusal of these nodes, to explain it; never asked for in a decision.

        All of them were refused with the reasons of `status`, before or in Filter.
        """
        return ()

    def remedies(
        self, state: CycleState, pod: Pod, node: Node | None, status: Status
    ) -> Iterable[Edit]:
        """What would lift a refusal, the mildest first; each is tried out before it is told.

        Without a node, the pod was refused before any was looked at.
        """
        return ()

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
        """A sort key in the order of `less`, if there is one: much cheaper for a long queue."""
        return None


class PreEnqueue(Base):
    """Whether a pod may enter the active queue. A refused pod is gated."""

    reports_waiting: ClassVar[bool] = True
    """Whether an Event of the pod says so, once, while this plugin keeps it waiting."""

    @abc.abstractmethod
    def pre_enqueue(self, pod: Pod) -> Status: ...


class PreFilter(Base):
    """Runs once per attempt, before Filter.

    SKIP: this plugin's Filter does not run for this pod. `OnlyNodes`: only these nodes are
    evaluated. `add_pod` and `remove_pod` update the stored state when a what-if adds or removes a
    pod; the node they get already has the change.
    """

    @abc.abstractmethod
    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status | OnlyNodes: ...

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: Node) -> Status:
        return OK

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: Node) -> Status:
        return OK


class Filter(Base):
    """Whether a pod can run on a node."""

    @abc.abstractmethod
    def filter(self, state: CycleState, pod: Pod, node: Node) -> Status: ...

    def filter_all(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdicts:
        return Verdicts.of(self.filter(state, pod, node) for node in nodes)


class PostFilter(Base):
    """Runs if no node is feasible. `verdicts` are the reasons by node; `Nominate` names a node."""

    evicts: ClassVar[bool] = True
    """Whether it may name victims. Without such a plugin, the scheduler need not delete pods."""

    @abc.abstractmethod
    def post_filter(
        self, state: CycleState, pod: Pod, nodes: Nodes, verdicts: Verdicts
    ) -> Status | Nominate: ...


class PreScore(Base):
    """Runs once per attempt, with the feasible nodes. SKIP: this plugin's Score does not run."""

    @abc.abstractmethod
    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status: ...


class Score(Base):
    """Scores a node for a pod: any int64, and 0 to 100 after normalization."""

    normalizer: ClassVar[Normalizer | None] = None
    """How raw scores become 0 to 100: BEST_IS_100, LEAST_IS_100, MIN_MAX; None: they are already.

    For any other way, `normalize_score` is overridden instead.
    """

    @abc.abstractmethod
    def score(self, state: CycleState, pod: Pod, node: Node) -> int: ...

    def score_all(self, state: CycleState, pod: Pod, nodes: Nodes) -> IntArray:
        # index() refuses floats, which an int64 array would silently truncate.
        scores = [operator.index(self.score(state, pod, node)) for node in nodes]
        return np.array(scores, dtype=np.int64)

    def normalize_score(
        self, state: CycleState, pod: Pod, nodes: Nodes, scores: IntArray
    ) -> IntArray:
        """The raw scores of the feasible nodes as scores from 0 to 100.

        By default the declared `normalizer` is applied, which is cheaper than an override.
        """
        return scores if self.normalizer is None else self.normalizer.normalize(scores)


class Reserve(Base):
    """Reserves resources for the pod on the chosen node.

    `unreserve` must not fail, even if `reserve` was not called.
    """

    @abc.abstractmethod
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status: ...

    @abc.abstractmethod
    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


class Permit(Base):
    """Allows the binding of a pod, refuses it, or makes the pod wait."""

    reports_waiting: ClassVar[bool] = True
    """Whether an Event of the pod says so, once, while this plugin keeps it waiting."""

    @abc.abstractmethod
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | Wait: ...


class PreBind(Base):
    """Prepares for the bind, for example volumes on the node.

    `pre_flight` says beforehand whether `pre_bind` will have anything to do: OK or SKIP.
    """

    parallel: ClassVar[bool] = False
    """Whether it may run at the same time as adjacent PreBind plugins that allow it as well."""

    def pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return OK

    @abc.abstractmethod
    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status: ...


class Bind(Base):
    """Binds the pod. SKIP: the next Bind plugin is called."""

    @abc.abstractmethod
    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status: ...


class PostBind(Base):
    """Runs after the bind, for cleanup. The pod can no longer fail."""

    @abc.abstractmethod
    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None: ...


class ExtensionPoint(NamedTuple):
    """The properties of an extension point besides its class."""

    name: str  # in configuration files
    contract: type[Base]
    can_refuse: bool = False  # the pod then waits for an event of the plugin's `wakes_on`
    in_decision: bool = False  # part of the evaluation of a pod on the nodes


_TABLE: Final = (
    ExtensionPoint("preEnqueue", PreEnqueue, can_refuse=True),
    ExtensionPoint("queueSort", QueueSort),
    ExtensionPoint("preFilter", PreFilter, can_refuse=True, in_decision=True),
    ExtensionPoint("filter", Filter, can_refuse=True, in_decision=True),
    # A preemptor is gated, in the name of the plugin, until its victims are gone.
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
