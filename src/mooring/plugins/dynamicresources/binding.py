"""Writes to claims: allocation and reservation before a pod is bound, and the way back.

The first write of a claim adds the finalizer, the second its allocation and the pod. A conflict is
resolved by reading the claim again. Then devices with binding conditions are waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import structs

import mooring.framework as fw
from mooring.api.codec import to_builtins
from mooring.api.meta import ObjectMeta, format_time
from mooring.api.resource import (
    FINALIZER,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from mooring.errors import ApiError
from mooring.framework._internal import STRATEGIC, object_writer_of
from mooring.plugins.dynamicresources.ask import PodDeviceClaims
from mooring.plugins.dynamicresources.claims import (
    ClaimBindingFailed,
    is_overdue,
    is_ready,
    waits_for_conditions,
)
from mooring.plugins.dynamicresources.devices import Devices
from mooring.plugins.dynamicresources.extended import IN_MEMORY, Requests

log = logging.getLogger(__name__)

_TRIES: Final = 5  # of a write that conflicts with another, as retry.DefaultRetry
_FIRST_PAUSE: Final = 0.01  # seconds
_TRIES_IN_DOUBT: Final = 30  # of a write whose answers were lost
_LONGEST_PAUSE: Final = 5.0
_POLL: Final = 5.0  # seconds between looks at binding conditions
_POLL_CREATED: Final = 1.0
_LONGEST_WAIT_FOR_CREATED: Final = 120.0
_TIMED_OUT: Final = "device binding timeout"


class ClaimReservation(msgspec.Struct):
    """The claims of a pod on its way to a node, and what they are to get."""

    claims: PodDeviceClaims
    allocations: dict[str, AllocationResult] = {}  # by uid of the claim
    requests: Requests | None = None  # for extended resources, on the chosen node
    in_doubt: set[str] = set()  # claims with a write that may yet succeed, by uid


class Impossible(Exception):
    """The claim is not what it was when the pod's node was chosen."""


