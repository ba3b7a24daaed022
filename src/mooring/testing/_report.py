"""The report on a plugin: what it reads, and declarations that would reduce its calls.

A declaration is proposed only if a subclass with it passes `check_declarations_are_true` on all
examples. The saving is measured in the same run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mooring.api.frozen import FrozenDict
from mooring.cache.pods import Pod
from mooring.framework._internal import may_depend_on
from mooring.framework.depends_on import NODE, NODE_AND_PODS
from mooring.framework.plugin import IN_DECISIONS, Args, Base, Score
from mooring.framework.scores import BEST_IS_100, LEAST_IS_100, MIN_MAX
from mooring.testing._bench import Bench, Case, Fault, Members, changed_in, difference, varied
from mooring.testing._check import Examples
from mooring.testing._declarations import compare_with_memory
from mooring.testing._reads import Reads, watch
from mooring.testing.build import arguments

_NODES: Final = 500
_PODS: Final = 100
_ROUNDS: Final = 3
_WORTH_IT: Final = 1.2  # times cheaper
_ALIKE: Final = "pods alike"
_NORMALIZERS: Final = {
    "BEST_IS_100": BEST_IS_100,
    "LEAST_IS_100": LEAST_IS_100,
    "MIN_MAX": MIN_MAX,
}


class _Proposal(NamedTuple):
    """A declaration that could be added to the class."""

    text: str
    members: Members
    pods: str = _ALIKE  # the pods for which it saves calls


_DEPENDS_ON: Final = (
    _Proposal("depends_on = fw.NODE", {"depends_on": NODE}),
    _Proposal("depends_on = fw.NODE_AND_PODS", {"depends_on": NODE_AND_PODS}),
)
_CACHE_KEY: Final = _Proposal(
    "def cache_key(self, pod): return None",
    {"cache_key": lambda self, pod: None},
    pods="pods with labels of their own",
)


def report_on(plugin_class: type[Base], args: Mapping[str, Any], examples: Examples) -> str:
    """The report on a plugin that passed all checks."""
    given = f" with args {dict(args)}" if args else ""
    name = f"{plugin_class.name}{given}"
    if not issubclass(plugin_class, IN_DECISIONS):
        return f"{name} takes no part in decisions: there is nothing to declare."
    decoded, cases = arguments(plugin_class, args), list(examples.cases())
    reads = watch(plugin_class, decoded, cases)
    lines = [_reading(name, reads)]
    if reads.never_found:
        missing = ", ".join(sorted(reads.never_found))
        lines.append(
            f"No example has {missing}: add Examples that do to learn what it could declare."
        )
        return "\n".join(lines)
    telling = _telling(plugin_class, decoded, cases)
    if telling is None:
        lines.append(
            "It gave all nodes of every example the same answer: add Examples that differ."
        )
    else:
        found = list(_proposals(plugin_class, decoded, cases, _large(telling, cases)))
        lines += found or ["Nothing more was found that it could declare and that would help."]
    return "\n".join(lines)


def _reading(name: str, reads: Reads) -> str:
    if reads.failed:
        return f"{name} does not work with watched objects: what it reads is not known."
    return f"{name} was seen to read " + (", ".join(sorted(reads.seen)) or "nothing") + "."


def _telling(plugin_class: type[Base], args: Args, cases: list[Case]) -> Case | None:
    """A case in which some node was refused, or preferred to another."""
    for case in cases:
        answers = Bench(plugin_class, args, case).evaluate()
        if len(answers.feasible) < len(case.cluster.nodes) or len(set(answers.scores.values())) > 1:
            return case
    return None


# --- proposals ------------------------------------------------------------------------------------


def _proposals(
    plugin_class: type[Base], args: Args, cases: list[Case], large: Case
) -> Iterator[str]:
    """One line per proposal; each assumes the ones before."""
    measured = plugin_class
    has_own_key = plugin_class.cache_key is not Base.cache_key
    for alternatives in (_of_depends_on(plugin_class), () if has_own_key else (_CACHE_KEY,)):
        for proposal in alternatives:
            candidate = varied(measured, proposal.members)
            if may_depend_on(candidate) and _holds(candidate, args, cases):
                sides = (measured, candidate)
                before, after = [_seconds(side, args, large, proposal.pods) for side in sides]
                if before >= _WORTH_IT * after:
                    yield _praise(proposal, before / after)
                    measured = candidate
                break
    if issubclass(plugin_class, Score) and plugin_class.normalize_score != Score.normalize_score:
        for name, normalizer in _NORMALIZERS.items():
            members = {"normalizer": normalizer, "normalize_score": Score.normalize_score}
            if _answers_alike(plugin_class, varied(plugin_class, members), args, cases):
                declared = f"normalizer = fw.{name}"
                yield f"`{declared}` instead of normalize_score() gives the same scores."
                break


def _of_depends_on(plugin_class: type[Base]) -> Sequence[_Proposal]:
    """The strongest declaration first."""
    if not may_depend_on(plugin_class):
        return _DEPENDS_ON
    return _DEPENDS_ON[:1] if plugin_class.depends_on is NODE_AND_PODS else ()


def _praise(proposal: _Proposal, factor: float) -> str:
    times = f"{factor:.0f}x" if factor >= 10 else f"{factor:.1f}x"
    return (
        f"`{proposal.text}` is true in all examples, and would make it {times} cheaper here"
        f" ({_PODS} {proposal.pods} on {_NODES} nodes)."
    )


def _holds(candidate: type[Base], args: Args, cases: list[Case]) -> bool:
    try:
        for case in cases:
            if case.cluster.nodes:
                compare_with_memory(Bench(candidate, args, case))
    except Fault:
        return False
    return True


def _answers_alike(one: type[Base], other: type[Base], args: Args, cases: list[Case]) -> bool:
    benches = ((Bench(one, args, case), Bench(other, args, case)) for case in cases)
    return all(difference(a.evaluate(), b.evaluate()) is None for a, b in benches)


# --- savings --------------------------------------------------------------------------------------


def _large(telling: Case, cases: list[Case]) -> Case:
    """The pod of one case, and many nodes like those of all cases."""
    known = itertools.cycle(node for case in cases for node in case.cluster.nodes)
    nodes = [
        changed_in(node, "metadata", name=f"n{i}", uid=f"n{i}")
        for i, node in enumerate(itertools.islice(known, _NODES))
    ]
    return telling.with_cluster(nodes=tuple(nodes), residents=(), incoming=())


def _seconds(plugin_class: type[Base], args: Args, case: Case, pods: str) -> float:
    """The CPU seconds for `_PODS` pods; the best of some rounds."""
    waiting = []
    for name in (f"p{number}" for number in range(_PODS)):
        own = {} if pods == _ALIKE else {"index": name}
        labels = FrozenDict({**case.pod.api.metadata.labels, **own})
        api = changed_in(case.pod.api, "metadata", name=name, uid=name, labels=labels)
        waiting.append(Pod(api))
    return min(_one_round(Bench(plugin_class, args, case), waiting) for _ in range(_ROUNDS))


def _one_round(bench: Bench, pods: list[Pod]) -> float:
    started = time.process_time()
    for pod in pods:
        row = bench.decide(bench.evaluator, pod).row
        if row >= 0:
            bench.cache.put_pod(pod.assumed_on(bench.cache.nodes.names[row]))
    return time.process_time() - started
