"""Which devices are in use: by claims as they are known, and by allocations not written yet.

A claim passes through these states; devices count as in use from the first to the last but one:

    unallocated -- Reserve --> in flight -- PreBind wrote it --> assumed -- watch --> allocated
         ^                        |                                                     |
         +------ Unreserve -------+                     deallocated by others ----------+

One ledger serves all profiles of a scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mooring.api.resource import AllocationResult, ResourceClaim
from mooring.cache.objects import Objects
from mooring.plugins.dynamicresources.pools import PoolId

ClaimKey = tuple[str, str]  # namespace and name


class DeviceUse:
    """How one device is in use."""

    __slots__ = ("consumed", "holders", "sharers")

    def __init__(self) -> None:
        self.holders: int = 0  # claims that have it as a whole
        self.sharers: int = 0
        self.consumed: dict[str, int] = {}  # nanos of capacities, by those who share it

    @property
    def is_over(self) -> bool:
        return not (self.holders or self.sharers)


UsedDevices = dict[PoolId, dict[str, DeviceUse]]
"""By pool and name of the device."""


class Ledger:
    """The allocations of all claims."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._unread = objects.unread(ResourceClaim)
        self._assumed: dict[ClaimKey, ResourceClaim] = {}
        self._in_flight: dict[str, ResourceClaim] = {}  # by uid
        self._counted: dict[ClaimKey, AllocationResult] = {}
        self._by_pool: dict[PoolId, set[ClaimKey]] = {}  # of those counted
        self.used: UsedDevices = {}
        self.changed_pools: set[PoolId] = set()  # the reader takes them out

    # --- claims ----------------------------------------------------------------------------------

    def get(self, namespace: str, name: str) -> ResourceClaim | None:
        """A claim in its latest known state."""
        stored = self._objects.get(ResourceClaim, name, namespace)
        if stored is None:
            return None
        assumed = self._assumed.get((namespace, name))
        if assumed is None:
            return stored
        if assumed.uid == stored.uid and _is_newer(assumed, stored):
            return assumed
        del self._assumed[namespace, name]
        return stored

    def assume(self, claim: ResourceClaim) -> bool:
        """A claim as a write left it, until the watch shows it; False if it is not known yet."""
        stored = self._objects.get(ResourceClaim, claim.name, claim.namespace)
        if stored is None or stored.uid != claim.uid:
            return False
        if _is_newer(claim, stored):
            self._assumed[claim.namespace, claim.name] = claim
            self._unread.add((claim.namespace, claim.name))
            self._objects.touch(ResourceClaim)
        return True

    # --- allocations that are not written yet ----------------------------------------------------

    def pending(self, uid: str) -> AllocationResult | None:
        claim = self._in_flight.get(uid)
        return None if claim is None else claim.allocation

    def begin(self, claim: ResourceClaim) -> None:
        """A claim with an allocation that is about to be written."""
        self.end(claim.uid)
        self._in_flight[claim.uid] = claim
        if claim.allocation is not None:
            self._count(claim.allocation, 1)
        self._objects.touch(ResourceClaim)

    def end(self, uid: str) -> bool:
        """It has been written, or will not be; False if there is none."""
        claim = self._in_flight.pop(uid, None)
        if claim is None:
            return False
        if claim.allocation is not None:
            self._count(claim.allocation, -1)
        self._objects.touch(ResourceClaim)
        return True

    # --- devices ---------------------------------------------------------------------------------

    def follow(self) -> None:
        """Count what has changed since the last time."""
        while self._unread:
            key = self._unread.pop()
            claim = self.get(*key)
            new = claim.allocation if claim is not None else None
            old = self._counted.get(key)
            if old == new:
                continue
            if old is not None:
                self._count(old, -1)
                del self._counted[key]
                for pool_id in _pools(old):
                    self._by_pool[pool_id].discard(key)
            if new is not None:
                self._count(new, 1)
                self._counted[key] = new
                for pool_id in _pools(new):
                    self._by_pool.setdefault(pool_id, set()).add(key)

    def _count(self, allocation: AllocationResult, sign: int) -> None:
        self.changed_pools.update(count(self.used, allocation, sign))

    def held(self) -> dict[ClaimKey, AllocationResult]:
        """What every claim has, or is about to get."""
        pending = {
            (one.namespace, one.name): one.allocation
            for one in self._in_flight.values()
            if one.allocation is not None
        }
        return {**self._counted, **pending}

    def held_in(self, pools: Iterable[PoolId]) -> dict[ClaimKey, AllocationResult]:
        """What claims with devices of these pools have, or are about to get."""
        some = set(pools)
        keys = sorted({key for pool_id in some for key in self._by_pool.get(pool_id, ())})
        found = {key: self._counted[key] for key in keys}
        for one in self._in_flight.values():
            if one.allocation is not None and not some.isdisjoint(_pools(one.allocation)):
                found[one.namespace, one.name] = one.allocation
        return found


def _pools(allocation: AllocationResult) -> Iterator[PoolId]:
    return ((one.driver, one.pool) for one in allocation.devices.results)


def count(used: UsedDevices, allocation: AllocationResult, sign: int) -> Iterator[PoolId]:
    """Add the devices of an allocation to those in use, or take them away: the pools touched."""
    for result in allocation.devices.results:
        if result.admin_access:
            continue  # it takes nothing from others
        pool_id = (result.driver, result.pool)
        yield pool_id
        pool = used.setdefault(pool_id, {})
        use = pool.get(result.device)
        if use is None:
            use = pool[result.device] = DeviceUse()
        if result.share_id is None:
            use.holders += sign
        else:
            use.sharers += sign
            for name, amount in result.consumed_capacity.items():
                use.consumed[name] = use.consumed.get(name, 0) + sign * amount.nanos
        if use.is_over:
            del pool[result.device]
            if not pool:
                del used[pool_id]


def _is_newer(one: ResourceClaim, other: ResourceClaim) -> bool:
    """By resource version, which counts up at every API server of Kubernetes."""
    a, b = one.metadata.resource_version, other.metadata.resource_version
    if a.isdigit() and b.isdigit():
        return int(a) > int(b)
    return a != b
