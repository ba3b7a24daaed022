"""Are `applies_to`, `depends_on` and `cache_key` true? Wrong ones place pods wrongly.

A pod is evaluated with a memory, as in production; then something happens, or another pod comes.
What the memory says must be what the plugin says when nothing is kept.
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
    """What happens before the next evaluation."""

    words: str
    change: Change | None = None
    pod: Pod | None = None  # None: the one of the case again
    is_alike: bool = True  # whether no plugin may tell the pod from the one of the case
    seconds: float = 0.0
    other_random: bool = False


def steps(bench: Bench) -> Iterator[Step]:
    """Time passes, other pods come, and the cluster changes; each is undone before the next."""
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
    """With `depends_on`, `cache_key` or `applies_to`: kept answers are those asked for anew."""
    if declares(bench.plugin_class) and bench.case.cluster.nodes:
        compare_with_memory(bench.alone())


def declares(plugin_class: type[Base]) -> bool:
    """Whether a plugin declares anything that spares calls of it."""
    has_own = plugin_class.applies_to is not Base.applies_to
    return has_own or may_depend_on(plugin_class) or issubclass(plugin_class, InternalPlugin)


def compare_with_memory(bench: Bench) -> None:
    """Raise a Fault if kept answers differ from those that are asked for anew."""
    key = _key_of(bench, bench.case.pod)
    try:
        hash(key)
    except TypeError:
        raise Fault(f"cache_key() returned {show(key)}, expected something hashable") from None
    memory, taken = bench.forgetful(), [next(steps(bench))]
    for step in steps(bench):
        text = _take(bench, memory, taken[0], step)
        if text is not None:
            raise Fault(_traced(bench, taken, step) or text)
        taken.append(step)


def _traced(bench: Bench, taken: Sequence[Step], step: Step) -> str | None:
    """What is wrong after a step, with the memory of nothing but one pod before."""
    for first in taken:
        if first.pod is not None:
            memory = bench.forgetful()
            _with_memory(bench, first.pod, memory, bench.evaluate(first.pod))
            text = _take(bench, memory, first, step)
            if text is not None:
                return text
    return None


def _take(bench: Bench, memory: PodEvaluator, first: Step, step: Step) -> str | None:
    """What is wrong after a step, in words; answers were kept for the pod of the `first` one."""
    key_before = _key_of(bench, first.pod or bench.case.pod)
    before = bench.evaluate() if step.change is not None and step.change.is_structural else None
    with after(bench, step):
        pod = step.pod or bench.case.pod
        fresh = bench.evaluate(pod)
        kept = _with_memory(bench, pod, memory, fresh)
        key, is_kept = _key_of(bench, pod), depends_on_of(bench.plugin, pod) is not None
        differs = difference(fresh, kept)
        if differs is None and before is not None and is_kept and key == key_before:
            # The engine forgets all answers when nodes come or go, but the declaration holds.
            there = before.statuses.keys() & fresh.statuses.keys()
            differs = difference(fresh.of(there), before.of(there))
        if differs is None:
            return None
        if step.is_alike and (key is _LEFT_OUT) != (key_before is _LEFT_OUT):
            return None  # a matter of `check_applies_to_is_true`
        alone = _with_memory(bench, pod, bench.forgetful(), fresh)
        if difference(fresh, alone) is not None:
            claim = "with depends_on, pre_score is given all nodes and not only those that fit"
        elif difference(fresh, kept) is not None and _is_per_node(bench, step, kept):
            claim = "nodes that changed are asked about in the per-node form, which says otherwise"
        else:
            claim = _claim(bench, step, key_before, differs)
        source = f" from {first.words.removeprefix('for ')}" if step.pod is not None else ""
        return f"{differs.text(step.words, f'was kept{source}')}; {claim}"


def _with_memory(bench: Bench, pod: Pod, memory: PodEvaluator, fresh: Answers) -> Answers:
    """What is said with a memory; if possible, something else than `fresh`.

    Of a pod that comes twice: nothing is kept of a key before its second pod, and the first one is
    evaluated together with what is kept for pods with other keys.
    """
    first, second = (bench.evaluate(pod, memory=memory) for _ in range(2))
    return second if difference(fresh, first) is None else first


def _is_per_node(bench: Bench, step: Step, kept: Answers) -> bool:
    """Whether answers are what the per-node form says after a step."""
    other = bench.per_node()
    with after(other, step):
        return difference(other.evaluate(step.pod), kept) is None


@contextlib.contextmanager
def after(bench: Bench, step: Step) -> Iterator[None]:
    """What a step is about is so, until the end of the block."""
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
    """What the plugin declares that can't be true."""
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
    """The plugin, asked although it does not apply, changes nothing."""
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
