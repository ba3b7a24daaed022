"""The coordination.k8s.io group: leases, by which one scheduler of several is the leader."""

from typing import Annotated, ClassVar

from msgspec import Meta

from mooring.api.meta import Object, Value

# A larger number can't be added to a time.
_Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class LeaseSpec(Value, frozen=True, kw_only=True):
    """The holder of the lease, since when, and for how long."""

    holder_identity: str | None = None
    lease_duration_seconds: _Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: _Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object, frozen=True, kw_only=True):
    """A claim to a role that lapses unless renewed."""

    API_VERSION: ClassVar[str] = "coordination.k8s.io/v1"

    spec: LeaseSpec = LeaseSpec()
