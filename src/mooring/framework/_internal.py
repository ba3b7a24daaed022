"""The private part of the contract, for plugins of this project only.

All of it may change without notice; plugins of users inherit from none of these classes. The
decision engine looks for these classes when a profile is built or columns are made, not for each
pod.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeGuard, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.api.meta import Object
from mooring.api.resource import AllocationResult, ResourceClaim
from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.hypothetical import NodesWithMorePods as NodesWithMorePods
from mooring.cache.hypothetical import NodesWithoutPods as NodesWithoutPods
from mooring.cache.hypothetical import PodLists
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.depends_on import DependsOn
from mooring.framework.depends_on import everything_of as everything_of
from mooring.framework.handle import Handle, WhatIf
from mooring.framework.handle import Nominator as Nominator
from mooring.framework.plugin import Base as Base
from mooring.framework.plugin import Filter, Score
from mooring.framework.state import CycleState, StateKey
from mooring.framework.verdicts import Verdicts

COMPARES_TAINTS: Final = "TaintTolerationComparisonOperators"
"""The feature gate of the operators Gt and Lt of tolerations."""
DEVICE_TAINT_RULES: Final = "DRADeviceTaintRules"
"""The feature gate of DeviceTaintRules."""
LIST_ATTRIBUTES: Final = "DRAListTypeAttributes"
"""The feature gate of attributes of devices that have several values."""

MERGE: Final = "merge"
STRATEGIC: Final = "strategic"
"""How a change of an object is applied: lists are replaced, or merged by their keys."""

S = TypeVar("S", np.bool_, np.int64)
O = TypeVar("O", bound=Object)  # noqa: E741 - an object; T is any value
T = TypeVar("T")


class Permissions(msgspec.Struct, frozen=True):
    """Verbs that a plugin needs on a kind, or on a subresource of it."""

    kind: type[Object]
    verbs: tuple[str, ...]
    subresource: str = ""


# --- dependencies of results ----------------------------------------------------------------------


class WhatIfBasis(NamedTuple):
    """Answers about a hypothetical node are the same while the key is, and the node's numbers are.

    And, as always, the node itself, its pods, and those that come or go.
    """

    key: Hashable
    columns: Sequence[IntArray | BoolArray] = ()  # with a number for each node


class InternalPlugin(Base):
    """A plugin of this project, with further declarations."""

    key_from_spec: ClassVar[bool] = False
    """Whether `applies_to`, `depends_on_for` and `cache_key` depend on the pod's spec alone; with a
    `key_version` they may also depend on what that version stands for."""

    skip_is_final: ClassVar[bool] = False
    """Whether SKIP at PreFilter also means that Reserve and PreBind have nothing to do."""

    answers_what_ifs: ClassVar[bool] = False
    """Whether `filter_all` is right about hypothetical nodes, even if it looks further than a node:
    it asks those nodes for their `change`, and needs no `add_pod` and `remove_pod`."""

    feature_gates: frozenset[str] = frozenset()
    """The enabled feature gates among those that are off by default; set for each profile."""

    gated_reads: ClassVar[Mapping[str, tuple[type[Object], ...]]] = {}
    """Kinds of `reads` and `wakes_on` that only count while a feature gate is on, by gate."""

    def depends_on_for(self, pod: Pod) -> DependsOn | None:
        """`depends_on` for one pod, for plugins where it differs from pod to pod."""
        return self.depends_on

    def what_if_basis(self, state: CycleState, pod: Pod, nodes: Nodes) -> WhatIfBasis | None:
        """What answers about hypothetical nodes depend on, if it is more than node, pods and key.

        Asked of plugins with `answers_what_ifs`; None: it can't be told.
        """
        return None

    def has_own_key(self, pod: Pod) -> bool:
        """Whether pods with this spec may have different cache keys: then each pod is asked for.

        It looks at what `key_from_spec` says.
        """
        return False

    permissions: ClassVar[tuple[Permissions, ...]] = ()
    """Permissions beyond those for `reads` and `writes`."""

    def key_version(self) -> Hashable:
        """A value that changes when cache keys may change; None: they may change at any time.

        A plugin that overrides it covers the objects of `reads` as well.
        """
        return None


def gated_reads(plugin: type[Base], feature_gates: frozenset[str]) -> tuple[type[Object], ...]:
    """The kinds that a plugin reads because feature gates are on."""
    if not issubclass(plugin, InternalPlugin):
        return ()
    gated = plugin.gated_reads
    return tuple(kind for gate in gated if gate in feature_gates for kind in gated[gate])


def depends_on_of(plugin: Base, pod: Pod) -> DependsOn | None:
    """The dependencies of a plugin's results for such pods; None: results are not cached."""
    if isinstance(plugin, InternalPlugin):
        return plugin.depends_on_for(pod)
    return plugin.depends_on


