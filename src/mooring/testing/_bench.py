"""One plugin in a profile of its own, evaluated on one cluster by the engine of `mooring run`.

A check compares the results of two evaluations that differ in one thing. A violation of the
contract is raised as a `Fault`; the messages about exceptions and wrong types are the scheduler's.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.decision.plugins import DecisionPlugins
from mooring.errors import ConfigError, PluginError
from mooring.framework.plugin import (
    POINTS,
    Args,
    Base,
    Filter,
    Permit,
    PreBind,
    PreEnqueue,
    Reserve,
    Score,
)
from mooring.framework.results import Wait
from mooring.framework.state import CycleState
from mooring.framework.status import OK, Code, Status
from mooring.observe.metrics import Metrics
from mooring.queue.nominator import NominatedPods
from mooring.runtime.guard import Guard
from mooring.runtime.profile import ProfilePlan
from mooring.testing._random_clusters import Cluster
from mooring.testing.build import START, StubHandle

S = TypeVar("S", bound=msgspec.Struct)
K = TypeVar("K", bound=Object)

Members = Mapping[str, object]
_VECTORISED: Final = ((Filter, "filter_all"), (Score, "score_all"))
_CHOSEN: Final = 2  # feasible nodes for which the points after the decision are called
_MEANINGLESS: Final = frozenset({Code.SKIP, Code.WAIT})  # in PreEnqueue, Reserve and Permit
_AFTER_DECISION: Final = (
    (Reserve, "Reserve", "reserve"),
    (Permit, "Permit", "permit"),
    (PreBind, "PreBindPreFlight", "pre_flight"),
)


class Fault(Exception):
    """A violation of the contract by the plugin."""


class PluginFailed(Fault):
    """The plugin raised, or returned something that the scheduler does not accept."""


def changed_in(value: S, part: str, **fields: Any) -> S:
    """A copy with other fields in one part, such as "metadata"."""
    return structs.replace(value, **{part: structs.replace(getattr(value, part), **fields)})


def named_like(value: K, known: Object) -> K:
    """The value under the name of another, as if it were that object's next version."""
    meta = known.metadata
    return changed_in(value, "metadata", name=meta.name, namespace=meta.namespace, uid=meta.uid)


def taking_over(value: S, other: S, *parts: str) -> Iterator[tuple[str, Any, S]]:
    """The fields in which these parts differ, their values, and a copy with that field alone."""
    for part in parts:
        source = getattr(other, part)
        for field in structs.fields(source):
            theirs = getattr(source, field.name)
            changed = changed_in(value, part, **{field.name: theirs})
            if changed != value:
                yield field.name, theirs, changed


class Case(msgspec.Struct, frozen=True):
    """A pod to place in a cluster. Shrinking makes smaller cases of it."""

    cluster: Cluster
    pod: Pod
    seed: int
    shared: bool = False  # whether other cases use the same cluster, which then must not change

    @property
    def bystanders(self) -> tuple[Pod, ...]:
        """The other pending pods."""
        return tuple(pod for pod in self.cluster.incoming if pod.uid != self.pod.uid)

    def with_cluster(self, **parts: object) -> Case:
        """The same pod in a cluster that differs in these parts."""
        return changed_in(self, "cluster", **parts)


def varied(plugin_class: type[Base], members: Members) -> type[Base]:
    """The same plugin with these members replaced."""
    return type(plugin_class.__name__, (plugin_class,), dict(members))


@functools.lru_cache(maxsize=16)
def per_node(plugin_class: type[Base]) -> type[Base]:
    """The plugin with its per-node form only; the class itself if it has no other."""
    forms = {name: getattr(point, name) for point, name in _VECTORISED}
    own = {n: form for n, form in forms.items() if getattr(plugin_class, n, form) is not form}
    return varied(plugin_class, own) if own else plugin_class


class Answers(NamedTuple):
    """All results of one evaluation of a pod."""

    state: CycleState
    pre_filter: Status
    only: frozenset[str] | None  # the nodes to which PreFilter restricts the pod
    statuses: Mapping[str, Status] = {}  # of Filter, by node
    feasible: tuple[str, ...] = ()
    raw: Mapping[str, int] = {}
    scores: Mapping[str, int] = {}  # normalized
    best: str = ""
    error: Status = OK  # what ended the evaluation

    def facts(self) -> dict[tuple[str, str], object]:
        """All results by description and node, in the order of the points."""
        return {
            ("the outcome is", ""): self.error,
            ("pre_filter gives", ""): self.pre_filter,
            ("pre_filter restricts the pod to", ""): self.only and sorted(self.only),
            **{("filter gives", name): status for name, status in self.statuses.items()},
            ("the feasible nodes are", ""): sorted(self.feasible),
            **{("score is", name): score for name, score in self.raw.items()},
            **{("normalised score is", name): score for name, score in self.scores.items()},
            ("the best node is", ""): self.best,
        }

    def of(self, names: AbstractSet[str]) -> Answers:
        """The results of these nodes that do not depend on other feasible nodes."""
        return self._replace(
            statuses={name: self.statuses[name] for name in self.statuses if name in names},
            feasible=tuple([name for name in self.feasible if name in names]),
            raw={name: self.raw[name] for name in self.raw if name in names},
            scores={},
            best="",
        )


