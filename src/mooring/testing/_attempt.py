"""One plugin, one pod, one cluster: the points in the order a scheduler asks them.

`checks` compares what comes out of two attempts that differ in one thing. Whatever a plugin does
that the contract does not allow, an answer of the wrong type included, leaves as a `Fault`.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.arrays import IntArray
from mooring.cache.cache import Cache
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.plugin import Args, Base, Filter, NormalizeScore, PreFilter, PreScore, Score
from mooring.framework.results import OnlyNodes
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status
from mooring.framework.verdicts import Verdicts
from mooring.testing._random_clusters import Cluster
from mooring.testing.build import StubHandle

_NOT_FOR_FILTERS: Final = frozenset({Code.SKIP, Code.WAIT})


class Fault(Exception):
    """The plugin did something the contract does not allow."""


class Raised(Fault):
    """The plugin raised; the exception is the cause."""


class Case(msgspec.Struct, frozen=True):
    """A pod to place in a cluster. Shrinking makes smaller cases of it."""

    cluster: Cluster
    pod: Pod
    seed: int

    @property
    def bystanders(self) -> tuple[Pod, ...]:
        """The other pending pods."""
        return tuple(pod for pod in self.cluster.incoming if pod.uid != self.pod.uid)

    def with_cluster(
        self,
        *,
        nodes: tuple[core.Node, ...] | None = None,
        residents: tuple[Pod, ...] | None = None,
        objects: tuple[Object, ...] | None = None,
        incoming: tuple[Pod, ...] | None = None,
    ) -> Case:
        """The same question in a cluster that differs in this."""
        old = self.cluster
        cluster = Cluster(
            old.nodes if nodes is None else nodes,
            old.residents if residents is None else residents,
            old.objects if objects is None else objects,
            old.incoming if incoming is None else incoming,
        )
        return Case(cluster, self.pod, self.seed)


class Trial(msgspec.Struct, frozen=True):
    """What a check looks at: a plugin with its arguments, and a case."""

    plugin_class: type[Base]
    args: Args
    case: Case

    def bench(self, case: Case | None = None) -> Bench:
        """The plugin, newly built, in front of this case or another."""
        return Bench(self.plugin_class, self.args, self.case if case is None else case)

    @property
    def dice(self) -> random.Random:
        return random.Random(self.case.seed)


class Bench:
    """A plugin instance with a cluster of its own."""

    def __init__(self, plugin_class: type[Base], args: Args, case: Case) -> None:
        self.case = case
        self.cache: Cache = case.cluster.cache()
        nominations: dict[str, list[Pod]] = {}
        for pod in case.bystanders:
            if pod.nominated_node_name:
                nominations.setdefault(pod.nominated_node_name, []).append(pod)
        self.handle = StubHandle(
            nodes=self.cache.nodes, objects=self.cache.objects, nominations=nominations
        )
        with asking("__init__"):
            self.handle.objects.declare(plugin_class.reads)
            self.plugin = plugin_class(args, self.handle)

    def attempt(self, *, per_node: bool = False, pod: Pod | None = None) -> Attempt:
        """Begin to schedule the pod: fresh state, and the random numbers from the start."""
        self.handle.random.seed(self.case.seed)
        self.handle.nodes = self.cache.nodes
        pod = self.case.pod if pod is None else pod
        return Attempt(self.plugin, pod, self.cache.nodes, per_node=per_node)


class Attempt:
    """One scheduling attempt with one plugin. With `per_node` the `*_all` forms are not used."""

    def __init__(self, plugin: Base, pod: Pod, nodes: Nodes, *, per_node: bool) -> None:
        self.plugin = plugin
        self.pod = pod
        self.nodes = nodes
        self.per_node = per_node
        self.state = CycleState()
        self.pre_filter: Status | OnlyNodes = OK
        self.candidates: Nodes = nodes  # those the plugin's Filter is asked about
        self.statuses: dict[str, Status] = {}
        self.feasible: Nodes | None = (
            None  # None: the pod was refused before any node was looked at
        )
        self.pre_score: Status | None = None  # None: not asked
        self.raw: dict[str, int] = {}
        self.scores: dict[str, int] = {}

    def run(self) -> Attempt:
        """All points, from pre-filter to normalised scores."""
        self.filter_all_points()
        if self.feasible is not None and len(self.feasible) and self.prepare_scores(self.feasible):
            raw = self.score(self.feasible)
            self.raw = by_name(self.feasible, raw)
            self.scores = by_name(self.feasible, self.normalize(self.feasible, raw))
        return self

    def filter_all_points(self) -> None:
        if self.prepare_filter():
            self.statuses = self.filter(self.candidates)
            passed = np.array([self.statuses[name].ok for name in self.candidates.names], np.bool_)
            self.feasible = self.candidates.take(passed)
        elif self.pre_filter_passed:
            self.feasible = self.candidates

    @property
    def pre_filter_passed(self) -> bool:
        answer = self.pre_filter
        return isinstance(answer, OnlyNodes) or answer.ok or answer.skipped

    def prepare_filter(self) -> bool:
        """Ask pre-filter; whether there is a Filter to ask after it."""
        plugin = self.plugin
        if isinstance(plugin, PreFilter):
            with asking("pre_filter"):
                answer: object = plugin.pre_filter(self.state, self.pod, self.nodes)
            if not isinstance(answer, OnlyNodes):
                answer = expect_status(answer, "pre_filter()", {Code.WAIT})
                self.pre_filter = answer
                if answer.skipped:
                    self.state.skip_filter.add(plugin.name)
                return answer.ok and isinstance(plugin, Filter)
            self.pre_filter = answer
            wanted = np.array([name in answer.names for name in self.nodes.names], np.bool_)
            self.candidates = self.nodes.take(wanted)
        return isinstance(plugin, Filter)

    def filter(self, nodes: Nodes) -> dict[str, Status]:
        """The answer for each of these nodes, in the form this attempt uses."""
        if self.per_node:
            return {node.name: self.filter_one(node) for node in nodes}
        assert isinstance(self.plugin, Filter)
        with asking("filter_all"):
            answer: object = self.plugin.filter_all(self.state, self.pod, nodes)
        return _statuses(answer, nodes)

    def filter_one(self, node: Node) -> Status:
        assert isinstance(self.plugin, Filter)
        with asking("filter", node.name):
            answer: object = self.plugin.filter(self.state, self.pod, node)
        return expect_status(answer, f"filter() for node {node.name}", _NOT_FOR_FILTERS)

    def prepare_scores(self, nodes: Nodes) -> bool:
        """Ask pre-score; whether there is a Score to ask after it."""
        plugin = self.plugin
        if isinstance(plugin, PreScore):
            with asking("pre_score"):
                answer: object = plugin.pre_score(self.state, self.pod, nodes)
            self.pre_score = status = expect_status(answer, "pre_score()", {Code.WAIT})
            if not status.ok:
                self.state.skip_score.add(plugin.name)
                return False
        return isinstance(plugin, Score)

    def score(self, nodes: Nodes) -> IntArray:
        """Raw scores of these nodes, in the form this attempt uses."""
        plugin = self.plugin
        assert isinstance(plugin, Score)
        if not self.per_node:
            with asking("score_all"):
                answer: object = plugin.score_all(self.state, self.pod, nodes)
            return _expect_scores(answer, len(nodes), "score_all()")
        points = []
        for node in nodes:
            with asking("score", node.name):
                point: object = plugin.score(self.state, self.pod, node)
            if not isinstance(point, int) or isinstance(point, bool):
                raise Fault(f"score() for node {node.name} returned {show(point)}, expected an int")
            points.append(point)
        try:
            return np.array(points, dtype=np.int64)
        except OverflowError:
            raise Fault(f"score() returned {show(points)}, expected int64 values") from None

    def normalize(self, nodes: Nodes, raw: IntArray) -> IntArray:
        """The scores as they count, which are the raw ones without a `normalize_score`."""
        if not isinstance(self.plugin, NormalizeScore):
            return raw
        with asking("normalize_score"):
            answer: object = self.plugin.normalize_score(self.state, self.pod, nodes, raw.copy())
        return _expect_scores(answer, len(nodes), "normalize_score()")


@contextlib.contextmanager
def asking(method: str, node: str = "") -> Iterator[None]:
    """Run plugin code; an exception in it becomes a Fault that names the method."""
    try:
        yield
    except Exception as error:
        place = f" for node {node}" if node else ""
        text = f"{method}() raised {type(error).__name__}{place}: {error}"
        raise Raised(text) from error


def expect_status(
    answer: object, what: str, forbidden: frozenset[Code] | set[Code] = frozenset()
) -> Status:
    if not isinstance(answer, Status):
        raise Fault(f"{what} returned {show(answer)}, expected a Status")
    if answer.code in forbidden:
        raise Fault(f"{what} returned {describe(answer)}, which has no meaning there")
    return answer


def _expect_scores(answer: object, size: int, what: str) -> IntArray:
    if not isinstance(answer, np.ndarray):
        raise Fault(f"{what} returned {show(answer)}, expected an int64 array")
    if answer.dtype != np.int64:
        raise Fault(f"{what} returned dtype {answer.dtype}, expected int64: {show(answer)}")
    if answer.shape != (size,):
        raise Fault(f"{what} returned shape {answer.shape}, expected ({size},) for {size} nodes")
    return answer


def _statuses(answer: object, nodes: Nodes) -> dict[str, Status]:
    if not isinstance(answer, Verdicts):
        raise Fault(f"filter_all() returned {show(answer)}, expected Verdicts")
    if answer.size != len(nodes):
        raise Fault(f"filter_all() returned {answer.size} verdicts for {len(nodes)} nodes")
    index = answer.index
    if index is not None and (index.dtype != np.int64 or index.shape != (len(nodes),)):
        raise Fault(f"filter_all() returned Verdicts with a broken index: {show(index)}")
    try:
        found = {name: answer.status(row) for row, name in enumerate(nodes.names)}
    except IndexError:
        raise Fault(f"filter_all() returned Verdicts with a broken index: {show(index)}") from None
    for name, passed in zip(nodes.names, answer.passed.tolist(), strict=True):
        status = expect_status(found[name], f"filter_all() for node {name}", _NOT_FOR_FILTERS)
        if status.ok != passed:
            raise Fault(f"filter_all() refused node {name} with the status {describe(status)}")
    return found


def by_name(nodes: Nodes, scores: IntArray) -> dict[str, int]:
    return dict(zip(nodes.names, scores.tolist(), strict=True))


def same(a: Status, b: Status) -> bool:
    """Equal answers; the order of the reasons does not matter."""
    return a.code is b.code and set(a.reasons) == set(b.reasons)


def describe(answer: object) -> str:
    """An answer in words."""
    if isinstance(answer, Status):
        return (
            f"{answer.code.label} {list(answer.reasons)}" if answer.reasons else answer.code.label
        )
    if isinstance(answer, OnlyNodes):
        return f"OnlyNodes {sorted(answer.names)}"
    return show(answer)


def show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
