"""Small changes of a cluster, each with the way back: what kept answers have to survive.

Which pod or node a change is about depends on names and not on numbers, so that a case that is
made smaller keeps the change that showed a fault.
"""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from msgspec import structs

from mooring.api import core
from mooring.api.meta import Object
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.testing._attempt import Case, show
from mooring.testing._likenesses import seen_running, twin_of
from mooring.testing._random_clusters import random_node
from mooring.testing._random_pods import Dice

T = TypeVar("T")
_Step = Callable[[Cache], object]

NEW_NODE: Final = "node-new"
_ASPECTS: Final = {
    "metadata": ("labels", "annotations"),
    "spec": ("taints", "unschedulable"),
    "status": ("allocatable", "images"),
}


class Change(NamedTuple):
    """One thing that happens to a cluster, or several at once."""

    words: str  # finishes "after ..."
    make: _Step
    undo: _Step
    pods_of: str = ""  # the node whose pods it changes
    node: str = ""  # the node that it changes
    is_structural: bool = False  # nodes come or go
    parts: Callable[[], Sequence[Change]] = tuple  # what it is made of

    @classmethod
    def of(cls, words: str, parts: Sequence[Change]) -> Change:
        """All these at once; what the first one touches is all that they touch."""

        def make(cache: Cache) -> None:
            for part in parts:
                part.make(cache)

        def undo(cache: Cache) -> None:
            for part in reversed(parts):
                part.undo(cache)

        return parts[0]._replace(words=words, make=make, undo=undo, parts=lambda: parts)


def changes(case: Case, reads: Sequence[type[Object]]) -> Iterator[Change]:
    """Some of each sort, for pods, nodes and objects of these kinds."""
    nodes = case.cluster.nodes
    if not nodes:
        return
    # One more and one less at once might pass for none.
    is_more = case.seed % 2 == 0
    yield _other_pods(case, _pick(case, "pods", nodes, _name).name, is_more=is_more)
    yield _other_node(_pick(case, "changed", nodes, _name), case.seed)
    yield _new_node(case) if is_more else _node_gone(_pick(case, "gone", nodes, _name))
    for kind in reads:
        yield from _changes_of_objects(case, kind)


# --- pods ---------------------------------------------------------------------------------------


def _other_pods(case: Case, on: str, *, is_more: bool) -> Change:
    names = {node.name for node in case.cluster.nodes}
    residents = [pod for pod in case.cluster.residents if not pod.is_finished]
    here = [pod for pod in residents if pod.node_name == on]
    elsewhere = [pod for pod in residents if pod.node_name in names - {on}]
    others = [pod for pod in case.bystanders if not pod.is_finished]
    if here and not is_more:
        parts = [_pod_removed(_pick(case, "removed", here, _key))]
    else:
        parts = [_pod_added(twin_of(case.pod), on)]
        if others:
            parts.append(_pod_added(_pick(case, "added", others, _key), on))
    if elsewhere:
        parts.append(_status_changed(_pick(case, "seen", elsewhere, _key)))
    return Change.of(" and ".join(part.words for part in parts), parts)


def _pod_added(pod: Pod, to: str) -> Change:
    placed = pod.assumed_on(to)
    return Change(
        f"pod {pod.key} was added to node {to}",
        lambda cache: cache.put_pod(placed),
        lambda cache: cache.remove_pod(placed),
        pods_of=to,
    )


def _pod_removed(pod: Pod) -> Change:
    return Change(
        f"pod {pod.key} was removed from node {pod.node_name}",
        lambda cache: cache.remove_pod(pod),
        lambda cache: cache.put_pod(pod),
        pods_of=pod.node_name,
    )


def _status_changed(old: Pod) -> Change:
    """What happens to pods most often, and makes no node a changed one: see `Pod.weighs_like`."""
    new = seen_running(old)
    return Change(
        f"the status of pod {old.key} on node {old.node_name} changed",
        lambda cache: cache.put_pod(new),
        lambda cache: cache.put_pod(old),
    )


# --- nodes --------------------------------------------------------------------------------------


def _other_node(old: core.Node, seed: int) -> Change:
    new = _node(seed, old.name)

    def parts() -> Sequence[Change]:
        return [
            _node_changed(f"{aspect} of node {old.name} became {show(value)}", old, node)
            for aspect, value, node in _aspects(old, new)
        ]

    return _node_changed(f"node {old.name} changed", old, new)._replace(parts=parts)


def _aspects(old: core.Node, new: core.Node) -> Iterator[tuple[str, object, core.Node]]:
    """The old node with one thing of the new one."""
    for where, fields in _ASPECTS.items():
        for field in fields:
            value = getattr(getattr(new, where), field)
            changed = structs.replace(getattr(old, where), **{field: value})
            yield field, value, structs.replace(old, **{where: changed})


def _node_changed(words: str, old: core.Node, new: core.Node) -> Change:
    return Change(
        words,
        lambda cache: cache.put_node(new),
        lambda cache: cache.put_node(old),
        node=old.name,
    )


def _new_node(case: Case) -> Change:
    new = _node(case.seed, NEW_NODE)
    added = Change(
        f"node {NEW_NODE} was added",
        lambda cache: cache.put_node(new),
        lambda cache: cache.remove_node(NEW_NODE),
        is_structural=True,
    )
    inhabited = [added, _pod_added(twin_of(case.pod), NEW_NODE)]
    return Change.of(f"{added.words} with a pod on it", inhabited)


def _node_gone(node: core.Node) -> Change:
    return Change(
        f"node {node.name} was removed",
        lambda cache: cache.remove_node(node.name),
        lambda cache: cache.put_node(node),
        is_structural=True,
    )


@functools.lru_cache(maxsize=512)
def _node(seed: int, name: str) -> core.Node:
    return random_node(Dice(random.Random(f"{seed}/{name}")), name)


# --- other objects ------------------------------------------------------------------------------


def _changes_of_objects(case: Case, kind: type[Object]) -> Iterator[Change]:
    found = [value for value in case.cluster.objects if type(value) is kind]
    if not found:
        return
    gone = _pick(case, "object", found, _object_key)
    yield Change(
        f"{kind.KIND} {gone.key} was removed",
        lambda cache: cache.objects.remove(gone),
        lambda cache: cache.objects.put(gone),
    )
    other = _pick(case, "like", found, _object_key)
    if other is not gone:
        meta = structs.replace(
            other.metadata, name=gone.name, namespace=gone.namespace, uid=gone.uid
        )
        like_other = structs.replace(other, metadata=meta)
        yield Change(
            f"{kind.KIND} {gone.key} became like {other.key}",
            lambda cache: cache.objects.put(like_other),
            lambda cache: cache.objects.put(gone),
        )


# --- choosing -----------------------------------------------------------------------------------


def _pick(case: Case, salt: str, of: Sequence[T], key: Callable[[T], str]) -> T:
    return min(of, key=lambda item: zlib.crc32(f"{case.seed}/{salt}/{key(item)}".encode()))


def _name(node: core.Node) -> str:
    return node.name


def _key(pod: Pod) -> str:
    return pod.key


def _object_key(value: Object) -> str:
    return value.key
