"""Shrinks a case that shows a fault to a small one that still shows it.

Nodes, pods and objects are removed, then fields are reset to their defaults, as long as the fault
stays. A check is fast, so a few hundred attempts are cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

import msgspec
from msgspec import structs

from mooring.api import codec
from mooring.cache.pods import Pod
from mooring.testing._bench import Case, Fault

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

MAX_QUESTIONS: Final = 600
_KEEP: Final = frozenset({"name", "namespace", "uid"})  # messages name objects by these


def smallest(case: Case, fault: Fault, ask: Callable[[Case], Fault | None]) -> Fault:
    """The fault in the smallest case found with a fault of this kind, and a text of the case."""
    kind, seed = type(fault), case.seed // 1_000
    left, place, is_smaller = MAX_QUESTIONS, 0, False
    attempts = _smaller(case)
    while left > 0:
        smaller = next(attempts, None)
        if smaller is None:
            if not is_smaller:
                break
            attempts, place, is_smaller = _smaller(case), 0, False  # once more from the beginning
            continue
        left -= 1
        found = ask(smaller)
        if type(found) is kind:
            # Steps that lost the fault before will mostly lose it again: go on with the next.
            case, fault, is_smaller = smaller, found, True
            attempts = islice(_smaller(case), place, None)
        else:
            place += 1
    shown = kind(f"{fault}\n{_describe(case)}\n  (from seed {seed})")
    shown.__cause__ = fault.__cause__
    return shown


def _describe(case: Case) -> str:
    """The case as JSON, one object per line."""
    cluster = case.cluster
    homes = {node.metadata.name for node in cluster.nodes}
    lines = [f"pod {_json(case.pod.api)}"]
    lines += [f"node {_json(node)}" for node in cluster.nodes]
    lines += [f"on {r.node_name} {_json(r.api)}" for r in cluster.residents if r.node_name in homes]
    lines += [f"pending {_json(pod.api)}" for pod in case.bystanders]
    shown = lines[:8]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more objects")
    return "\n".join(f"  {line}" for line in shown)


def _json(value: object) -> str:
    text = codec.encode(value).decode()
    return text if len(text) <= 600 else text[:597] + "..."


def _smaller(case: Case) -> Iterator[Case]:
    """Smaller cases, the biggest steps first."""
    cluster = case.cluster
    for nodes in _without_some(cluster.nodes):
        names = {node.metadata.name for node in nodes}
        kept = tuple(pod for pod in cluster.residents if pod.node_name in names)
        yield case.with_cluster(nodes=nodes, residents=kept)
    for part in ("residents", "objects", "incoming"):
        for fewer in _without_some(getattr(cluster, part)):
            yield case.with_cluster(**{part: fewer})
    for api in _plainer(case.pod.api):
        yield structs.replace(case, pod=Pod(api))
    for place, resident in enumerate(cluster.residents):
        for api in _plainer(resident.api):
            if api.spec.node_name == resident.node_name:
                yield case.with_cluster(residents=_replaced(cluster.residents, place, Pod(api)))
    for place, node in enumerate(cluster.nodes):
        for plainer in _plainer(node):
            yield case.with_cluster(nodes=_replaced(cluster.nodes, place, plainer))


def _without_some(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Without all items, without either half, without each item."""
    if not items:
        return
    yield ()
    if len(items) > 3:
        half = len(items) // 2
        yield items[:half]
        yield items[half:]
    if len(items) > 1:
        for place in range(len(items)):
            yield items[:place] + items[place + 1 :]


def _plainer(value: S, depth: int = 2) -> Iterator[S]:
    """The value with one field reset to its default."""
    for field in structs.fields(value):
        current = getattr(value, field.name)
        if field.name in _KEEP or current is field.default:
            continue
        if field.default is not msgspec.NODEFAULT and field.name != "metadata":
            yield structs.replace(value, **{field.name: field.default})
        if isinstance(current, msgspec.Struct) and depth > 0:
            for plainer in _plainer(current, depth - 1):
                yield structs.replace(value, **{field.name: plainer})


def _replaced(items: Sequence[T], place: int, by: T) -> tuple[T, ...]:
    return (*items[:place], by, *items[place + 1 :])
