"""Small changes of a cluster, each with its undo, to test cached results.

The pod or node of a change is chosen by name and not by number, so that a case that is made smaller
keeps the change that showed a fault.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.testing._bench import Case, named_like, show, taking_over
from mooring.testing._other_pods import seen_running, twin_of
from mooring.testing._random_clusters import random_node
from mooring.testing._random_pods import Dice

T = TypeVar("T", core.Node, Pod, Object)
_Thing = Pod | Object | None

NEW_NODE: Final = "node-new"


class Change(NamedTuple):
    """One change of a cluster: an object is added, removed or replaced."""

    words: str  # finishes "after ..."
    old: _Thing
    new: _Thing
    node: str = ""  # the node that changed, or whose pods did

    def make(self, cache: Cache) -> None:
        _put(cache, self.new, self.old)

    def undo(self, cache: Cache) -> None:
        _put(cache, self.old, self.new)

    @property
    def is_of_pods(self) -> bool:
        return isinstance(self.old or self.new, Pod)

    @property
    def is_structural(self) -> bool:
        """Whether a node is added or removed."""
        return isinstance(self.old or self.new, core.Node) and None in (self.old, self.new)

    def touches(self, node: str, *, with_pods: bool) -> bool:
        """Whether it changes the node, or its pods if they count."""
        return self.node == node != "" and (with_pods or not self.is_of_pods)


def _put(cache: Cache, new: _Thing, old: _Thing) -> None:
    if isinstance(new, Pod):
        cache.put_pod(new)
    elif isinstance(new, core.Node):
        cache.put_node(new)
    elif new is not None:
        cache.objects.put(new)
    elif isinstance(old, Pod):
        cache.remove_pod(old)
    elif isinstance(old, core.Node):
        cache.remove_node(old.name)
    else:
        cache.objects.remove(old)


def changes(case: Case, reads: Sequence[type[Object]]) -> Iterator[Change]:
    """Some changes of each kind, for pods, nodes and objects of these kinds."""
    nodes = case.cluster.nodes
    if not nodes:
        return
    yield from _pod_changes(case, _pick(case, "pods", nodes).name)
    yield from _node_changes(case, _pick(case, "changed", nodes))
    gone = _pick(case, "gone", nodes)
    yield Change(f"node {NEW_NODE} was added", None, _other_node(case.seed, NEW_NODE))
    yield Change(f"node {gone.name} was removed", gone, None)
    for kind in reads:
        yield from _object_changes(case, kind)


def _pod_changes(case: Case, on: str) -> Iterator[Change]:
    names = {node.name for node in case.cluster.nodes}
    residents = [pod for pod in case.cluster.residents if pod.node_name in names]
    here = [pod for pod in residents if pod.node_name == on and not pod.is_finished]
    others = [pod for pod in case.bystanders if not pod.is_finished]
    for pod in (twin_of(case.pod), *([_pick(case, "added", others)] if others else ())):
        yield Change(f"pod {pod.key} was added to node {on}", None, pod.assumed_on(on), on)
    if here:
        removed = _pick(case, "removed", here)
        yield Change(f"pod {removed.key} was removed from node {on}", removed, None, on)
    if residents:
        # Frequent, and no change of the node: see `Pod.has_same_footprint`.
        seen = _pick(case, "seen", residents)
        words = f"the status of pod {seen.key} on node {seen.node_name} changed"
        yield Change(words, seen, seen_running(seen))


def _node_changes(case: Case, old: core.Node) -> Iterator[Change]:
    """The node with one field of another node."""
    other = _other_node(case.seed, old.name)
    for field, value, new in taking_over(old, other, "metadata", "spec", "status"):
        yield Change(f"{field} of node {old.name} became {show(value)}", old, new, old.name)


def _object_changes(case: Case, kind: type[Object]) -> Iterator[Change]:
    found = [value for value in case.cluster.objects if type(value) is kind]
    if not found:
        return
    old, other = _pick(case, "object", found), _pick(case, "like", found)
    yield Change(f"{kind.KIND} {old.key} was removed", old, None)
    if other is not old:
        yield Change(f"{kind.KIND} {old.key} became like {other.key}", old, named_like(other, old))


def _other_node(seed: int, name: str) -> core.Node:
    return random_node(Dice(random.Random(f"{seed}/{name}")), name)


def _pick(case: Case, salt: str, of: Sequence[T]) -> T:
    return min(of, key=lambda one: zlib.crc32(f"{case.seed}/{salt}/{one.key}".encode()))
