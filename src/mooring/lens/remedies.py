"""The smallest changes with which a pending pod would fit: each tried out, none without proof.

Plugins propose edits for a node they refuse (`Plugin.remedies`). One edit per refusing plugin makes
a candidate; it is applied to a private copy and the pod is evaluated again as a whole. A candidate
that does not suffice is extended by what the node is refused for then, up to three edits. What
suffices is kept if no edit of it can be left out.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from mooring.api import core
from mooring.cache.pods import Pod
from mooring.decision.evaluation import Evaluation
from mooring.framework import Node
from mooring.framework.explaining import LAST_RESORT, Edit, ObjectChange, Target, listed
from mooring.framework.plugin import Base
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.lens.added_node import FAMILY, imagined_nodes
from mooring.lens.explanation import NodeGroup, Remedy
from mooring.lens.groups import Grouping, ask_more, beside_nominated
from mooring.lens.patches import applied
from mooring.lens.private import PrivateCluster

MOST_EDITS: Final = 3
MOST_CANDIDATES: Final = 64
_FOR_NODES: Final = 4  # of them, kept for added nodes
_MOST_NODES: Final = 40  # for which edits are asked for
_MOST_PER_GROUP: Final = 8
_MOST_ALTERNATIVES: Final = 4  # edits of one plugin for one node
_MOST_SETS: Final = 12  # of edits for one node
_TARGETS: Final[tuple[Target, ...]] = ("pod", "cluster", "others", "configuration")
_EXAMPLES: Final = 3
_HIGHEST_PRIORITY: Final = 1_000_000_000  # of pods of users

Edits = tuple[Edit, ...]


class EditSet(NamedTuple):
    """Edits to try out for one node, in the order in which they are tried."""

    size: int
    turn: int  # first the first nodes of all groups
    rank: int
    number: int  # so that edits are never compared
    edits: Edits
    node: str  # "": the pod is refused before nodes are looked at
    group: int


class Proven(NamedTuple):
    """Edits with which the pod fits, and what was found then."""

    edits: Edits
    nodes: int
    examples: tuple[str, ...]
    node: str
    group: int


def remedies_for(private: PrivateCluster, pod: Pod, most: int = MOST_CANDIDATES) -> RemedySearch:
    """Look for remedies for a pod that does not fit; they are in `remedies`."""
    search = RemedySearch(private, pod, most)
    search.run()
    return search


class RemedySearch:
    """One search: what was tried, what helped, and what plugins failed to say."""

    def __init__(self, private: PrivateCluster, pod: Pod, most: int) -> None:
        self._private = private
        self._pod = pod
        self._most = most
        self.tried: int = 0
        self.problems: list[str] = []
        self.remedies: tuple[Remedy, ...] = ()
        self.proven: list[Proven] = []  # what they are made of
        self._queue: list[EditSet] = []
        self._numbers = itertools.count()
        self._known: dict[frozenset[str], bool] = {}  # what was tried, and whether it helped
        self._patterns: set[object] = set()
        self._found: list[Proven] = []
        self._groups: list[NodeGroup] = []

    def run(self) -> None:
        prefix = self._gates()
        if prefix and self._try(EditSet(len(prefix), 0, 0, 0, prefix, "", -1)):
            self.remedies = self._told()
            return
        with self._private.edited(self._pod, prefix) as pod:
            self._begin(pod, prefix)
            shapes = self._shapes()
        while self._queue and self.tried < self._most - _FOR_NODES:
            one = heapq.heappop(self._queue)
            if self._pattern(one) not in self._patterns and not self._try(one):
                self._extend(one)
        for edit in itertools.islice(shapes, _FOR_NODES):
            if self._try(EditSet(1, 0, 0, 0, (*prefix, edit), "", -1)):
                break
        self.remedies = self._told()

    # --- what to try ---------------------------------------------------------------------------

    def _gates(self) -> Edits:
        """What opens the pod to scheduling at all."""
        edits: Edits = ()
        while len(edits) < MOST_EDITS:
            with self._private.edited(self._pod, edits) as pod:
                gate = self._private.runner.pre_enqueue(pod)
                if gate.ok:
                    return edits
                more = self._edits_of(gate, CycleState(), pod, None)
            if not more:
                return edits
            edits = (*edits, more[0])
        return edits

    def _begin(self, pod: Pod, prefix: Edits) -> None:
        """Candidates for some nodes of every group, those with the fewest refusals first."""
        for turn, group, name in self._representatives(pod):
            self._propose(pod, name, prefix, turn, group)

    def _representatives(self, pod: Pod) -> list[tuple[int, int, str]]:
        """Nodes for which edits are asked for: of each group those that are nearest to fitting."""
        private = self._private
        evaluation = private.evaluate(pod)
        if not evaluation.outcome.status.ok:
            return [(0, -1, "")]
        grouping = Grouping(evaluation, private.evaluator.what_if, private.profile.plugins)
        self._groups = grouping.groups()
        chosen: list[tuple[int, int, int, str]] = []
        for place, group in enumerate(self._groups):
            names = [fact.node for one in group.refusals for fact in one.facts if fact.node]
            rows = grouping.members[place][:_MOST_PER_GROUP].tolist()
            names += [grouping.nodes.names[row] for row in rows]
            for turn, name in enumerate(list(dict.fromkeys(names))[:_MOST_PER_GROUP]):
                chosen.append((turn, len(group.refusals), place, name))
        chosen.sort()
        return [(turn, place, name) for turn, _, place, name in chosen[:_MOST_NODES]]

    def _propose(self, pod: Pod, name: str, before: Edits, turn: int, group: int) -> None:
        """One edit for each plugin that refuses the node."""
        offers = self._offers(pod, name)
        room = MOST_EDITS - len(before)
        if not offers or not all(offers):
            return
        if len(offers) > room:
            # One edit may lift several refusals, as to uncordon does.
            offers = offers[:room]
        choices = itertools.product(*(range(len(offer)) for offer in offers))
        for choice in sorted(choices, key=sum)[:_MOST_SETS]:
            picked = (offer[place] for offer, place in zip(offers, choice, strict=True))
            edits = {edit.text: edit for edit in (*before, *picked)}
            if len(edits) > len(before):
                self._push(tuple(edits.values()), name, turn, sum(choice), group)

    def _push(self, edits: Edits, name: str, turn: int, later: int, group: int) -> None:
        rank = later + sum(_TARGETS.index(edit.target) for edit in edits)
        number = next(self._numbers)
        heapq.heappush(self._queue, EditSet(len(edits), turn, rank, number, edits, name, group))

    def _extend(self, one: EditSet) -> None:
        """What is still in the way on that node once these edits are made."""
        if one.size >= MOST_EDITS:
            return
        with self._private.edited(self._pod, one.edits) as pod:
            if one.node:
                self._propose(pod, one.node, one.edits, one.turn, one.group)
                return
            groups = self._groups
            for turn, _, name in self._representatives(pod)[:_MOST_ALTERNATIVES]:
                self._propose(pod, name, one.edits, turn, -1)
            self._groups = groups

    def _offers(self, pod: Pod, name: str) -> list[list[Edit]]:
        """For every refusal of a node, the edits that its plugin proposes."""
        private = self._private
        gate = private.runner.pre_enqueue(pod)
        if not gate.ok:
            return [self._edits_of(gate, CycleState(), pod, None)]
        evaluation = private.evaluate(pod)
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
        ask = plugin.remedies
        edits = ask_more(self.problems, plugin, lambda: ask(state, pod, node, status), Edit)
        # Of each target at least one: the mildest of the others come after them.
        firsts = {edit.target: edit for edit in reversed(edits)}
        kept = [edit for edit in edits if firsts[edit.target] is edit]
        kept += [edit for edit in edits if firsts[edit.target] is not edit]
        kept = kept[:_MOST_ALTERNATIVES]
        return [edit for edit in edits if edit in kept]

    def _shapes(self) -> Iterator[Edit]:
        """Nodes that could be added, like some of those that are there."""
        nodes = self._private.nodes
        names = [name for group in self._groups for name in group.examples]
        if not names:
            names = list(nodes.names[:_MOST_NODES])
        known = (nodes.get(name) for name in names[: 4 * _MOST_NODES])
        found = [node.api for node in known if node is not None]
        return imagined_nodes(found, self._pod)

    # --- trying out ----------------------------------------------------------------------------

    def _try(self, one: EditSet) -> bool:
        """Whether the pod fits with these edits; what helps is kept, without what is not needed."""
        needed = self._needed(one.edits)
        if needed is None:
            return False
        self._patterns.add(self._pattern(one))
        if any(
            {edit.text for edit in known.edits} == {e.text for e in needed} for known in self._found
        ):
            return True
        with self._private.edited(self._pod, needed) as pod:
            evaluation = self._private.fits(pod)
            assert evaluation is not None
            evaluation.choose()
            if not evaluation.status.ok:
                return False
            names = evaluation.nodes.names
            rows = evaluation.rows[:_EXAMPLES].tolist()
            self._found.append(
                Proven(
                    needed,
                    evaluation.count,
                    tuple(names[row] for row in rows),
                    names[evaluation.row],
                    one.group,
                )
            )
        return True

    def _needed(self, edits: Edits) -> Edits | None:
        """These edits if the pod fits with them and with none of them left out; or fewer."""
        if not self._helps(edits):
            return None
        for left_out in edits if len(edits) > 1 else ():
            fewer = tuple(edit for edit in edits if edit is not left_out)
            if self._helps(fewer):
                return self._needed(fewer)
        return edits

    def _helps(self, edits: Edits) -> bool:
        key = frozenset(edit.text for edit in edits)
        known = self._known.get(key)
        if known is None:
            self.tried += 1
            with self._private.edited(self._pod, edits) as pod:
                known = self._known[key] = self._private.fits(pod) is not None
        return known

    @staticmethod
    def _pattern(one: EditSet) -> object:
        """Of several nodes of a group, the same sort of edits is told for one."""
        return one.group, frozenset((edit.target, edit.family) for edit in one.edits)

    # --- telling -------------------------------------------------------------------------------

    def _told(self) -> tuple[Remedy, ...]:
        kept = [one for one in self._found if not any(_beats(s, one) for s in self._found)]
        kept.sort(key=_order)
        if any(_cost(one) < LAST_RESORT for one in kept):
            kept = [one for one in kept if _cost(one) < LAST_RESORT or _adds_node(one)]
        self.proven = [
            one._replace(edits=tuple(sorted(one.edits, key=_edit_order))) for one in kept
        ]
        return tuple(self._remedy(one) for one in self.proven)

    def _remedy(self, one: Proven) -> Remedy:
        edits = []
        for place, edit in enumerate(one.edits):
            with self._private.edited(self._pod, one.edits[:place]) as pod:
                edits.append(applied(self._private, pod, edit, self._text(edit, one)))
        return Remedy(edits=tuple(edits), nodes=one.nodes, examples=one.examples, node=one.node)

    def _text(self, edit: Edit, one: Proven) -> str:
        group = self._groups[one.group] if 0 <= one.group < len(self._groups) else None
        is_alone = group is not None and not group.also and group.nodes > 1
        if not edit.one_of or group is None or not is_alone:
            return edit.text
        return edit.one_of.format(count=f"{group.nodes:,}", node=edit.changes[0].name)


def _without_claim(pod: core.Pod) -> core.Pod:
    status = structs.replace(pod.status, nominated_node_name="")
    return structs.replace(pod, status=status)


def _beats(better: Proven, one: Proven) -> bool:
    """Whether another remedy does the same by going less far."""
    if better is one or len(better.edits) > len(one.edits):
        return False
    by_family = {(edit.target, edit.family): edit for edit in one.edits}
    goes_less_far = False
    for edit in better.edits:
        other = by_family.get((edit.target, edit.family))
        if other is None or other.amount < edit.amount:
            return False
        if other.amount == edit.amount and other.text != edit.text:
            return False
        goes_less_far |= edit.amount < other.amount
    return goes_less_far or len(better.edits) < len(one.edits)


def _edit_order(edit: Edit) -> int:
    return _TARGETS.index(edit.target)


def _order(one: Proven) -> tuple[bool, int, Sequence[int], int, int, str]:
    targets = sorted(_TARGETS.index(edit.target) for edit in one.edits)
    return _adds_node(one), len(one.edits), targets, _cost(one), -one.nodes, one.edits[0].text


def _adds_node(one: Proven) -> bool:
    return any(edit.family == FAMILY for edit in one.edits)


def _cost(one: Proven) -> int:
    return sum(edit.cost for edit in one.edits)
