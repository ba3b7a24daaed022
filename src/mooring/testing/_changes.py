"""Small changes of a cluster, each with the way back: what kept answers have to survive.

Which pod or node a change is about depends on names and not on numbers, so that a case that is
made smaller keeps the change that showed a fault.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.testing._bench import Case, show
from mooring.testing._other_pods import seen_running, twin_of
from mooring.testing._random_clusters import random_node
from mooring.testing._random_pods import Dice

T = TypeVar("T", core.Node, Pod, Object)

NEW_NODE: Final = "node-new"
_ASPECTS: Final = {
    "labels": "metadata",
    "annotations": "metadata",
    "taints": "spec",
    "unschedulable": "spec",
    "allocatable": "status",
    "images": "status",
}


class Change(NamedTuple):
    """One thing that happens to a cluster."""

    words: str  # finishes "after ..."
    make: Callable[[Cache], object]
    undo: Callable[[Cache], object]
    node: str = ""  # the node that changed, or whose pods did
    is_of_pods: bool = False
    is_structural: bool = False  # nodes come or go

    def touches(self, node: str, *, with_pods: bool) -> bool:
        """Whether the node, or its pods if they count, is another one after it."""
        return self.node == node != "" and (with_pods or not self.is_of_pods)


def changes(case: Case, reads: Sequence[type[Object]]) -> Iterator[Change]:
    """Some of each sort, for pods, nodes and objects of these kinds."""
    nodes = case.cluster.nodes
    if not nodes:
        return
    yield from _pod_changes(case, _pick(case, "pods", nodes).name)
    yield from _node_changes(case, _pick(case, "changed", nodes))
    new, gone = _other_node(case.seed, NEW_NODE), _pick(case, "gone", nodes)
    yield _put(f"node {NEW_NODE} was added", None, new)._replace(is_structural=True)
    yield _put(f"node {gone.name} was removed", gone, None)._replace(is_structural=True)
    for kind in reads:
        yield from _object_changes(case, kind)


def _pod_changes(case: Case, on: str) -> Iterator[Change]:
    names = {node.name for node in case.cluster.nodes}
    residents = [pod for pod in case.cluster.residents if pod.node_name in names]
    here = [pod for pod in residents if pod.node_name == on and not pod.is_finished]
    others = [pod for pod in case.bystanders if not pod.is_finished]
    for pod in (twin_of(case.pod), *([_pick(case, "added", others)] if others else ())):
        yield _put_pod(f"pod {pod.key} was added to node {on}", None, pod.assumed_on(on), on)
    if here:
        removed = _pick(case, "removed", here)
        yield _put_pod(f"pod {removed.key} was removed from node {on}", removed, None, on)
    if residents:
        # It happens often, and does not count as a change of the node: see `Pod.weighs_like`.
        seen = _pick(case, "seen", residents)
        words = f"the status of pod {seen.key} on node {seen.node_name} changed"
        yield _put_pod(words, seen, seen_running(seen))


def _node_changes(case: Case, old: core.Node) -> Iterator[Change]:
    """The node with one thing of another node."""
    other = _other_node(case.seed, old.name)
    for field, part in _ASPECTS.items():
        value = getattr(getattr(other, part), field)
        changed = structs.replace(getattr(old, part), **{field: value})
        new = structs.replace(old, **{part: changed})
        if new != old:
            words = f"{field} of node {old.name} became {show(value)}"
            yield _put(words, old, new)._replace(node=old.name)


def _object_changes(case: Case, kind: type[Object]) -> Iterator[Change]:
    found = [value for value in case.cluster.objects if type(value) is kind]
    if not found:
        return
    old, other = _pick(case, "object", found), _pick(case, "like", found)
    yield _put(f"{kind.KIND} {old.key} was removed", old, None)
    if other is not old:
        meta = structs.replace(other.metadata, name=old.name, namespace=old.namespace, uid=old.uid)
        new = structs.replace(other, metadata=meta)
        yield _put(f"{kind.KIND} {old.key} became like {other.key}", old, new)


def _put(words: str, old: Object | None, new: Object | None) -> Change:
    """A node or another object comes, goes or is replaced."""

    def put(cache: Cache, value: Object | None, instead_of: Object | None) -> None:
        if isinstance(value, core.Node):
            cache.put_node(value)
        elif value is not None:
            cache.objects.put(value)
        elif isinstance(instead_of, core.Node):
            cache.remove_node(instead_of.name)
        else:
            cache.objects.remove(instead_of)

    return Change(words, lambda cache: put(cache, new, old), lambda cache: put(cache, old, new))


def _put_pod(words: str, old: Pod | None, new: Pod | None, node: str = "") -> Change:
    def put(cache: Cache, pod: Pod | None, instead_of: Pod | None) -> None:
        if pod is not None:
            cache.put_pod(pod)
        elif instead_of is not None:
            cache.remove_pod(instead_of)

    make, undo = (lambda cache: put(cache, new, old)), (lambda cache: put(cache, old, new))
    return Change(words, make, undo, node, is_of_pods=True)


def _other_node(seed: int, name: str) -> core.Node:
    return random_node(Dice(random.Random(f"{seed}/{name}")), name)


def _pick(case: Case, salt: str, of: Sequence[T]) -> T:
    return min(of, key=lambda one: zlib.crc32(f"{case.seed}/{salt}/{one.key}".encode()))
