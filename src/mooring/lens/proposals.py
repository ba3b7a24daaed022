"""What could be changed for a node that is refused: the edits that plugins propose.

`remedies` tries them out. Which nodes are asked about is decided here: of each group those that are
nearest to fitting, by the facts of the plugins.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import structs

from mooring.api import core
from mooring.cache.pods import Pod
from mooring.decision.evaluation import Evaluation
from mooring.framework import Node
from mooring.framework.explaining import Edit, ObjectChange, listed
from mooring.framework.plugin import Base
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.lens.explanation import NodeGroup
from mooring.lens.groups import Grouping, ask_more, beside_nominated
from mooring.lens.private import PrivateCluster

_MOST_NODES: Final = 40  # for which edits are asked for
_MOST_PER_GROUP: Final = 8
_MOST_ALTERNATIVES: Final = 4  # edits of one plugin for one node
_HIGHEST_PRIORITY: Final = 1_000_000_000  # of pods of users


class Representative(NamedTuple):
    """A node that stands for its group."""

    turn: int  # its place in the group: first the first nodes of all groups
    refusals: int
    group: int  # -1: the pod is refused before nodes are looked at
    node: str


class Proposals:
    """Asks the plugins of a private copy."""

    def __init__(self, private: PrivateCluster) -> None:
        self._private = private
        self.problems: list[str] = []  # what plugins failed to say

    def representatives(
        self, evaluation: Evaluation
    ) -> tuple[list[NodeGroup], list[Representative]]:
        """The groups of nodes, and those to ask about; few refusals first."""
        if not evaluation.outcome.status.ok:
            return [], [Representative(0, 1, -1, "")]
        private = self._private
        grouping = Grouping(evaluation, private.evaluator.what_if, private.profile.plugins)
        groups = grouping.groups()
        chosen: list[Representative] = []
        for place, group in enumerate(groups):
            names = [fact.node for one in group.refusals for fact in one.facts if fact.node]
            rows = grouping.members[place][:_MOST_PER_GROUP].tolist()
            names += [grouping.nodes.names[row] for row in rows]
            for turn, name in enumerate(list(dict.fromkeys(names))[:_MOST_PER_GROUP]):
                chosen.append(Representative(turn, len(group.refusals), place, name))
        return groups, sorted(chosen)[:_MOST_NODES]

    def for_gate(self, pod: Pod) -> list[Edit]:
        """What opens the next gate of a pod; nothing if it is open."""
        gate = self._private.runner.pre_enqueue(pod)
        return [] if gate.ok else self._edits_of(gate, CycleState(), pod, None)

    def for_node(self, evaluation: Evaluation, name: str) -> list[list[Edit]]:
        """For every refusal of a node, the edits that its plugin proposes.

        Without a name, for a pod that is refused before nodes are looked at.
        """
        private, pod = self._private, evaluation.pod
        before = evaluation.outcome
        node = private.nodes.get(name) if name else None
        if not before.status.ok:
            status = before.status
            status = status if status.plugin else status.by(" ".join(before.restricted_by))
            return [self._edits_of(status, evaluation.state, pod, node)]
        if node is None:
            return []
        offers = []
        if before.only is not None and name not in before.only:
            status = before.elsewhere.by(before.restricted_by[0])
            offers.append(self._edits_of(status, evaluation.state, pod, node))
        refusals = private.evaluator.what_if.refusals_of(evaluation.state, pod, node)
        named = {status.plugin for status in refusals}
        offers = [] if before.only is not None and named & set(before.restricted_by) else offers
        offers += [self._edits_of(status, evaluation.state, pod, node) for status in refusals]
        if not refusals:
            beside = self._offers_beside(evaluation, node)
            offers += [beside] if beside is not None else []
        return offers

    def _offers_beside(self, evaluation: Evaluation, node: Node) -> list[Edit] | None:
        """The node would do, but for the pods that are nominated for it."""
        what_if, pod = self._private.evaluator.what_if, evaluation.pod
        others = what_if.nominated_on(node.name, pod)
        row = evaluation.nodes.index_of(node.name)
        if not others or row is None:
            return None
        found = beside_nominated(what_if, evaluation, row, others)
        refusals = what_if.refusals_of(found.state, pod, found.nodes[0])
        if not refusals:
            return None
        own = self._edits_of(refusals[0], found.state, pod, found.nodes[0])
        edits = [edit for edit in own if edit.target == "pod"]
        highest = max(other.priority for other in others)
        if highest < _HIGHEST_PRIORITY:
            text = f"a priority above {highest}"
            edits.append(Edit.of_pod_spec(text, family="priority", cost=1, priority=highest + 1))
        names = listed(other.key for other in others)
        ends = "no longer claims" if len(others) == 1 else "no longer claim"
        changes = tuple(
            ObjectChange(core.Pod, other.namespace, other.name, _without_claim) for other in others
        )
        text = f"{names} {ends} {node.name}"
        edits.append(Edit(target="others", text=text, changes=changes, family="claims"))
        return edits

    def _edits_of(
        self, status: Status, state: CycleState, pod: Pod, node: Node | None
    ) -> list[Edit]:
        plugin: Base | None = self._private.profile.plugins.get(status.plugin.partition(" ")[0])
        if plugin is None:
            return []
        ask, known = plugin.remedies, len(self.problems)
        edits = ask_more(self.problems, plugin, lambda: ask(state, pod, node, status), Edit)
        edits = [edit for edit in edits if self._private.can_try(edit)]
        if len(self.problems) == known:  # else it is broken: to be mended, not switched off
            edits += self._private.configuration_edits(plugin.name)
        # Of each target at least one: the mildest of the others come after them.
        firsts = {edit.target: edit for edit in reversed(edits)}
        kept = [edit for edit in edits if firsts[edit.target] is edit]
        kept += [edit for edit in edits if firsts[edit.target] is not edit]
        kept = kept[:_MOST_ALTERNATIVES]
        return [edit for edit in edits if edit in kept]


def _without_claim(pod: core.Pod) -> core.Pod:
    status = structs.replace(pod.status, nominated_node_name="")
    return structs.replace(pod, status=status)
