"""What plugins of this project have beyond the public contract.

For plugins of this project only: all of it may change without notice. Plugins of users inherit from
none of these classes. The decision engine asks which ones a plugin has when a profile is built, or
when columns are made, and not for each pod.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Final, Generic, Protocol, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cache.arrays import BoolArray, IntArray
from mooring.cache.hypothetical import NodesWithoutPods, PodLists
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

S = TypeVar("S", np.bool_, np.int64)
T = TypeVar("T")


# --- what answers depend on -----------------------------------------------------------------------


class InternalPlugin(Base):
    """A plugin of this project that says more about itself than others can."""

    key_from_spec: ClassVar[bool] = False
    """Whether `applies_to`, `depends_on_for` and `cache_key` look at nothing else of the pod than
    its spec; and at nothing else at all, unless there is a `key_version`."""

    skip_is_final: ClassVar[bool] = False
    """Whether SKIP at PreFilter also means that there is nothing to reserve or to prepare."""

    feature_gates: frozenset[str] = frozenset()
    """The feature gates that are on, of those that are off by default; set for each profile."""

    def depends_on_for(self, pod: Pod) -> DependsOn | None:
        """As `depends_on`, if it is not the same for all pods."""
        return self.depends_on

    def key_version(self) -> Hashable:
        """A value that differs when a pod may have another `cache_key`; None: it always may.

        A plugin that overrides it also answers for the objects that it reads.
        """
        return None


def depends_on_of(plugin: Base, pod: Pod) -> DependsOn | None:
    """What the answers of any plugin for pods like this one depend on; None: they are not kept."""
    if isinstance(plugin, InternalPlugin):
        return plugin.depends_on_for(pod)
    return plugin.depends_on


def depends_on_for(plugin: Base) -> Callable[[Pod], DependsOn | None] | None:
    """What to call for what the answers of any plugin depend on; None: it is `depends_on`."""
    if isinstance(plugin, InternalPlugin) and may_depend_by_pod(type(plugin)):
        return plugin.depends_on_for
    return None


def may_depend_by_pod(plugin_class: type[InternalPlugin]) -> bool:
    """Whether `depends_on` is not the same for all pods."""
    return plugin_class.depends_on_for is not InternalPlugin.depends_on_for


def may_depend_on(plugin_class: type[Base]) -> bool:
    """Whether a plugin has a `depends_on`, at least for some pods."""
    if plugin_class.depends_on is not None:
        return True
    return issubclass(plugin_class, InternalPlugin) and may_depend_by_pod(plugin_class)


def has_key_from_spec(plugin: Base) -> bool:
    """Whether the cache key of any plugin follows from the pod's spec."""
    return isinstance(plugin, InternalPlugin) and plugin.key_from_spec


def has_key_version(plugin: Base) -> bool:
    """Whether any plugin says when its cache keys may be others."""
    if not isinstance(plugin, InternalPlugin):
        return False
    return type(plugin).key_version is not InternalPlugin.key_version


def key_version_of(plugin: Base) -> Callable[[], Hashable]:
    """What to call for the version of the cache keys of any plugin."""
    return plugin.key_version if isinstance(plugin, InternalPlugin) else lambda: None


def skip_is_final(plugin: Base) -> bool:
    """Whether any plugin has nothing to reserve or to prepare after SKIP at PreFilter."""
    return isinstance(plugin, InternalPlugin) and plugin.skip_is_final


def vouches_for_reads(plugin: Base) -> bool:
    """Whether a plugin's own key says all that matters of the objects it reads."""
    return has_key_from_spec(plugin) or has_key_version(plugin)


# --- pods -----------------------------------------------------------------------------------------


def is_assigned_or_nominated(pod: Pod) -> bool:
    """Whether a pod has a node, or a claim on one: its change or deletion may help other pods."""
    return bool(pod.node_name or pod.nominated_node_name)