class ClaimBinder:
    """Reserves, writes and releases the claims of pods."""

    def __init__(
        self, handle: fw.Handle, devices: Callable[[], Devices], binding_timeout: float
    ) -> None:
        self._handle = handle
        self._of = devices
        self._timeout = binding_timeout  # seconds

    @property
    def _devices(self) -> Devices:
        return self._of()

    # --- in memory -------------------------------------------------------------------------------

    def reserve(self, reservation: ClaimReservation, found: Sequence[AllocationResult]) -> None:
        """Count the devices as in use until the claims are written."""
        waiting = [one for one in reservation.claims.all if one.allocation is None]
        for claim, allocation in zip(waiting, found, strict=True):
            reservation.allocations[claim.uid] = allocation
            status = structs.replace(claim.status, allocation=allocation)
            self._devices.ledger.begin(structs.replace(claim, status=status))

    def release(self, reservation: ClaimReservation, pod: fw.Pod) -> None:
        """The pod does not go to that node: give back what is not written, undo what is."""
        for uid in reservation.allocations:
            if uid not in reservation.in_doubt:
                self._devices.ledger.end(uid)
        for claim in reservation.claims.named:
            is_reserved = claim.allocation is not None and claim.is_reserved_for(
                pod.api.metadata.uid
            )
            if is_reserved or claim.uid in reservation.in_doubt:
                self.later(partial(self._unreserve, claim, pod), pod)
        special = reservation.claims.special
        if special is not None and special.name != IN_MEMORY:
            self.later(partial(self.delete, special), pod)

    def later(self, write: Callable[[], Awaitable[None]], pod: fw.Pod) -> None:
        """Write in the background; if that fails, the pod is tried again after a pause."""
        object_writer_of(self._handle).soon(partial(self._attempt, write, pod))

    async def _attempt(self, write: Callable[[], Awaitable[None]], pod: fw.Pod) -> None:
        try:
            await write()
        except ApiError as error:
            extra = {"pod": pod.key, "error": str(error)}
            log.warning("could not release a claim of a pod", extra=extra)
            # At once, a write that is always refused would be repeated without end.
            await self._handle.clock.sleep(_LONGEST_PAUSE)
            self._handle.activate([pod.key])

    # --- on the API server -----------------------------------------------------------------------

    async def bind(self, reservation: ClaimReservation, pod: fw.Pod, node_name: str) -> fw.Status:
        """Write every claim that is not reserved for the pod, then wait for devices."""
        claims = reservation.claims
        try:
            for place, claim in enumerate(claims.named):
                if not claim.is_reserved_for(pod.api.metadata.uid):
                    claims.named[place] = await self._bind_claim(reservation, claim, pod)
            special = claims.special
            if special is not None and not special.is_reserved_for(pod.api.metadata.uid):
                await self._bind_special(reservation, special, pod)
            if any(map(waits_for_conditions, claims.all)):
                await self._wait(claims, pod, node_name)
        except (ApiError, Impossible, ClaimBindingFailed) as problem:
            cause = problem.__cause__ if isinstance(problem, Impossible) else problem
            known = cause if isinstance(cause, ApiError) else None
            return fw.Status.error(str(problem), cause=known)
        return fw.OK

    async def _bind_claim(
        self, reservation: ClaimReservation, claim: ResourceClaim, pod: fw.Pod
    ) -> ResourceClaim:
        allocation = reservation.allocations.get(claim.uid)
        written = await self._write(reservation, claim, allocation, pod)
        self._devices.ledger.assume(written)
        if allocation is not None:
            self._devices.ledger.end(claim.uid)
        return written

    async def _write(
        self,
        reservation: ClaimReservation,
        claim: ResourceClaim,
        allocation: AllocationResult | None,
        pod: fw.Pod,
    ) -> ResourceClaim:
        """Finalizer, allocation and reservation, again if something else changed the claim.

        A write whose answer was lost is repeated: with the same resource version only one of the
        two can succeed, so in the end it is known what the claim has.
        """
        conflicts = doubts = 0
        pause = _FIRST_PAUSE
        reservation.in_doubt.add(claim.uid)
        while True:
            try:
                written = await self._write_once(claim, allocation, pod)
                break
            except Impossible as problem:
                cause = problem.__cause__
                if _is_conflict(cause) and conflicts + 1 < _TRIES:
                    conflicts += 1
                elif _is_in_doubt(cause) and doubts + 1 < _TRIES_IN_DOUBT:
                    doubts += 1
                    pause = min(2 * pause, _LONGEST_PAUSE)
                else:
                    if not _is_in_doubt(cause):
                        reservation.in_doubt.discard(claim.uid)
                    raise
            await self._handle.clock.sleep(pause)
            latest = await self._latest(claim)
            if latest is not None:
                if latest.is_reserved_for(pod.api.metadata.uid):
                    written = latest  # by the write whose answer was lost
                    break
                claim = latest
        reservation.in_doubt.discard(claim.uid)
        return written

    async def _latest(self, claim: ResourceClaim) -> ResourceClaim | None:
        """The claim as it is; None if the server does not answer."""
        try:
            return await object_writer_of(self._handle).get(
                ResourceClaim, claim.name, claim.namespace
            )
        except ApiError as error:
            if _is_in_doubt(error):
                return None
            text = f"get updated claim {claim.key} after conflict: {error}"
            raise Impossible(text) from error

    async def _write_once(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: fw.Pod
    ) -> ResourceClaim:
        writer = object_writer_of(self._handle)
        if claim.metadata.deletion_timestamp is not None:
            raise Impossible(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None:
            if claim.allocation is not None:
                raise Impossible(f"claim {claim.key} got allocated elsewhere in the meantime")
            if FINALIZER not in claim.metadata.finalizers:
                finalizers = [*claim.metadata.finalizers, FINALIZER]
                try:
                    claim = await writer.change(claim, _versioned(claim, finalizers=finalizers))
                except ApiError as error:
                    text = f"add finalizer to claim {claim.key}: {error}"
                    raise Impossible(text) from error
        new = allocation or claim.allocation
        if new is None:
            raise Impossible(f"claim {claim.key} got deallocated elsewhere in the meantime")
        if new.allocation_timestamp is None:
            now = format_time(self._handle.clock.now())
            new = structs.replace(new, allocation_timestamp=now)
        user = ResourceClaimConsumerReference(
            resource="pods", name=pod.name, uid=pod.api.metadata.uid
        )
        users = [*claim.status.reserved_for, user]
        status = {"allocation": to_builtins(new), "reservedFor": to_builtins(users)}
        change = {**_versioned(claim), "status": status}
        try:
            return await writer.change(claim, change, subresource="status")
        except ApiError as error:
            what = "allocation and reservation" if allocation is not None else "reservation"
            raise Impossible(f"add {what} to claim {claim.key}: {error}") from error

    # --- extended resources ----------------------------------------------------------------------

    async def _bind_special(
        self, reservation: ClaimReservation, claim: ResourceClaim, pod: fw.Pod
    ) -> None:
        allocation = reservation.allocations.get(claim.uid)
        if allocation is None and not claim.spec.devices.requests:
            return
        in_memory = claim.uid
        if claim.name == IN_MEMORY:
            claim = await self._create(reservation, claim, pod)
            reservation.claims.special = claim
        written = await self._write(reservation, claim, allocation, pod)
        reservation.claims.special = written
        await self._tell_pod(reservation, written, pod)
        # Until the watch shows the claim, its devices are in flight.
        left = _LONGEST_WAIT_FOR_CREATED
        while not self._devices.ledger.assume(written) and left > 0:
            await self._handle.clock.sleep(_POLL_CREATED)
            left -= _POLL_CREATED
        self._devices.ledger.end(in_memory)

    async def _create(
        self, reservation: ClaimReservation, claim: ResourceClaim, pod: fw.Pod
    ) -> ResourceClaim:
        assert reservation.requests is not None
        meta = structs.replace(claim.metadata, name="", uid="")
        new = ResourceClaim(metadata=meta, spec=reservation.requests.spec)
        try:
            return await object_writer_of(self._handle).create(new)
        except ApiError as error:
            text = f"create claim for extended resources {claim.namespace}/: {error}"
            raise Impossible(text) from error

    async def _tell_pod(
        self, reservation: ClaimReservation, claim: ResourceClaim, pod: fw.Pod
    ) -> None:
        mappings = reservation.requests.mappings if reservation.requests is not None else ()
        if not mappings:
            raise Impossible(
                f"nil or empty request mappings, no update of pod {pod.key}"
                " ExtendedResourceClaimStatus"
            )
        status = {"resourceClaimName": claim.name, "requestMappings": to_builtins(mappings)}
        change = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        try:
            await object_writer_of(self._handle).change(
                pod.api, change, subresource="status", kind=STRATEGIC
            )
        except ApiError as error:
            text = f"update pod {pod.key} ExtendedResourceClaimStatus: {error}"
            raise Impossible(text) from error

    async def delete(self, claim: ResourceClaim) -> None:
        """Remove the finalizer, then delete a claim that was made for extended resources."""
        try:
            await self._delete(claim)
        except ApiError as error:
            if getattr(error, "code", 0) != 404:  # else it is gone already
                raise

    async def _delete(self, claim: ResourceClaim) -> None:
        writer = object_writer_of(self._handle)
        for tried in range(1, _TRIES + 1):
            kept = [one for one in claim.metadata.finalizers if one != FINALIZER]
            try:
                await writer.change(claim, _versioned(claim, finalizers=kept))
                break
            except ApiError as error:
                if not _is_conflict(error) or tried == _TRIES:
                    raise
            claim = await writer.get(ResourceClaim, claim.name, claim.namespace)
        await writer.remove(claim)

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Give the devices of a claim back, so that it can be allocated elsewhere."""
        status = {"allocation": None, "reservedFor": None, "devices": None}
        change = {**_versioned(claim), "status": status}
        await object_writer_of(self._handle).change(claim, change, subresource="status")

    async def _unreserve(self, claim: ResourceClaim, pod: fw.Pod) -> None:
        gone = [{"$patch": "delete", "uid": pod.api.metadata.uid}]
        change = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": gone}}
        for tried in range(1, _TRIES_IN_DOUBT + 1):
            try:
                written = await object_writer_of(self._handle).change(
                    claim, change, subresource="status", kind=STRATEGIC
                )
            except ApiError as error:
                if not _is_in_doubt(error) or tried == _TRIES_IN_DOUBT:
                    self._devices.ledger.end(claim.uid)
                    raise
                await self._handle.clock.sleep(_LONGEST_PAUSE)
            else:
                # No write that was made for an older version can succeed from now on.
                self._devices.ledger.assume(written)
                self._devices.ledger.end(claim.uid)
                return

    # --- binding conditions ----------------------------------------------------------------------

    async def _wait(self, claims: PodDeviceClaims, pod: fw.Pod, node_name: str) -> None:
        """Look every few seconds whether drivers report all devices as ready."""
        self._handle.recorder.event(
            pod,
            "Normal",
            "BindingConditionsPending",
            "Scheduling",
            f"waiting for binding conditions for device on node {node_name}",
        )
        clock = self._handle.clock
        deadline = clock.now() + self._timeout
        while not self._are_ready(claims):
            left = deadline - clock.now()
            if left <= 0:
                raise ClaimBindingFailed(f"{_TIMED_OUT}: context deadline exceeded")
            await clock.sleep(min(_POLL, left))

    def _are_ready(self, claims: PodDeviceClaims) -> bool:
        for known in claims.all:
            claim = self._devices.ledger.get(known.namespace, known.name)
            if claim is None:
                raise ClaimBindingFailed(f'could not find ResourceClaim "{known.key}"')
            if not is_ready(claim):
                if is_overdue(claim, self._handle.clock.now(), self._timeout):
                    raise ClaimBindingFailed(f"{_TIMED_OUT}: claim={claim.name}")
                return False
        return True


def _versioned(claim: ResourceClaim, **meta: Any) -> dict[str, Any]:
    """A change that is refused if the claim is not this one any more."""
    known: ObjectMeta = claim.metadata
    return {"metadata": {"uid": known.uid, "resourceVersion": known.resource_version, **meta}}


def _is_in_doubt(error: BaseException | None) -> bool:
    """Whether a write may have been carried out, although it failed."""
    code = getattr(error, "code", 0)
    return isinstance(error, ApiError) and (not code or code >= 500)


def _is_conflict(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and getattr(error, "code", 0) == 409
