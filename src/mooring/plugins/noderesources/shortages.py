"""What NodeResourcesFit says of its refusals: what is short where, and what would make room."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.api.meta import ResourceList
from mooring.api.quantity import Format, Quantity
from mooring.api.requests import PODS, amount, is_extended, pod_requests, quantity_of
from mooring.framework.explaining import LAST_RESORT, Span, listed

_MEBI: Final = 2**20
_QUANTITY: Final = re.compile(r"(\d+)(\D*)")

Needs = Mapping[str, int]
"""What is missing on a node, by resource."""


def text_of(resource: str, units: int, *, up: bool = False) -> str:
    """An amount as a person would write it: large numbers of bytes in whole Mi."""
    return str(quantity_of(resource, rounded(resource, units, up=up)))


def in_one_unit(resource: str, *amounts: int) -> list[str]:
    """Several amounts of a sentence in one unit: 1 and 1.5, not 1 and 1500m.

    The unit is the largest of theirs in which none has more than two decimals.
    """
    scales = {
        match[2]: units // int(match[1])
        for units in amounts
        if units and (match := _QUANTITY.fullmatch(str(quantity_of(resource, units))))
    }
    for suffix, scale in sorted(scales.items(), key=lambda item: -item[1]):
        if all(units * 100 % scale == 0 for units in amounts):
            return [f"{_decimal(units, scale)}{suffix}" if units else "0" for units in amounts]
    return [str(units) for units in amounts]  # none of anything


def _decimal(units: int, scale: int) -> str:
    whole, rest = divmod(units * 100 // scale, 100)
    return f"{whole}.{rest:02}".rstrip("0").rstrip(".")


def rounded(resource: str, units: int, *, up: bool = False) -> int:
    """Bytes in whole Mi, down or up, if that changes them by little; all else as it is."""
    if quantity_of(resource, 1).format is not Format.BINARY_SI or abs(units) < 16 * _MEBI:
        return units
    return -(-units // _MEBI) * _MEBI if up else units // _MEBI * _MEBI


def facts_of(requests: Needs, nodes: fw.Nodes, everywhere: fw.Nodes) -> Iterator[fw.Fact]:
    """One fact per resource that is short on some of these nodes."""
    wanted = {PODS: 1, **requests}
    spare = {resource: nodes.spare(resource) for resource in wanted}
    missing = {resource: wanted[resource] - spare[resource] for resource in wanted}
    # Where the least is missing of all resources together, as shares of what the pod asks for.
    distance = np.zeros(len(nodes))
    for resource, units in wanted.items():
        distance += np.maximum(missing[resource], 0) / units
    nearest = nodes[int(distance.argmin())].name
    for resource, asked in wanted.items():
        short = missing[resource] > 0
        count = int(np.count_nonzero(short))
        if not count:
            continue
        most_left = int(spare[resource][short].max())
        least, most = (int(f(missing[resource][short])) for f in (np.min, np.max))
        amounts = (
            rounded(resource, asked, up=True),
            rounded(resource, max(most_left, 0)),
            rounded(resource, least, up=True),
            rounded(resource, most, up=True),
        )
        asks, offers, *span = (str(quantity_of(resource, units)) for units in amounts)
        if resource == PODS:
            text = "as many pods as they may have"
        elif not everywhere.allocatable(resource).any():
            text = f"no node offers {resource}"
        else:
            text = _shortage(resource, *amounts, is_one=count == 1)
        yield fw.Fact(
            text=text,
            nodes=count,
            node=nearest,
            resource=resource,
            asks=asks,
            missing=Span(*span),
            offers=offers,
        )


def _shortage(
    resource: str, wanted: int, offered: int, least: int, most: int, *, is_one: bool
) -> str:
    if is_one:
        asks, offers, short = in_one_unit(resource, wanted, offered, least)
        return f"asks {asks} {resource}, offers {offers}: short by {short}"
    if least == most:
        asks, offers = in_one_unit(resource, wanted, offered)
        return f"asks {asks} {resource}, none of these offers more than {offers}"
    asks, offers, short, longest = in_one_unit(resource, wanted, offered, least, most)
    text = f"asks {asks} {resource}, none of these offers more than {offers}"
    return f"{text}; short by {short} to {longest}"


def edits_for(pod: fw.Pod, requests: Needs, node: fw.Node) -> Iterator[fw.Edit]:
    """Ask for less, or free what is missing."""
    needs = {
        resource: units - node.spare(resource)
        for resource, units in {PODS: 1, **requests}.items()
        if units > node.spare(resource)
    }
    for resource in needs:
        if resource != PODS:
            yield _ask_for_less(pod, resource, max(node.spare(resource), 0))
            break  # of several, one after the other
    if all(node.allocatable(resource) >= requests.get(resource, 1) for resource in needs):
        amounts = " and ".join(
            "a place for a pod" if name == PODS else f"{text_of(name, units, up=True)} {name}"
            for name, units in needs.items()
        )
        for pods in cheapest(node.pods, needs):
            names = listed(other.key for other in pods)
            text = f"free {amounts} on {node.name}, e.g. move {names}"
            yield fw.Edit.end_pods(text, pods, family="free", target="cluster")


def _ask_for_less(pod: fw.Pod, resource: str, spare: int) -> fw.Edit:
    to = rounded(resource, spare)
    if to:
        text, cost = f"ask for {text_of(resource, to)} {resource} or less", 0
    else:
        text, cost = f"ask for no {resource}", LAST_RESORT
    return fw.Edit.of_pod(
        text,
        lambda pod: asking_for(pod, resource, to),
        family=f"request {resource}",
        amount=float(pod.requests(resource) - to),
        cost=cost,
    )


def asking_for(pod: core.Pod, resource: str, units: int) -> core.Pod:
    """The pod with less of a resource: no container asks for more than a limit for all of them.

    The limit is the highest with which they ask for no more than these units together.
    """
    spec = pod.spec
    if spec.resources is not None and resource in spec.resources.requests:
        overhead = amount(resource, spec.overhead.get(resource, Quantity.ZERO))
        whole = _limited(spec.resources, resource, max(units - overhead, 0))
        return structs.replace(pod, spec=structs.replace(spec, resources=whole))
    low, high = 0, _total_of(pod, resource)
    while low < high:
        middle = (low + high + 1) // 2
        if _total_of(_with_limit(pod, resource, middle), resource) <= units:
            low = middle
        else:
            high = middle - 1
    return _with_limit(pod, resource, low)


def _total_of(pod: core.Pod, resource: str) -> int:
    return amount(resource, pod_requests(pod).get(resource, Quantity.ZERO))


def _with_limit(pod: core.Pod, resource: str, most: int) -> core.Pod:
    def lowered(container: core.Container) -> core.Container:
        return structs.replace(container, resources=_limited(container.resources, resource, most))

    spec = structs.replace(
        pod.spec,
        containers=tuple(map(lowered, pod.spec.containers)),
        init_containers=tuple(map(lowered, pod.spec.init_containers)),
    )
    return structs.replace(pod, spec=spec)


def _limited(
    asked: core.ResourceRequirements, resource: str, most: int
) -> core.ResourceRequirements:
    held = asked.requests.get(resource)
    if held is None or amount(resource, held) <= most:
        return asked
    left = quantity_of(resource, most)
    limits = asked.limits
    if resource in limits and is_extended(resource):  # which must be equal
        limits = ResourceList({**limits, resource: left})
    return structs.replace(
        asked, requests=ResourceList({**asked.requests, resource: left}), limits=limits
    )


# --- who would have to go -------------------------------------------------------------------------


def cheapest(pods: Sequence[fw.Pod], needs: Needs) -> Iterable[list[fw.Pod]]:
    """The pods of a node whose end frees enough: few, of low priority, no daemons."""
    alone = [[other] for other in pods if _frees([other], needs)]
    greedy: list[fw.Pod] = []
    for other in sorted(pods, key=lambda other: (*_rank(other), -_share(other, needs))):
        if not _frees(greedy, needs):
            greedy.append(other)
    if _frees(greedy, needs):
        for other in reversed(greedy.copy()):
            without = [kept for kept in greedy if kept is not other]
            greedy = without if _frees(without, needs) else greedy
        alone.append(greedy)
    alone.sort(key=lambda some: (max(map(_rank, some)), len(some), _total(some, needs)))
    return alone[:3]


def _frees(pods: Iterable[fw.Pod], needs: Needs) -> bool:
    every = list(pods)
    return all(sum(pod.usage_of(name) for pod in every) >= units for name, units in needs.items())


def _rank(pod: fw.Pod) -> tuple[bool, bool, int]:
    """What speaks against ending a pod; one that is leaving already is the best."""
    owner = pod.api.metadata.controller
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return not pod.is_terminating, is_daemon, pod.priority


def _share(pod: fw.Pod, needs: Needs) -> float:
    return sum(min(pod.usage_of(name) / units, 1.0) for name, units in needs.items())


def _total(pods: Iterable[fw.Pod], needs: Needs) -> float:
    return sum(pod.usage_of(name) / units for pod in pods for name, units in needs.items())