# --- answers by topology domain -------------------------------------------------------------------


class DomainTable(msgspec.Struct, Generic[S], frozen=True, eq=False):
    """By topology domain: an entry depends on the pods in the domain, and otherwise on the basis.

    As long as the basis is equal to the one before, which may be that of a pod with another cache
    key, entries are asked for only where pods came or went; when nodes change, all are.
    """

    basis: Hashable
    at: Callable[[IntArray], NDArray[S]]  # entries for label codes, in any order


class DomainFilter(InternalPlugin, Filter):
    """A Filter that knows a node only by its topology domains: by the values of some labels.

    If it has to be asked for every pod, it is asked for tables instead of about every node.
    """

    @abc.abstractmethod
    def filter_by_domain(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Mapping[str, BoolArray | DomainTable[np.bool_]]:
        """Which nodes `filter` refuses, by label key and code; one table that refuses is enough.

        Each table has an entry for every code (`nodes.label_count`), code 0 for nodes without the
        label, and is kept: it must not change later. A `DomainTable` is cheaper to follow.
        """


class DomainScore(InternalPlugin, Score):
    """A Score that knows a node only by its topology domains: by the values of some labels.

    If it has to be asked for every pod, `pre_score` is told of all nodes, whether or not they fit.
    """

    @abc.abstractmethod
    def score_by_domain(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> Mapping[str, IntArray | DomainTable[np.int64]]:
        """The points of `score`, by label key and code: what all tables say of a node is added up.

        As with `filter_by_domain`, tables are kept.
        """


def has_tables(plugin: Base) -> bool:
    """Whether any plugin gives tables by topology domain."""
    return isinstance(plugin, DomainFilter | DomainScore)


class ScoresByLabel(msgspec.Struct, frozen=True, eq=False):
    """Final scores, 0 to 100, of nodes that are told apart by one label only."""

    key: str
    points: IntArray  # per label code, code 0 for nodes without the label; int64


class ScoreByLabel(InternalPlugin, Score):
    """A Score whose normalized scores may depend on one label of the nodes alone."""

    @abc.abstractmethod
    def normalized_by_label(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> ScoresByLabel | None:
        """What the nodes that fit get in the end, if that depends on one label of theirs.

        The points of `score_all`, normalised if they are: with an entry for every label code
        (`nodes.label_count`), also for those of no node that fits. It is much cheaper where a
        plugin has to be asked for every pod. None: it does not depend on one label alone.
        """


# --- earlier pods ---------------------------------------------------------------------------------


def earlier_value(state: CycleState, key: StateKey[T]) -> T | None:
    """What was stored for an earlier pod of the same class, if there was one.

    It may spare a plugin to find the same out again; it must not be changed. For a plugin with
    tables by domain that pod had an equal key; for one that is asked for each pod it may be any.
    """
    earlier = state._earlier
    return None if earlier is None else earlier.get(key)


# --- many what-ifs at once ------------------------------------------------------------------------


class InternalWhatIf(WhatIf, Protocol):
    """The profile's filters, asked about many nodes as they might be."""

    def without_pods(
        self, state: CycleState, pod: Pod, nodes: Nodes, rows: Sequence[int], without: PodLists
    ) -> NodesWithoutPods | None:
        """Many nodes at once, each without some of its pods, which can be put back.

        None if some filter of this pod has to be told, or looks further than the node: then they
        have to be asked about one by one.
        """
        ...

    def fits_all(self, state: CycleState, pod: Pod, nodes: NodesWithoutPods) -> Verdicts | None:
        """As `fits`, for each of them. None if something broke: one by one it will be clear."""
        ...

    def fixed(self, pod: Pod) -> frozenset[str]:
        """Filters that say the same of a node whichever pods are on it: once is enough."""
        ...


def what_if_of(handle: Handle) -> InternalWhatIf:
    """All of what any handle of ours offers."""
    return cast("InternalWhatIf", handle.what_if)
