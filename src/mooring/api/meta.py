"""What every Kubernetes object has in common: metadata, owners, selectors, conditions, times."""

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import ClassVar, Final

from msgspec import Struct

from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.quantity import Quantity


class ResourceList(FrozenDict[str, Quantity]):
    """Amounts by resource name; a class of its own so that the decoder knows to parse them."""

    __slots__ = ()


NO_RESOURCES: Final = ResourceList()


class Value(Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all that is decoded: frozen, hashable, camelCase outside, unknown fields ignored.

    `gc=False` is safe because values are trees; nothing in one can point back at it.
    """


class OwnerReference(Value, frozen=True, kw_only=True):
    """The object that owns this one; at most one owner is the controller."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectReference(Value, frozen=True, kw_only=True):
    """A pointer to another object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class ObjectMeta(Value, frozen=True, kw_only=True):
    """Identity, labels and life cycle of one object."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: FrozenDict[str, str] = EMPTY
    annotations: FrozenDict[str, str] = EMPTY
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if there is one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Object(Value, frozen=True, kw_only=True):
    """A top-level kind: something with a name that an API server stores."""

    API_VERSION: ClassVar[str]
    KIND: ClassVar[str]  # the name of the class
    NAMESPACED: ClassVar[bool] = True

    metadata: ObjectMeta = ObjectMeta()

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "KIND"):
            cls.KIND = cls.__name__

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name where there is no namespace."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def reference(self) -> ObjectReference:
        """A pointer to this object in its present state."""
        meta = self.metadata
        return ObjectReference(
            api_version=self.API_VERSION,
            kind=self.KIND,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )


class LabelSelectorRequirement(Value, frozen=True, kw_only=True):
    """One test on one label: In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True, kw_only=True):
    """A query over labels; empty matches everything, and an absent one (`None`) matches nothing."""

    match_labels: FrozenDict[str, str] = EMPTY
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(Value, frozen=True, kw_only=True):
    """One observed fact about an object, as pods, nodes and claims report them."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_probe_time: str | None = None
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def parse_time(text: str) -> float:
    """Seconds since the epoch for an RFC 3339 timestamp such as `2024-05-01T12:00:00.5Z`."""
    if _RFC3339.fullmatch(text) is None:
        raise ValueError(f"expected an RFC 3339 time such as 2024-05-01T12:00:00Z, got {text!r}")
    try:
        return datetime.fromisoformat(text.upper()).timestamp()
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: {error}") from None


def format_time(seconds: float, *, micros: bool = False) -> str:
    """The RFC 3339 text of an instant, in seconds, or in microseconds as leases and events do.

    ValueError for an instant that is not in the years 1 to 9999.
    """
    try:
        if not micros:
            return _whole_second(math.floor(round(seconds, 6)))
        whole, rest = divmod(round(seconds * 1_000_000), 1_000_000)
        return f"{_whole_second(whole)[:-1]}.{rest:06d}Z"
    except (OverflowError, OSError, ValueError) as error:
        raise ValueError(f"{seconds:g} s since 1970 is not a time: {error}") from None


@lru_cache(maxsize=16)  # much happens within a second
def _whole_second(seconds: int) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    return text.removesuffix("+00:00") + "Z"