class Difference(NamedTuple):
    """The first difference of two `Answers`."""

    what: str
    found: str
    expected: str
    node: str = ""

    def text(self, this: str, that: str) -> str:
        """A sentence; `this` and `that` say how the two evaluations differ."""
        return f"{self.what} {self.found} {this}, but {self.expected} {that}"


def difference(found: Answers, expected: Answers) -> Difference | None:
    """None if both are the same; the order of reasons does not matter."""
    if found[1:] == expected[1:]:  # all but the states: nearly always equal, and cheap to compare
        return None
    ours, theirs = found.facts(), expected.facts()
    for what, node in {**theirs, **ours}:
        one, other = ours.get((what, node)), theirs.get((what, node))
        if one != other and not _same(one, other):
            place = f"node {node}: {what}" if node else what
            return Difference(place, describe(one), describe(other), node)
    return None


def expect_same(found: Answers, expected: Answers, this: str, that: str) -> None:
    """Raise a Fault unless both evaluations have the same results."""
    differs = difference(found, expected)
    if differs is not None:
        raise Fault(differs.text(this, that))


class Bench:
    """A plugin in a profile of its own, with a cluster of its own."""

    def __init__(self, plugin_class: type[Base], args: Args, case: Case) -> None:
        self.plugin_class, self.args, self.case = plugin_class, args, case
        self.cache: Cache = case.cluster.shared_cache if case.shared else case.cluster.cache()
        nominations: dict[str, list[Pod]] = {}
        for pod in case.bystanders:
            if pod.nominated_node_name:
                nominations.setdefault(pod.nominated_node_name, []).append(pod)
        self.handle = StubHandle(
            nodes=self.cache.nodes, objects=self.cache.objects, nominations=nominations
        )
        self.guard = _RememberingGuard()
        self.seconds: float = 0.0  # since the start
        self.other_random: bool = False
        try:
            profile = _plan(plugin_class, args).build(self.handle)
        except ConfigError as error:
            raise PluginFailed(str(error)) from error
        self.plugin: Base = profile.plugins[plugin_class.name]
        self.plugins = DecisionPlugins(profile, self.guard)
        self.evaluator: PodEvaluator = self.forgetful()

    def anew(self, case: Case | None = None, **members: object) -> Bench:
        """The plugin, newly built, in this case or another, with some members replaced."""
        plugin_class = varied(self.plugin_class, members) if members else self.plugin_class
        return Bench(plugin_class, self.args, case or self.case)

    def alone(self) -> Bench:
        """The plugin, newly built, with a cluster that may be changed."""
        return self.anew(structs.replace(self.case, shared=False))

    def per_node(self, case: Case | None = None) -> Bench:
        """The same with its per-node form only."""
        return Bench(per_node(self.plugin_class), self.args, case or self.case)

    def forms(self) -> Iterator[Bench]:
        """This bench; then one with the per-node form only, if there is a vectorised form."""
        yield self
        if per_node(self.plugin_class) is not self.plugin_class:
            yield self.per_node()

    @property
    def dice(self) -> random.Random:
        return random.Random(self.case.seed)

    def forgetful(self) -> PodEvaluator:
        """Another evaluator of the same plugin, with an empty memory."""
        # Without nominated pods: `check_what_ifs_hold` is about them.
        return PodEvaluator(self.plugins, NominatedPods(), self.cache.objects)

    def begin(self) -> None:
        """Reset clock, random numbers and nodes, so that equal evaluations get equal results."""
        self.handle.random.seed(self.case.seed + self.other_random)
        self.handle.clock.time = START + self.seconds
        self.handle.nodes = self.cache.nodes

    def decide(self, evaluator: PodEvaluator, pod: Pod, *, use_memory: bool = True) -> Evaluation:
        """As `mooring run` does it, up to the best node."""
        nodes = self.cache.nodes
        evaluation = evaluator.begin(CycleState(), pod, nodes, use_memory=use_memory)
        if evaluation.passed_pre_filter:
            evaluation.filter()
            if evaluation.status.ok and evaluation.count:
                evaluation.choose()
        return evaluation

    def evaluate(self, pod: Pod | None = None, *, memory: PodEvaluator | None = None) -> Answers:
        """Evaluate the pod of the case or another one; with a `memory`, by its cached results."""
        self.begin()
        self.guard.raised.clear()
        pod, evaluator = pod or self.case.pod, memory or self.evaluator
        answers = _read(self.decide(evaluator, pod, use_memory=memory is not None))
        self.expect_no_failure(answers.error)
        self.expect_no_failure(answers.pre_filter)
        for error, cause in self.guard.raised:
            # The engine continued without cached results, or with the per-node form.
            raise PluginFailed(f"{error.point} of plugin {error.plugin}: {error}") from cause
        return answers

    def said(self) -> Iterator[tuple[str, Status | Wait]]:
        """Every status of an evaluation, then those of the points before and after it."""
        answers = self.evaluate()
        plugin, state, pod = self.plugin, answers.state, self.case.pod
        yield "pre_filter()", answers.pre_filter
        for name, status in answers.statuses.items():
            yield f"filter() for node {name}", status
        if isinstance(plugin, PreEnqueue):
            yield "pre_enqueue()", self.ask("PreEnqueue", plugin.pre_enqueue, pod)
        for name in answers.feasible[:_CHOSEN]:
            for kind, point, method in _AFTER_DECISION:
                if isinstance(plugin, kind):
                    status = self.ask(point, getattr(plugin, method), state, pod, name)
                    yield f"{method}()", status
            if isinstance(plugin, Reserve):
                self.call(plugin.unreserve, state, pod, name)

    def ask(self, point: str, method: Callable[..., object], *args: Any) -> Any:
        """The answer at an extension point that is not part of a decision."""
        accept = (Wait,) if point == "Permit" else ()
        status = self.plugins.caller.ask(self.plugin, point, method, *args, accept=accept)
        if isinstance(status, Status):
            self.expect_no_failure(status)
            if status.code in _MEANINGLESS and point != "PreBindPreFlight":
                raise PluginFailed(
                    f"{point} returned {describe(status)}, which has no meaning there"
                )
        return status

    def call(self, method: Callable[..., Any], *args: object, what: str = "") -> Any:
        """The answer of any method."""
        self.guard.raised.clear()
        try:
            return self.guard.call(self.plugin, method.__name__, method, *args)
        except PluginError as error:
            raise PluginFailed(
                f"{what or method.__name__ + '()'} raised {error}"
            ) from self.guard.latest

    def expect_no_failure(self, status: Status) -> None:
        if status.code is not Code.ERROR:
            return
        if isinstance(status.cause, PluginError):
            raise PluginFailed(status.message) from self.guard.latest
        if "returns an invalid score" in status.message:
            raise PluginFailed(status.message)
        if status.message.endswith(": "):
            raise PluginFailed(
                f"{status.message}a status without a reason, or with no meaning there"
            )


