"""One scheduling attempt as kube-scheduler 1.36 makes it, written out plainly: a specification.

The walk calls the per-node form of every plugin, one node after the other, and keeps nothing
between attempts. It shares no code with the engine but the plugins, so a difference between the
two is a mistake in one of them. Not covered: PostFilter, extenders, sampling of large clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.cache.internals import listing_of
from mooring.framework.plugin import Base
from mooring.runtime.profile import Profile

SKIP: Final = fw.Code.SKIP
REFUSED: Final = (fw.Code.UNSCHEDULABLE, fw.Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


class Walk(msgspec.Struct, eq=False):
    """One attempt, made at once: the question, and everything that was found out."""

    profile: Profile
    state: fw.CycleState  # a fresh one
    pod: fw.Pod
    nodes: fw.Nodes  # all nodes of the cluster
    nominated: Mapping[str, Sequence[fw.Pod]]  # pods with a nominated node, by its name
    # As tests/parity/data were recorded: the nominated node of the pod itself is not tried first,
    # and a single feasible node is scored too.
    in_full: bool = False

    status: fw.Status = fw.OK  # or rejected, with the message of the condition; or an error
    only: frozenset[str] | None = None  # the nodes that PreFilter left; None: all
    restricting: list[str] = []  # the plugins that excluded the others, sorted
    refusals: dict[str, fw.Status] = {}  # node name -> first answer that is not OK, signed
    feasible: tuple[str, ...] = ()  # in row order
    raw: dict[str, dict[str, int]] = {}  # plugin -> node -> score; {} if taken without scores
    normalized: dict[str, dict[str, int]] = {}
    totals: dict[str, int] = {}  # node name -> weighted sum
    best: tuple[str, ...] = ()  # every node with the highest total, in row order
    chosen: str = ""  # the one of them that a kube-scheduler with one worker takes

    def __post_init__(self) -> None:
        self.status = self.decide()

    @property
    def rejectors(self) -> set[str]:
        """The plugins that refused nodes: only their events may help a pod that was rejected."""
        return {*self.restricting, *(status.plugin for status in self.refusals.values())} - {""}

    def decide(self) -> fw.Status:
        if not len(self.nodes):
            return fw.Status.unresolvable("no nodes available to schedule pods")
        status = self.pre_filter()
        if status.rejected:
            self.refusals = dict.fromkeys(self.nodes.names, status)
            return self.rejected(f" {status.message}.")
        if not status.ok:
            return status
        own = None if self.in_full else self.nodes.get(self.pod.nominated_node_name)
        if own is not None:
            status = self.filter(own)
            if status.ok:
                return self.take(own.name)
            if status.rejected:
                self.refusals[own.name] = status  # remains, and is named, if PreFilter excludes it
        text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.rejectors))}]"
        for node in self.nodes:
            if self.only is not None and node.name not in self.only:
                self.refusals.setdefault(node.name, fw.Status.unresolvable(text))
            elif not (status := self.filter(node)).ok:
                self.refusals[node.name] = status
        feasible = self.nodes.take(np.array([n not in self.refusals for n in self.nodes.names]))
        self.feasible = feasible.names
        if broken := [status for status in self.refusals.values() if not status.rejected]:
            return broken[0]
        if not self.feasible:
            counts = Counter(text for status in self.refusals.values() for text in status.reasons)
            texts = sorted(f"{count} {text}" for text, count in counts.items())  # as strings
            return self.rejected(f" {', '.join(texts)}." if texts else "")
        if len(self.feasible) == 1 and not self.in_full:
            return self.take(self.feasible[0])
        return self.score(feasible)

    def take(self, name: str) -> fw.Status:
        """Choose a node without scores."""
        self.feasible, self.best, self.chosen = (name,), (name,), name
        return fw.OK

    def rejected(self, reasons: str) -> fw.Status:
        return fw.Status.unschedulable(f"0/{len(self.nodes)} nodes are available:{reasons}")

    def pre_filter(self) -> fw.Status:
        result, around = fw.OK, (self.state, self.pod, self.nodes)
        for plugin in self.profile.at(fw.PreFilter):
            running = f'running PreFilter plugin "{plugin.name}"'
            answer = ask(plugin, running, (SKIP, *REFUSED), plugin.pre_filter, *around)
            if isinstance(answer, fw.OnlyNodes):
                self.restricting = sorted([*self.restricting, plugin.name])
                self.only = answer.names if self.only is None else self.only & answer.names
                if not self.only:
                    several = f"(s) [{' '.join(self.restricting)}] simultaneously"
                    which = several if len(self.restricting) > 1 else f" {plugin.name}"
                    return fw.Status.unresolvable(f"node(s) didn't satisfy plugin{which}")
            elif answer.skipped:
                self.state.skip_filter.add(plugin.name)
            elif answer.code is fw.Code.UNSCHEDULABLE:
                result = answer  # the others still run: preemption needs what they store
            elif not answer.ok:
                result, self.restricting = answer, []
                break
        return result

    def filter(self, node: fw.Node) -> fw.Status:
        """The pod must fit beside the pods that are nominated to the node, and without them."""
        state, crowded = self.state, node
        for other in self.nominated.get(node.name, ()):
            if other.priority >= self.pod.priority and other.uid != self.pod.uid:
                state = self.state.clone() if crowded is node else state
                crowded = crowded.with_pod(other)
                for plugin in self.profile.at(fw.PreFilter):
                    running = f'running AddPod on PreFilter plugin "{plugin.name}"'
                    around = (state, self.pod, other, crowded)
                    if plugin.name not in state.skip_filter:
                        status: fw.Status = ask(plugin, running, (), plugin.add_pod, *around)
                        if not status.ok:
                            return status
        if crowded is not node and not (status := self.filter_once(state, crowded)).ok:
            return status
        return self.filter_once(self.state, node)

    def filter_once(self, state: fw.CycleState, node: fw.Node) -> fw.Status:
        accepted, around = (*REFUSED, fw.Code.PENDING), (state, self.pod, node)
        for plugin in self.profile.at(fw.Filter):
            if plugin.name not in state.skip_filter:
                running = f'running "{plugin.name}" filter plugin'
                status: fw.Status = ask(plugin, running, accepted, plugin.filter, *around)
                if not status.ok:
                    return status
        return fw.OK

    def score(self, nodes: fw.Nodes) -> fw.Status:
        """Compare the feasible nodes."""
        state, pod, scorers = self.state, self.pod, self.profile.at(fw.Score)
        for plugin in self.profile.at(fw.PreScore) if scorers else ():
            running = f'running PreScore plugin "{plugin.name}"'
            status: fw.Status = ask(plugin, running, (SKIP,), plugin.pre_score, state, pod, nodes)
            if status.skipped:
                state.skip_score.add(plugin.name)
            elif not status.ok:
                return status
        self.totals = dict.fromkeys(nodes.names, 0 if scorers else 1)
        for scorer in scorers:
            if scorer.name in state.skip_score:
                continue
            points = [scorer.score(state, pod, node) for node in nodes]
            self.raw[scorer.name] = dict(zip(nodes.names, points, strict=True))
            given = np.array(points, dtype=np.int64)
            points = scorer.normalize_score(state, pod, nodes, given).tolist()
            if not 0 <= min(points) <= max(points) <= fw.MAX_SCORE:
                return fw.Status.error(f"scores out of range: {points}").by(scorer.name)
            self.normalized[scorer.name] = dict(zip(nodes.names, points, strict=True))
            for name, normal in self.normalized[scorer.name].items():
                self.totals[name] += self.profile.weights[scorer.name] * normal
        most = max(self.totals.values())
        self.best = tuple(name for name, total in self.totals.items() if total == most)
        names = [self.nodes.names[place] for place in listing_of(self.nodes)]
        listed = [name for name in names if name in self.totals]
        self.chosen = listed[root_of_heap([self.totals[name] for name in listed])]
        return fw.OK


def ask(
    plugin: Base, running: str, accepted: Sequence[fw.Code], call: Callable[..., Any], *args: Any
) -> Any:
    """The answer of a plugin; a status that the point does not accept becomes an error."""
    try:
        answer = call(*args)
    except fw.Failed as error:
        answer = fw.Status.error(str(error))
    if not isinstance(answer, fw.Status) or answer.ok:
        return answer
    if answer.code not in accepted:
        answer = fw.Status.error(f"{running}: {answer.message}")
    return answer.by(plugin.name)


def root_of_heap(totals: Sequence[int], place: int = 0) -> int:
    """The place that Go's `heap.Init` moves to the root, which is the node that is taken."""
    best = place
    for child in (2 * place + 1, 2 * place + 2):
        if child < len(totals):
            found = root_of_heap(totals, child)
            best = found if totals[found] > totals[best] else best
    return best
