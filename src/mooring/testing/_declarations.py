"""Checks of `applies_to`, `depends_on` and `cache_key`: wrong declarations place pods wrongly.

A pod is evaluated with a memory, as in production; then the cluster changes, or another pod is
evaluated. The results from the memory must equal those of an evaluation without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from mooring.cache.pods import Pod
from mooring.decision.evaluator import PodEvaluator
from mooring.framework._internal import InternalPlugin, depends_on_of, may_depend_on
from mooring.framework.depends_on import NODE, NODE_AND_PODS, everything_of
from mooring.framework.plugin import IN_DECISIONS, Base, Permit, PreBind, Reserve
from mooring.framework.status import Status
from mooring.testing._bench import Answers, Bench, Difference, Fault, describe, difference, show
from mooring.testing._changes import Change, changes
from mooring.testing._check import on_every_case
from mooring.testing._other_pods import other_pods

_CLAIMS: Final = {
    NODE: "depends_on = fw.NODE says that only the cache key and the node's own object matter",
    NODE_AND_PODS: "depends_on = fw.NODE_AND_PODS says that only the cache key, the node and its"
    " pods matter",
}
_ONCE: Final = "once for all pods with the same namespace, labels, annotations, controller and spec"
_AGAIN: Final = "again when a node or an object of `reads` changes, not when pods come and go"
_STORED: Final = (
    "it was asked again with what pre_filter and pre_score stored before: what they store is kept"
    " for pods that come later, too"
)
_LEFT_OUT: Final = "left out"  # instead of the key of a pod that the plugin does not apply to
_HOUR: Final = 3_600.0  # seconds


class Step(NamedTuple):
    """A change before the next evaluation."""

    words: str
    change: Change | None = None
    pod: Pod | None = None  # None: the one of the case again
    is_alike: bool = True  # whether plugins must treat it as the pod of the case
    seconds: float = 0.0
    other_random: bool = False


def steps(bench: Bench) -> Iterator[Step]:
    """Passed time, other pods and changes of the cluster; each is undone before the next."""
    case = bench.case
    yield Step(f"for {case.pod.key}", pod=case.pod)
    yield Step("an hour later", seconds=_HOUR)
    yield Step("with other random numbers", other_random=True)
    for words, pod in (*other_pods(case.pod), *((pod.key, pod) for pod in case.bystanders)):
        is_alike = everything_of(pod) == everything_of(case.pod)
        yield Step(f"for {words}", pod=pod, is_alike=is_alike)
    for change in changes(case, bench.plugin.reads):
        yield Step(f"after {change.words}", change)


# --- depends_on and cache_key -------------------------------------------------------------------


@on_every_case(*IN_DECISIONS)
def check_declarations_are_true(bench: Bench) -> None:
    """With `depends_on`, `cache_key` or `applies_to`: cached results equal new ones."""
    if declares(bench.plugin_class) and bench.case.cluster.nodes:
        compare_with_memory(bench.alone())


def declares(plugin_class: type[Base]) -> bool:
    """Whether a plugin has a declaration that avoids calls."""
    has_own = plugin_class.applies_to is not Base.applies_to
    return has_own or may_depend_on(plugin_class) or issubclass(plugin_class, InternalPlugin)


def has_default_key(plugin_class: type[Base]) -> bool:
    """Whether results are cached for pods that are equal in everything a plugin may look at."""
    has_own = plugin_class.cache_key is not Base.cache_key
    return not has_own and not issubclass(plugin_class, InternalPlugin)


def compare_with_memory(bench: Bench) -> None:
    """Raise a Fault if cached results differ from new ones."""
    key = _key_of(bench, bench.case.pod)
    try:
        hash(key)
    except TypeError:
        raise Fault(f"cache_key() returned {show(key)}, expected something hashable") from None
    memory, taken = _Memory(bench), [next(steps(bench))]
    for step in steps(bench):
        if not step.is_alike and has_default_key(bench.plugin_class):
            continue  # its key is another one, so that it gets no result of an earlier pod
        text = _take(bench, memory, taken[0], step)
        if text is not None:
            raise Fault(_traced(bench, taken, step) or text)
        taken.append(step)


def _traced(bench: Bench, taken: Sequence[Step], step: Step) -> str | None:
    """The fault after a step, if the memory holds the results of one earlier pod alone."""
    for first in taken:
        if first.pod is not None:
            memory = _Memory(bench)
            memory.evaluate(first.pod, bench.evaluate(first.pod))
            text = _take(bench, memory, first, step)
            if text is not None:
                return text
    return None


def _take(bench: Bench, memory: _Memory, first: Step, step: Step) -> str | None:
    """The fault after a step, as text; results were cached for the pod of the `first` step."""
    key_before = _key_of(bench, first.pod or bench.case.pod)
    before = bench.evaluate() if step.change is not None and step.change.is_structural else None
    with after(bench, step):
        pod = step.pod or bench.case.pod
        fresh = bench.evaluate(pod)
        kept = memory.evaluate(pod, fresh)
        key, is_kept = _key_of(bench, pod), depends_on_of(bench.plugin, pod) is not None
        differs = difference(fresh, kept)
        if differs is None and before is not None and is_kept and key == key_before:
            # The engine drops all results when nodes come or go, but the declaration must hold.
            there = before.statuses.keys() & fresh.statuses.keys()
            differs = difference(fresh.of(there), before.of(there))
        if differs is None:
            return None
        if step.is_alike and (key is _LEFT_OUT) != (key_before is _LEFT_OUT):
            return None  # `check_applies_to_is_true` is about this
        alone = _Memory(bench).evaluate(pod, fresh)
        if difference(fresh, alone) is not None:
            claim = "with depends_on, pre_score is given all nodes and not only those that fit"
        elif difference(fresh, kept) is not None and _is_per_node(bench, step, kept):
            claim = "nodes that changed are asked about in the per-node form, which says otherwise"
        else:
            claim = _claim(bench, step, key_before, differs)
        source = f" from {first.words.removeprefix('for ')}" if step.pod is not None else ""
        return f"{differs.text(step.words, f'was kept{source}')}; {claim}"


class _Memory:
    """Evaluates pods with cached results, as `mooring run` does."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._evaluator: PodEvaluator = bench.forgetful()
        self._keys: set[Hashable] = set()  # for which results are cached

    def evaluate(self, pod: Pod, fresh: Answers) -> Answers:
        """The results; if possible, results that differ from `fresh`.

        A pod with a new key is evaluated twice: nothing is cached for a key before its second pod,
        and the first is evaluated with results that are cached for pods with other keys.
        """
        bench = self._bench
        first = bench.evaluate(pod, memory=self._evaluator)
        key = (depends_on_of(bench.plugin, pod), _key_of(bench, pod))
        if key in self._keys or difference(fresh, first) is not None:
            return first
        self._keys.add(key)
        return bench.evaluate(pod, memory=self._evaluator)


