"""What DynamicResources says of its refusals: which devices are there, and why they do not do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from time import perf_counter
from typing import Final

import msgspec

import mooring.framework as fw
from mooring.api.resource import ALL, ResourceClaim
from mooring.framework.explaining import WaitsFor, listed
from mooring.plugins.dynamicresources.ask import Ask, Asks
from mooring.plugins.dynamicresources.claims import (
    UnusableClaim,
    claim_names,
    is_unavailable,
)
from mooring.plugins.dynamicresources.devices import Devices
from mooring.plugins.dynamicresources.extended import IN_MEMORY
from mooring.plugins.dynamicresources.ledger import Ledger
from mooring.plugins.dynamicresources.pools import DeviceId
from mooring.plugins.dynamicresources.problem import AllocationProblem, Content, Usage
from mooring.plugins.dynamicresources.requests import DeviceDemand
from mooring.plugins.dynamicresources.search import OutOfTime, Solution, solve
from mooring.plugins.dynamicresources.shortfalls import (
    IN_USE,
    RequestTally,
    Shortfall,
    Shortfalls,
)

_MOST_FACTS: Final = 8
_LONGEST: Final = 1.0  # seconds for a search that only an explanation needs
_NOTHING_USED: Final = Usage()


class _Alike(msgspec.Struct):
    """Nodes with the same shortfall."""

    first: fw.Node
    shortfall: Shortfall
    waits_for: WaitsFor | None
    nodes: int = 0


class DeviceFacts:
    """Facts about refusals of one pod."""

    def __init__(self, devices: Devices, asks: Asks, pod: fw.Pod, timeout: float) -> None:
        self._devices = devices
        self._asks = asks
        self._pod = pod
        self._timeout = timeout  # of bindings

    # --- before nodes are looked at --------------------------------------------------------------

    def before_nodes(self) -> Iterator[fw.Fact]:
        """Claims that are missing or not usable, and classes that do not exist."""
        pod = self._pod
        try:
            names = [name for name, _ in claim_names(pod)]
        except UnusableClaim as unusable:
            template = next(
                one.resource_claim_template_name
                for one in pod.spec.resource_claims
                if one.resource_claim_name is None
            )
            text = f"the claim of template {pod.namespace}/{template} is not made yet"
            is_waiting = template is not None
            yield fw.Fact(
                text=text if is_waiting else str(unusable),
                waits_for="others" if is_waiting else "nothing",
            )
            return
        for name in names:
            claim = self._devices.ledger.get(pod.namespace, name)
            key = f"{pod.namespace}/{name}"
            if claim is None:
                yield fw.Fact(text=f"claim {key} does not exist", waits_for="others")
            elif claim.metadata.deletion_timestamp is not None:
                yield fw.Fact(text=f"claim {key} is being deleted", waits_for="others")
            elif self._devices.ledger.pending(claim.uid) is not None:
                text = f"claim {key} is being allocated for another pod"
                yield fw.Fact(text=text, waits_for="others")
            else:
                yield from self._missing_classes(claim)

    def _missing_classes(self, claim: ResourceClaim) -> Iterator[fw.Fact]:
        known = [one.name for one in self._asks.classes.all()]
        for request in claim.spec.devices.requests:
            asked = [request.exactly] if request.exactly is not None else request.first_available
            for one in asked:
                name = one.device_class_name
                if name and name not in known:
                    near = get_close_matches(name, known, 1)
                    there = f"there are {listed(sorted(known))}" if known else "there are none"
                    hint = f"; did you mean {near[0]}?" if near else f"; {there}"
                    yield fw.Fact(text=f"no device class {name}{hint}", waits_for="nothing")

    # --- nodes -----------------------------------------------------------------------------------

    def of_nodes(self, ask: Ask, nodes: Iterable[fw.Node]) -> Iterator[fw.Fact]:
        """Why devices cannot be allocated on these nodes."""
        found: dict[object, _Alike] = {}
        known: dict[object, tuple[Shortfall, WaitsFor | None]] = {}
        pools: dict[str, tuple[int, str]] = {}
        for node in nodes:
            demand = self._demand(ask, node)
            content, problem = self._devices.problem(demand, node)
            for pool in content.pools:
                if not pool.is_usable:
                    state = "incomplete" if pool.is_incomplete else "invalid"
                    text = f"pool {'/'.join(pool.id)} is {state}: {pool.problem}"
                    pools[text] = (pools.get(text, (0, ""))[0] + 1, node.name)
            usage = self._devices.usage(content, self._devices.ledger.used)
            names = (content.capacity_names, _taints(content))
            key = (id(problem), usage, names)
            if key not in known:
                shortfall = Shortfalls(content, problem, usage).found()
                known[key] = shortfall, self._waits_for(problem, content)
            shortfall, waits_for = known[key]
            alike = (_anonymous(shortfall), waits_for)
            one = found.setdefault(alike, _Alike(node, shortfall, waits_for))
            one.nodes += 1
        for text, (count, name) in pools.items():
            yield fw.Fact(text=text, nodes=count, node=name, waits_for="others")
        by_device = holders_by_device(self._devices.ledger)
        groups = sorted(found.values(), key=_distance)
        for one in groups[:_MOST_FACTS]:
            yield from self._facts(one, by_device)

    def _demand(self, ask: Ask, node: fw.Node) -> DeviceDemand:
        served = self._asks.served_on(ask, node) if ask.extended is not None else ()
        return self._devices.demand(self._asks.specs_on(ask, self._pod, served or ()))

    def _facts(self, one: _Alike, by_device: dict[DeviceId, list[str]]) -> Iterator[fw.Fact]:
        for tally in one.shortfall.requests:
            holders = list(
                dict.fromkeys(name for id_ in tally.held for name in by_device.get(id_, ()))
            )
            where = f" on {one.first.name}" if one.nodes > 1 else ""
            yield fw.Fact(
                text=self._text(tally, holders, where),
                nodes=one.nodes,
                node=one.first.name,
                waits_for=one.waits_for,
            )
        for text in one.shortfall.together:
            yield fw.Fact(text=text, nodes=one.nodes, node=one.first.name, waits_for=one.waits_for)

    def _text(self, tally: RequestTally, holders: list[str], where: str) -> str:
        request = tally.request
        count = "all" if request.mode == ALL else str(request.count)
        name = f"request {request.full_name} of {self._claim_name(request.claim)}"
        if not tally.devices:
            return f"{name} asks for {count} of class {request.class_name}, there are no devices"
        reasons = []
        for cause, count_ in tally.causes:
            if cause == IN_USE and holders:
                cause = f"in use by {listed(holders, 3)}{where}"
            reasons.append(f"{count_} {cause}")
        free = f"{tally.free} of {tally.devices} device{'' if tally.devices == 1 else 's'}"
        why = f": {', '.join(reasons)}" if reasons else ""
        return f"{name} asks for {count}, {free} would do{why}"

    def _claim_name(self, place: int) -> str:
        waiting = [one for one in self._asks.claims(self._pod).all if one.allocation is None]
        claim = waiting[place]
        return "the pod's extended resources" if claim.name == IN_MEMORY else f"claim {claim.key}"

    def _waits_for(self, problem: AllocationProblem, content: Content) -> WaitsFor | None:
        """Whether it would do once all devices are given back; or once a driver changes them."""
        if _is_solvable(problem):
            return "room"
        if any(not pool.is_usable for pool in content.pools):
            return "others"
        if all(all(one.tolerated) for one in problem.devices):
            return None
        return "others" if _is_solvable(_without_taints(problem)) else None

    # --- allocated claims ------------------------------------------------------------------------

    def unavailable(self, now: float) -> Iterator[fw.Fact]:
        """Claims of the pod that have devices elsewhere, or whose binding failed."""
        for claim in self._asks.claims(self._pod).all:
            if claim.allocation is None:
                continue
            pods = tuple(
                f"{claim.namespace}/{user.name}"
                for user in claim.status.reserved_for
                if user.resource == "pods" and user.uid != self._pod.api.metadata.uid
            )
            used = f", used by {listed(pods)}" if pods else ""
            if is_unavailable(claim, now, self._timeout):
                text = f"claim {claim.key}: its devices did not become ready"
            else:
                text = f"claim {claim.key} has devices for {_reach(claim)}{used}"
            yield fw.Fact(text=text, waits_for="others", pods=pods)

    def unserved(self, ask: Ask, nodes: Iterable[fw.Node]) -> Iterator[fw.Fact]:
        """Extended resources that neither nodes nor device classes offer."""
        names: dict[str, list[str]] = {}
        for node in nodes:
            for name, _ in ask.extended.scalars if ask.extended is not None else ():
                is_offered = name in node.api.status.allocatable
                if not is_offered and self._asks.classes.class_of(name) is None:
                    names.setdefault(name, []).append(node.name)
        for name, found in names.items():
            text = f"neither the node nor a device class offers {name}"
            yield fw.Fact(text=text, nodes=len(found), node=found[0])


def _is_solvable(problem: AllocationProblem) -> bool:
    """Whether there is a solution while nothing is in use."""
    late = perf_counter() + _LONGEST
    try:
        outcome = solve(problem, _NOTHING_USED, is_late=lambda: perf_counter() > late)
    except OutOfTime:
        return False
    return isinstance(outcome, Solution)


def _without_taints(problem: AllocationProblem) -> AllocationProblem:
    features, *rest = problem.key
    open_ = tuple(
        msgspec.structs.replace(one, tolerated=(True,) * len(one.tolerated)) for one in features
    )
    return AllocationProblem(problem.demand, (open_, *rest))


def holders_by_device(ledger: Ledger) -> dict[DeviceId, list[str]]:
    """The claims that have each device, or share it."""
    found: dict[DeviceId, list[str]] = {}
    for key, allocation in ledger.held().items():
        for result in allocation.devices.results:
            if not result.admin_access:
                id_ = (result.driver, result.pool, result.device)
                found.setdefault(id_, []).append("/".join(key))
    return found


def _anonymous(shortfall: Shortfall) -> object:
    return tuple(
        (one.request.claim, one.request.full_name, one.devices, one.free, one.causes)
        for one in shortfall.requests
    ), shortfall.together


def _distance(one: _Alike) -> tuple[int, int, int]:
    order = {"room": 0, "others": 1}.get(one.waits_for or "", 2)
    missing = sum(max(tally.needs - tally.free, 0) for tally in one.shortfall.requests)
    return order, missing, -one.nodes


def _taints(content: Content) -> tuple[object, ...]:
    return tuple(one.device.taints for one in content.devices if one.device.taints)


def _reach(claim: ResourceClaim) -> str:
    assert claim.allocation is not None
    selector = claim.allocation.node_selector
    terms = selector.node_selector_terms if selector is not None else ()
    tests = [
        f"{test.key} {test.operator} {', '.join(test.values)}".strip()
        for term in terms
        for test in (*term.match_fields, *term.match_expressions)
    ]
    return f"nodes with {' and '.join(tests)}" if tests else "all nodes"