def depends_on_for(plugin: Base) -> Callable[[Pod], DependsOn | None] | None:
    """The function that gives a plugin's dependencies by pod; None: `depends_on` is for all."""
    if isinstance(plugin, InternalPlugin) and may_depend_by_pod(type(plugin)):
        return plugin.depends_on_for
    return None


def may_depend_by_pod(plugin_class: type[InternalPlugin]) -> bool:
    """Whether the dependencies of a plugin differ from pod to pod."""
    return plugin_class.depends_on_for is not InternalPlugin.depends_on_for


def may_depend_on(plugin_class: type[Base]) -> bool:
    """Whether results of a plugin can be cached, at least for some pods."""
    if plugin_class.depends_on is not None:
        return True
    return issubclass(plugin_class, InternalPlugin) and may_depend_by_pod(plugin_class)


def has_key_from_spec(plugin: Base) -> bool:
    """Whether a plugin's cache key depends on the pod's spec alone."""
    return isinstance(plugin, InternalPlugin) and plugin.key_from_spec


def may_have_own_key(plugin: Base) -> TypeGuard[InternalPlugin]:
    """Whether pods with one spec may have different cache keys for a plugin, in some cases."""
    if not isinstance(plugin, InternalPlugin):
        return False
    return type(plugin).has_own_key is not InternalPlugin.has_own_key


def has_key_version(plugin: Base) -> bool:
    """Whether a plugin has a version of its cache keys."""
    if not isinstance(plugin, InternalPlugin):
        return False
    return type(plugin).key_version is not InternalPlugin.key_version


def key_version_of(plugin: Base) -> Callable[[], Hashable]:
    """The function that gives the version of a plugin's cache keys."""
    return plugin.key_version if isinstance(plugin, InternalPlugin) else lambda: None


def answers_what_ifs(plugin: Base) -> bool:
    """Whether any plugin can be asked about many hypothetical nodes at once, whatever the pod."""
    return isinstance(plugin, InternalPlugin) and plugin.answers_what_ifs


def what_if_basis(plugin: Base, state: CycleState, pod: Pod, nodes: Nodes) -> WhatIfBasis | None:
    """What answers of any plugin about hypothetical nodes depend on, if it can be told."""
    if not (isinstance(plugin, InternalPlugin) and plugin.answers_what_ifs):
        return None
    return plugin.what_if_basis(state, pod, nodes)


def skip_is_final(plugin: Base) -> bool:
    """Whether Reserve and PreBind of a plugin have nothing to do after SKIP at PreFilter."""
    return isinstance(plugin, InternalPlugin) and plugin.skip_is_final


def vouches_for_reads(plugin: Base) -> bool:
    """Whether a plugin's cache key covers the objects that it reads."""
    return has_key_from_spec(plugin) or has_key_version(plugin)


# --- pods -----------------------------------------------------------------------------------------


def is_assigned_or_nominated(pod: Pod) -> bool:
    """Whether a pod has a node or is nominated: its change or deletion may help other pods."""
    return bool(pod.node_name or pod.nominated_node_name)


# --- answers by topology domain -------------------------------------------------------------------


class DomainTable(msgspec.Struct, Generic[S], frozen=True, eq=False):
    """A table by topology domain: an entry depends on the pods in its domain and on the basis.

    As long as the basis equals the one before (even that of a pod with another cache key), entries
    are read only for domains whose pods changed; when nodes change, all are read.
    """

    basis: Hashable
    at: Callable[[IntArray], NDArray[S]]  # entries for label codes, in any order


