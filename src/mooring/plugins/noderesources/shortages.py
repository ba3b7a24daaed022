"""What NodeResourcesFit says of its refusals: what is short where, and what would make room."""

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

Needs = Mapping[str, int]
"""What is missing on a node, by resource."""


def text_of(resource: str, units: int, *, up: bool = False) -> str:
    """An amount as a person would write it: large numbers of bytes in whole Mi."""
    return str(quantity_of(resource, rounded(resource, units, up=up)))


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
    for resource, units in wanted.items():
        short = missing[resource] > 0
        count = int(np.count_nonzero(short))
        if not count:
            continue
        most_left = int(spare[resource][short].max())
        least, most = (int(f(missing[resource][short])) for f in (np.min, np.max))
        asks = text_of(resource, units, up=True)
        offers = text_of(resource, max(most_left, 0))
        span = Span(text_of(resource, least, up=True), text_of(resource, most, up=True))
        if resource == PODS:
            text = "as many pods as they may have"
        elif not everywhere.allocatable(resource).any():
            text = f"no node offers {resource}"
        else:
            text = f"asks {asks} {resource}, none of these offers more than {offers}"
            if count == 1:
                text = f"asks {asks} {resource}, offers {offers}: short by {span.least}"
            elif span.least != span.most:
                text += f"; short by {span.least} to {span.most}"
        yield fw.Fact(
            text=text,
            nodes=count,
            node=nearest,
            resource=resource,
            asks=asks,
            missing=span,
            offers=offers,
        )


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
    """The pod with less of a resource, taken from the containers that ask for most."""
    for _ in range(2 + len(pod.spec.containers) + len(pod.spec.init_containers)):
        total = amount(resource, pod_requests(pod).get(resource, Quantity.ZERO))
        if total <= units:
            break
        pod = _with_less(pod, resource, quantity_of(resource, total - units))
    return pod


def _with_less(pod: core.Pod, resource: str, excess: Quantity) -> core.Pod:
    spec = pod.spec
    if spec.resources is not None and resource in spec.resources.requests:
        lowered = _lowered(spec.resources, resource, excess)
        return structs.replace(pod, spec=structs.replace(spec, resources=lowered))
    containers, init_containers = list(spec.containers), list(spec.init_containers)
    # Init containers that end ask for the most of them all, so each of those is lowered.
    for place, container in enumerate(init_containers):
        if not container.is_restartable:
            less = _lowered(container.resources, resource, excess)
            init_containers[place] = structs.replace(container, resources=less)
    for group in (containers, init_containers):
        order = sorted(
            (place for place in range(len(group)) if _is_lasting(group[place], group, containers)),
            key=lambda place: group[place].resources.requests.get(resource, Quantity.ZERO),
            reverse=True,
        )
        for place in order:
            held = group[place].resources.requests.get(resource, Quantity.ZERO)
            less = _lowered(group[place].resources, resource, excess)
            group[place] = structs.replace(group[place], resources=less)
            if not held < excess:
                break
            excess = excess - held
        else:
            continue
        break
    spec = structs.replace(
        spec, containers=tuple(containers), init_containers=tuple(init_containers)
    )
    return structs.replace(pod, spec=spec)


def _is_lasting(
    container: core.Container, group: list[core.Container], containers: list[core.Container]
) -> bool:
    return group is containers or container.is_restartable


def _lowered(
    asked: core.ResourceRequirements, resource: str, by: Quantity
) -> core.ResourceRequirements:
    held = asked.requests.get(resource)
    if held is None:
        return asked
    left = held - by if by < held else Quantity.ZERO
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
