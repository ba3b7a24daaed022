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

from mooring.api.resource import ResourceSlice
from mooring.cache.pods import Pod
from mooring.decision.evaluation import Evaluation
from mooring.framework.explaining import LAST_RESORT, Edit, Target
from mooring.lens.added_node import FAMILY, imagined_nodes
from mooring.lens.explanation import NodeGroup, Remedy
from mooring.lens.patches import applied
from mooring.lens.private import PrivateCluster
from mooring.lens.proposals import Proposals

MOST_EDITS: Final = 3
MOST_CANDIDATES: Final = 64
_FOR_NODES: Final = 4  # of them, kept for added nodes
_MOST_EXAMPLES: Final = 160  # nodes whose shapes an added node may have
_MOST_FOLLOWED: Final = 4  # nodes, once a pod is not refused before they are looked at
_MOST_SETS: Final = 12  # of edits for one node
_TARGETS: Final[tuple[Target, ...]] = ("pod", "cluster", "others", "configuration")
_EXAMPLES: Final = 3

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
        self._proposals = Proposals(private)
        self.remedies: tuple[Remedy, ...] = ()
        self.proven: list[Proven] = []  # what they are made of
        self._queue: list[EditSet] = []
        self._numbers = itertools.count()
        self._known: dict[frozenset[str], bool] = {}  # what was tried, and whether it helped
        self._patterns: set[object] = set()
        self._found: list[Proven] = []
        self._groups: list[NodeGroup] = []

    @property
    def problems(self) -> list[str]:
        """What plugins failed to say."""
        return self._proposals.problems

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
        for edit in self._private.other_profiles():
            self._try(EditSet(1, 0, 0, 0, (*prefix, edit), "", -1))
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
                more = self._proposals.for_gate(pod)
            if not more:
                break
            edits = (*edits, more[0])
        return edits

    def _begin(self, pod: Pod, prefix: Edits) -> None:
        """Candidates for some nodes of every group, those with the fewest refusals first."""
        evaluation = self._private.evaluate(pod)
        self._groups, chosen = self._proposals.representatives(evaluation)
        for one in chosen:
            self._propose(evaluation, one.node, prefix, one.turn, one.group)

    def _propose(
        self, evaluation: Evaluation, name: str, before: Edits, turn: int, group: int
    ) -> None:
        """One edit for each plugin that refuses the node."""
        offers = self._proposals.for_node(evaluation, name)
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
            evaluation = self._private.evaluate(pod)
            if one.node:
                self._propose(evaluation, one.node, one.edits, one.turn, one.group)
                return
            for other in self._proposals.representatives(evaluation)[1][:_MOST_FOLLOWED]:
                self._propose(evaluation, other.node, one.edits, other.turn, -1)

    def _shapes(self) -> Iterator[Edit]:
        """Nodes that could be added, like some of those that are there."""
        nodes = self._private.nodes
        names = [name for group in self._groups for name in group.examples]
        if not names:
            names = list(nodes.names[:_MOST_EXAMPLES])
        known = (nodes.get(name) for name in names[:_MOST_EXAMPLES])
        found = [node.api for node in known if node is not None]
        return imagined_nodes(found, self._pod, self._private.cache.objects.list(ResourceSlice))

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
        fewest = min((len(one.edits) for one in kept if _cost(one) < LAST_RESORT), default=99)
        kept = [
            one
            for one in kept
            if _cost(one) < LAST_RESORT or _adds_node(one) or len(one.edits) < fewest
        ]
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