class DomainFilter(InternalPlugin, Filter):
    """A Filter that depends on a node only by its topology domains: the values of some labels.

    If its results are not cached, it is called for tables instead of for every node.
    """

    @abc.abstractmethod
    def filter_by_domain(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Mapping[str, BoolArray | DomainTable[np.bool_]]:
        """The nodes that `filter` refuses, by label key and code; any table can refuse a node.

        Each table has an entry for every code (`nodes.label_count`), code 0 for nodes without the
        label, and is kept: it must not change later. A `DomainTable` is cheaper to follow.
        """


class DomainScore(InternalPlugin, Score):
    """A Score that depends on a node only by its topology domains: the values of some labels.

    If its results are not cached, `pre_score` gets all nodes, feasible or not.
    """

    @abc.abstractmethod
    def score_by_domain(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Mapping[str, IntArray | DomainTable[np.int64]]:
        """The scores of `score`, by label key and code: a node gets the sum over all tables.

        As with `filter_by_domain`, tables are kept.
        """


def has_tables(plugin: Base) -> bool:
    """Whether a plugin gives tables by topology domain."""
    return isinstance(plugin, DomainFilter | DomainScore)


class ScoresByLabel(msgspec.Struct, frozen=True, eq=False):
    """Final scores, 0 to 100, that depend on one label of a node."""

    key: str
    points: IntArray  # per label code, code 0 for nodes without the label; int64


class ScoresByCode(msgspec.Struct, frozen=True, eq=False):
    """Final scores, 0 to 100, that depend on a small number that the plugin gives each node."""

    codes: IntArray  # of all nodes of the cluster, by row
    points: IntArray  # per code; int64


class ScoreByLabel(InternalPlugin, Score):
    """A Score whose normalized scores may depend on one label of a node, or on little more."""

    @abc.abstractmethod
    def normalized_by_label(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> ScoresByLabel | ScoresByCode | None:
        """The final scores of the feasible nodes, if they depend on one label or code of a node.

        They equal `score_all`, normalized, and have an entry for every label code
        (`nodes.label_count`) or code, also for those of infeasible nodes. Much cheaper for a plugin
        whose results are not cached. None: the scores depend on more than that.
        """


# --- earlier pods ---------------------------------------------------------------------------------


def earlier_value(state: CycleState, key: StateKey[T]) -> T | None:
    """The value that was stored for an earlier pod of the same class, if there was one.

    A plugin may reuse it instead of computing it again, and must not change it. For a plugin with
    tables by domain the earlier pod had an equal cache key; otherwise it may be any pod.
    """
    earlier = state._earlier
    return None if earlier is None else earlier.get(key)


# --- claims and their devices ---------------------------------------------------------------------


class AllocatesClaims(Base):
    """A plugin that allocates devices to claims; an evaluation shows what it would do."""

    @abc.abstractmethod
    def allocate(
        self, state: CycleState, pod: Pod, node: Node
    ) -> list[tuple[ResourceClaim, AllocationResult]]:
        """The claims that would be allocated on a feasible node, and what they would get."""

    @abc.abstractmethod
    def deallocatable(
        self, state: CycleState, pod: Pod, nodes: Nodes, verdicts: Verdicts
    ) -> list[ResourceClaim]:
        """The claims of which PostFilter deallocates or deletes the first."""

    @abc.abstractmethod
    def assume_in_flight(self, claim: ResourceClaim) -> None:
        """Count an allocation that is about to be written for another pod."""


class ObjectWriter(Protocol):
    """Writes of objects that are neither pod nor node, for plugins of this project.

    Failures are raised as `mooring.errors.ApiError`.
    """

    async def get(self, kind: type[O], name: str, namespace: str = "") -> O: ...

    async def create(self, value: O) -> O: ...

    async def change(
        self, value: O, change: Mapping[str, Any], *, subresource: str = "", kind: str = MERGE
    ) -> O:
        """Change some fields of an object; the object afterwards.

        With a resourceVersion in the change, the server refuses if the object has another one.
        """
        ...

    async def remove(self, value: Object) -> None:
        """Delete this object, and no other of the same name."""
        ...

    def soon(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Write in the background, from a point that cannot wait. `write` raises nothing."""
        ...


def object_writer_of(handle: Handle) -> ObjectWriter:
    """All of what the client of any handle of ours offers."""
    return cast("ObjectWriter", handle.client)


# --- many what-ifs at once ------------------------------------------------------------------------


class InternalNominator(Nominator, Protocol):
    """Nominated pods, and which of them have changed."""

    def __len__(self) -> int: ...

    def node_of(self, uid: str) -> str | None:
        """The node that a pod is nominated for."""
        ...

    @property
    def position(self) -> int:
        """This moment, for `changed_since`."""
        ...

    def changed_since(self, position: int) -> Sequence[str] | None:
        """The nodes whose nominated pods changed, some perhaps twice; None: perhaps all did."""
        ...


class InternalWhatIf(WhatIf, Protocol):
    """The profile's filters on many hypothetical nodes."""

    nominator: InternalNominator

    def without_pods(
        self, state: CycleState, pod: Pod, nodes: Nodes, rows: Sequence[int], without: PodLists
    ) -> NodesWithoutPods | None:
        """Many nodes at once, each without some of its pods, which can be added back.

        None if a filter of this pod has `add_pod` and `remove_pod` or depends on other nodes: then
        the nodes have to be tried one by one.
        """
        ...

    def fits_all(self, state: CycleState, pod: Pod, nodes: NodesWithoutPods) -> Verdicts | None:
        """As `fits`, for each of them. None if a filter failed; `fits` then says on which node."""
        ...

    def fixed(self, pod: Pod) -> frozenset[str]:
        """The filters that do not depend on the pods of a node, so that one call is enough."""
        ...

    def basis(self, state: CycleState, pod: Pod, nodes: Nodes) -> WhatIfBasis | None:
        """What all answers about hypothetical nodes depend on; None: it can't be told."""
        ...

    def nominated_on(self, node_name: str, pod: Pod) -> Sequence[Pod]:
        """The other pods that are nominated for a node, and that this pod has to respect."""
        ...


def what_if_of(handle: Handle) -> InternalWhatIf:
    """The what-ifs of a handle, with the private methods."""
    return cast("InternalWhatIf", handle.what_if)