def _is_per_node(bench: Bench, step: Step, kept: Answers) -> bool:
    """Whether results equal those of the per-node form after a step."""
    other = bench.per_node()
    with after(other, step):
        return difference(other.evaluate(step.pod), kept) is None


@contextlib.contextmanager
def after(bench: Bench, step: Step) -> Iterator[None]:
    """Apply a step until the end of the block."""
    bench.seconds, bench.other_random = step.seconds, step.other_random
    if step.change is not None:
        step.change.make(bench.cache)
    bench.begin()
    try:
        yield
    finally:
        bench.seconds, bench.other_random = 0.0, False
        if step.change is not None:
            step.change.undo(bench.cache)
        bench.begin()


def _claim(bench: Bench, step: Step, before: Hashable, differs: Difference) -> str:
    """The declaration of the plugin that is wrong, as text."""
    plugin, pod, change = bench.plugin, step.pod or bench.case.pod, step.change
    now, depends_on = _key_of(bench, pod), depends_on_of(plugin, pod)
    if now != before:
        keys = f"cache_key() is {show(now)} now and was {show(before)}"
        when = _ONCE if change is None else _AGAIN
        return f"{keys}, which goes unnoticed: it is asked for {when}"
    has_own = type(plugin).cache_key is not Base.cache_key
    if not step.is_alike and has_own:
        return f"cache_key() says that all that matters of both is {show(now)}"
    with_pods = depends_on is NODE_AND_PODS
    if change is not None and change.touches(differs.node, with_pods=with_pods):
        return _STORED
    still = f", and cache_key() still is {show(now)}" if has_own else ""
    return (_CLAIMS[depends_on] if depends_on is not None else "answers are kept") + still


def _key_of(bench: Bench, pod: Pod) -> Hashable:
    if not bench.call(bench.plugin.applies_to, pod):
        return _LEFT_OUT
    key: Hashable = bench.call(bench.plugin.cache_key, pod)
    return key


# --- applies_to ---------------------------------------------------------------------------------


@on_every_case(*IN_DECISIONS, Reserve, Permit, PreBind)
def check_applies_to_is_true(bench: Bench) -> None:
    """With `applies_to`: it looks at the pod alone; if it is False, no point changes anything."""
    if bench.plugin_class.applies_to is Base.applies_to:
        return
    bench, pod = bench.alone(), bench.case.pod
    answer: object = bench.call(bench.plugin.applies_to, pod)
    if not isinstance(answer, bool):
        raise Fault(f"applies_to() returned {show(answer)}, expected a bool")
    for step in steps(bench):
        with after(bench, step):
            found = bench.call(bench.plugin.applies_to, step.pod or pod)
        if step.is_alike and found is not answer:
            raise Fault(
                f"applies_to() is {found} {step.words}, but {answer} for {pod.key};"
                " it may look at the pod alone, and not at its name, age or status"
            )
    if not answer:
        _expect_silence(bench.anew(applies_to=lambda self, pod: True))


def _expect_silence(bench: Bench) -> None:
    """Raise a Fault if the plugin has an effect although it does not apply."""
    although = f"although applies_to() is False for {bench.case.pod.key}"
    answers = bench.evaluate()
    if not answers.error.ok:
        raise Fault(f"the outcome is {describe(answers.error)}, {although}")
    if answers.only is not None:
        raise Fault(f"pre_filter() gives OnlyNodes {sorted(answers.only)}, {although}")
    for what, status in bench.said():
        wanted = "SKIP" if what == "pre_flight()" else "OK"
        if not isinstance(status, Status) or not (status.skipped or (status.ok and wanted == "OK")):
            raise Fault(f"{what} gives {describe(status)}, {although}: expected {wanted}")
    scores = list(answers.scores.items())
    for name, points in scores[1:]:
        first, expected = scores[0]
        if points != expected:
            raise Fault(
                f"the score of node {name} is {points} and of node {first} {expected}, {although}:"
                " expected equal scores"
            )
