"""One placement of the other scheduler beside the decision of this one, and why they differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Final, Literal

import msgspec

from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.lens.explanation import Explanation, NodeAnswer
from mooring.lens.inspect import Inspector
from mooring.scheduler.sampling import nodes_to_find

EQUAL: Final = "equal"
TIE: Final = "tie"
SAMPLING: Final = "sampling"
ORDER: Final = "order"
SCORES: Final = "scores"
REFUSED: Final = "refused"
FITS: Final = "fits"
ERROR: Final = "error"

Result = Literal["equal", "tie", "sampling", "order", "scores", "refused", "fits", "error"]
RESULTS: Final[dict[Result, str]] = {
    EQUAL: "the same node, or no node for either",
    TIE: "their node has as many points as ours",
    SAMPLING: "they look at a part of the nodes only, and their node can be the best of one",
    ORDER: "ours would be theirs if a pod that was bound shortly before had been decided later",
    SCORES: "their node has fewer points than ours",
    REFUSED: "a plugin refuses their node",
    FITS: "they say that the pod fits nowhere",
    ERROR: "the decision failed",
}
EXPLAINED: Final = frozenset((EQUAL, TIE, SAMPLING))
"""Where both schedulers follow the same rules."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One pod, as the other scheduler and this one would have it."""

    pod: str  # "namespace/name"
    uid: str
    at: str  # RFC 3339
    theirs: str  # node; "": fits nowhere
    ours: str
    result: Result
    why: str = ""


class Comparer:
    """Explains differences for the pods of one profile.

    `percentage` is the other scheduler's `percentageOfNodesToScore`; None is its adaptive rule.
    """

    def __init__(self, inspector: Inspector, cache: Cache, percentage: int | None) -> None:
        self._inspector = inspector
        self._cache = cache
        self._percentage = percentage or 0

    def difference(
        self, pod: Pod, theirs: str, ours: str, message: str, recent: Iterable[Pod]
    ) -> tuple[Result, str]:
        """Why `theirs` is not `ours`; `recent` are the pods bound just before, newest first."""
        if not theirs:
            return FITS, f"here it fits {ours}"
        found, answer = self._look(pod, theirs)
        result, why = self._judged(found, answer, ours, message)
        if result in (SCORES, REFUSED):
            other = self._in_another_order(pod, theirs, recent)
            if other:
                return ORDER, other
        return result, why

    def _look(self, pod: Pod, theirs: str) -> tuple[Explanation, NodeAnswer | None]:
        found = self._inspector.explain(pod, ask=(theirs,), preemption=False)
        return found, next((one for one in found.asked if one.node == theirs), None)

    def _judged(
        self, found: Explanation, answer: NodeAnswer | None, ours: str, message: str
    ) -> tuple[Result, str]:
        if answer is None:
            return REFUSED, message or found.message or "their node is not known here"
        if answer.refusals:
            told = (f"{one.plugin}: {', '.join(one.reasons)}" for one in answer.refusals)
            return REFUSED, f"{answer.node} is refused by {'; '.join(told)}"
        score, choice = answer.score, found.choice
        if score is None or choice is None:
            return REFUSED, message or found.message
        best = choice.nodes[0]
        if score.total == best.total:
            return TIE, f"{score.total} points each, {choice.tied} nodes"
        limit = nodes_to_find(found.nodes, self._percentage)
        behind = found.feasible - (score.place - 1)  # nodes that are not better
        if limit is not None and limit <= behind:
            return SAMPLING, f"they look for {limit} of {found.feasible} feasible nodes"
        pairs = zip(best.plugins, score.plugins, strict=True)
        apart = [
            f"{one.plugin} {one.weighted} against {other.weighted}"
            for one, other in sorted(pairs, key=lambda p: -abs(p[0].weighted - p[1].weighted))
            if one.weighted != other.weighted
        ]
        text = f"{best.total} points for {best.node}, {score.total} for {score.node}"
        return SCORES, f"{text}: {', '.join(apart)}"

    def _in_another_order(self, pod: Pod, theirs: str, recent: Iterable[Pod]) -> str:
        """The pods without which their node is as good as ours, "" if it never is."""
        lifted: list[Pod] = []
        with ExitStack() as stack:
            for other in recent:
                stack.enter_context(self._cache.without_pod(other))
                lifted.append(other)
                found, answer = self._look(pod, theirs)
                if _is_best(found, answer):
                    return f"as if decided before {_listed(lifted)}"
        return ""


def _is_best(found: Explanation, answer: NodeAnswer | None) -> bool:
    if answer is None or answer.score is None or found.choice is None:
        return False
    return answer.score.total == found.choice.nodes[0].total


def _listed(pods: Sequence[Pod]) -> str:
    return ", ".join(pod.key for pod in pods)