class _RememberingGuard(Guard):
    """Keeps exceptions of a plugin instead of logging them; no time limit, for debuggers."""

    def __init__(self) -> None:
        super().__init__(_metrics(), budget=math.inf)
        self.raised: list[tuple[PluginError, BaseException]] = []

    @property
    def latest(self) -> BaseException | None:
        return self.raised[-1][1] if self.raised else None

    def failure(self, plugin: Base, point: str, error: BaseException) -> PluginError:
        found = super().failure(plugin, point, error)
        self.raised.append((found, error))
        return found

    def _log_once(self, plugin: Base, point: str, error: Exception) -> None:
        pass


@functools.cache
def _metrics() -> Metrics:
    return Metrics()


def _plan(plugin_class: type[Base], args: Args) -> ProfilePlan:
    name = plugin_class.name
    return ProfilePlan(
        scheduler_name=core.DEFAULT_SCHEDULER_NAME,
        percentage_of_nodes_to_score=None,
        classes={name: plugin_class},
        args={name: args},
        points={
            point: (name,) if issubclass(plugin_class, contract) else ()
            for point, contract in POINTS.items()
        },
        weights={name: 1} if issubclass(plugin_class, Score) else {},
    )


def _read(evaluation: Evaluation) -> Answers:
    names, outcome = evaluation.nodes.names, evaluation.outcome
    answers = Answers(evaluation.state, outcome.status, outcome.only)
    if evaluation.passed_pre_filter and evaluation.status.ok:
        verdicts = evaluation.verdicts()
        feasible = tuple([names[row] for row in evaluation.rows.tolist()])
        found = evaluation.scores() if feasible and evaluation.status.ok else None
        of_plugin = found.plugins[0] if found is not None and found.plugins else None
        answers = answers._replace(
            statuses={name: verdicts.status(row) for row, name in enumerate(names)},
            feasible=feasible,
            raw=dict(zip(feasible, of_plugin.raw.tolist(), strict=True)) if of_plugin else {},
            scores=dict(zip(feasible, of_plugin.scores.tolist(), strict=True)) if of_plugin else {},
            best=names[evaluation.row] if evaluation.row >= 0 else "",
        )
    return answers._replace(error=evaluation.status)


def _same(a: object, b: object) -> bool:
    """Whether both are statuses with the same code and the same reasons."""
    if not isinstance(a, Status) or not isinstance(b, Status):
        return False
    return a.code is b.code and set(a.reasons) == set(b.reasons)


def describe(answer: object) -> str:
    """An answer as text."""
    if isinstance(answer, Status):
        return f"{answer.code.label} {list(answer.reasons) if answer.reasons else ''}".strip()
    return "none" if answer is None else show(answer)


def show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."
