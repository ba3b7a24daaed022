"""Devices of a cluster, and whether those of a node serve a demand.

Ties the inventory (which devices are there) to the ledger (which are in use). What changes for one
node only is reported for that row; what changes for several changes `shared_version`, which is part
of the cache keys of pods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Sequence
from time import perf_counter
from typing import Any, Final
from weakref import WeakKeyDictionary

from mooring.api.resource import DeviceClass, ResourceClaimSpec
from mooring.cache.internals import touch
from mooring.cache.node import Node
from mooring.cache.objects import Objects
from mooring.cache.snapshot import Nodes
from mooring.plugins.dynamicresources.inventory import Inventory, NodeIdentity
from mooring.plugins.dynamicresources.ledger import Ledger, UsedDevices, count
from mooring.plugins.dynamicresources.problem import AllocationProblem, Content, Usage, problem_key
from mooring.plugins.dynamicresources.requests import DeviceDemand, demand_of
from mooring.plugins.dynamicresources.search import Outcome, solve

_MOST_DEMANDS: Final = 500  # then all are forgotten
_MOST_ANSWERS: Final = 4096  # of a problem
_NOTHING_USED: Final = Usage()


class Devices:
    """The devices of one scheduler's cluster."""

    def __init__(self, objects: Objects, feature_gates: frozenset[str] = frozenset()) -> None:
        self._objects = objects
        self.ledger: Ledger = Ledger(objects)
        self.inventory: Inventory = Inventory(objects, feature_gates)
        self._demands: dict[tuple[bool, tuple[ResourceClaimSpec, ...]], DeviceDemand] = {}
        self._problems: dict[tuple[DeviceDemand, tuple[Any, ...]], AllocationProblem] = {}
        self._classes_version: int = -1
        self._usage_version: int = 0

    @property
    def shared_version(self) -> tuple[int, int]:
        """A value that differs once devices that several nodes can have are others, or used."""
        return (self.inventory.version, self._usage_version)

    def follow(self, nodes: Nodes) -> None:
        """Learn what has changed, and count the rows of nodes with other devices as changed."""
        changed = self.inventory.follow()
        self.ledger.follow()
        pools = self.ledger.changed_pools
        while pools:
            pool_id = pools.pop()
            home = self.inventory.home_of(pool_id)
            if home:
                changed.add(home)
            elif self.inventory.knows(pool_id):
                self._usage_version += 1
        if changed:
            touch(nodes, changed)

    def demand(
        self, specs: Sequence[ResourceClaimSpec], *, is_best_fit: bool = False
    ) -> DeviceDemand:
        """What claims with these specs ask for; the same object for equal specs."""
        version = self._objects.version(DeviceClass)
        if version != self._classes_version or len(self._demands) > _MOST_DEMANDS:
            self._classes_version = version
            self._demands.clear()
            self._problems.clear()
            self.inventory.forget_problems()
        key = is_best_fit, tuple(specs)
        found = self._demands.get(key)
        if found is None:
            classes = {one.name: one for one in self._objects.list(DeviceClass)}
            found = self._demands[key] = demand_of(specs, classes, is_best_fit=is_best_fit)
        return found

    def content(self, node: Node) -> Content:
        """The devices that a node can have."""
        return self.inventory.content(NodeIdentity(node.name, node.labels))

    def solve(
        self,
        demand: DeviceDemand,
        node: Node,
        timeout: float = 0.0,
        used: UsedDevices | None = None,
    ) -> tuple[Content, Outcome]:
        """Devices of a node for a demand, also with others in use than there are.

        Raises OutOfTime; a timeout of 0 is none.
        """
        content, problem = self.problem(demand, node)
        usage = self.usage(content, self.ledger.used if used is None else used)
        answer: Outcome | None = problem.answers.get(usage)
        if answer is None:
            late = perf_counter() + timeout
            answer = solve(problem, usage, is_late=lambda: bool(timeout) and perf_counter() > late)
            if len(problem.answers) > _MOST_ANSWERS:
                problem.answers.clear()
            problem.answers[usage] = answer
        return content, answer

    def problem(self, demand: DeviceDemand, node: Node) -> tuple[Content, AllocationProblem]:
        """What is to be solved on a node, whatever is in use."""
        content = self.content(node)
        problem = content.problems.get(demand)
        if problem is None:
            key = (demand, problem_key(demand, content))
            problem = self._problems.get(key)
            if problem is None:
                problem = self._problems[key] = AllocationProblem(*key)
            content.problems[demand] = problem
        return content, problem

    def used_without(self, node: Node, gone: Container[str]) -> UsedDevices:
        """The devices of a node that would be in use without the pods of these uids."""
        used: UsedDevices = {}
        pools = (pool.id for pool in self.content(node).pools)
        for key, allocation in self.ledger.held_in(pools).items():
            claim = self.ledger.get(*key)
            users = claim.status.reserved_for if claim is not None else ()
            if not users or not all(user.uid in gone for user in users):
                deque(count(used, allocation, 1), maxlen=0)
        return used

    def share_in_use(self, demand: DeviceDemand, node: Node) -> int:
        """Percent of the devices of a node that could serve a demand, but are in use."""
        content, problem = self.problem(demand, node)
        usage = self.usage(content, self.ledger.used)
        shared = {place for place, _ in usage.consumed}
        suited = [place for place, one in enumerate(problem.devices) if True in one.matches]
        in_use = sum(1 for one in suited if usage.allocated >> one & 1 or one in shared)
        return 100 * in_use // len(suited) if suited else 0

    def usage(self, content: Content, used: UsedDevices) -> Usage:
        """What is in use of some devices."""
        allocated = 0
        consumed: list[tuple[int, tuple[int, ...]]] = []
        for pool_id, places in content.by_pool.items():
            in_use = used.get(pool_id)
            if in_use is None:
                continue
            for name, use in in_use.items():
                place = places.get(name)
                if place is None:
                    continue
                if use.holders:
                    allocated |= 1 << place
                if use.sharers:
                    amounts = (use.consumed.get(one, 0) for one in content.capacity_names[place])
                    consumed.append((place, tuple(amounts)))
        counters = _counters(content, used) if content.with_counters else ()
        if not (allocated or consumed or counters):
            return _NOTHING_USED
        return Usage(allocated, tuple(sorted(consumed)), counters)


def _counters(content: Content, used: UsedDevices) -> tuple[int, ...]:
    """Nanos in use of each counter, by devices of the pools wherever they are."""
    found: list[int] = []
    is_used = False
    for pool in content.with_counters:
        totals: dict[tuple[str, str], int] = {}
        for name in used.get(pool.id, ()):
            for counter, amount in pool.consumption.get(name, {}).items():
                totals[counter] = totals.get(counter, 0) + amount
                is_used = True
        found += [totals.get(counter, 0) for counter in sorted(pool.counters)]
    return tuple(found) if is_used else ()


_known: WeakKeyDictionary[Objects, Devices] = WeakKeyDictionary()


def devices_of(objects: Objects, feature_gates: frozenset[str]) -> Devices:
    """The devices of a scheduler; the same for all of its profiles."""
    found = _known.get(objects)
    if found is None:
        found = _known[objects] = Devices(objects, feature_gates)
    return found
