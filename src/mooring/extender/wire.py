"""The verbs of the extender protocol, and their payloads as JSON.

The field names are those of the Go types, `Pod` and not `pod`. Go matches them regardless of case,
and Kubernetes 1.15 wrote them in lower case, so any case is read here too. Pods and nodes are sent
as the raw JSON of the API server, because the structs of `mooring.api` lack most of their fields.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, Final, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from mooring import config as cfg
from mooring.api.codec import DecodeError
from mooring.framework.plugin import Base, Bind, Filter, PostFilter, PreFilter, Score
from mooring.framework.results import Candidate

T = TypeVar("T")
A = TypeVar("A")
R = TypeVar("R")

MAX_SCORE: Final = 10
"""The best score of an extender; the scheduler's own go up to ten times as much."""


class Payload(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True, gc=False):
    """Base of all payloads; empty fields are written, as in Go."""


class NodeList(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A v1.NodeList, whose nodes stay raw JSON."""

    metadata: dict[str, Any] = {}
    items: tuple[msgspec.Raw, ...] | None = ()
    api_version: str | msgspec.UnsetType = msgspec.UNSET
    kind: str | msgspec.UnsetType = msgspec.UNSET


class ExtenderArgs(Payload, frozen=True, gc=False):
    """The arguments of filter and prioritize; either nodes or node names is None."""

    pod: msgspec.Raw
    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None


class ExtenderFilterResult(Payload, frozen=True, gc=False):
    """The feasible nodes, in the form of the request, and the reasons of the others."""

    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None
    failed_nodes: dict[str, str] | None = None  # evictions may help
    failed_and_unresolvable_nodes: dict[str, str] | None = None  # evictions can't help
    error: str = ""


class HostPriority(Payload, frozen=True, gc=False):
    """The score of one node, 0 to 10; prioritize answers with a list of these."""

    host: str
    score: int


HostPriorityList = tuple[HostPriority, ...]


class Victims(Payload, frozen=True, gc=False):
    """Pods to be evicted from a node, in full."""

    pods: tuple[msgspec.Raw, ...] | None = ()
    num_pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")


class MetaPod(Payload, frozen=True, gc=False):
    """A pod by its uid."""

    uid: str = msgspec.field(name="UID")


class MetaVictims(Payload, frozen=True, gc=False):
    """Pods to be evicted from a node, by their uids."""

    pods: tuple[MetaPod, ...] | None = ()
    num_pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")

    @classmethod
    def of(cls, candidate: Candidate) -> MetaVictims:
        pods = tuple(MetaPod(victim.uid) for victim in candidate.victims)
        return cls(pods, candidate.pdb_violations)


class ExtenderPreemptionArgs(Payload, frozen=True, gc=False):
    """Candidate nodes with their victims; one of the two forms is None."""

    pod: msgspec.Raw
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class ExtenderPreemptionResult(Payload, frozen=True, gc=False):
    """The remaining candidates; never more than were sent."""

    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class ExtenderBindingArgs(Payload, frozen=True, gc=False):
    """The arguments of bind."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = msgspec.field(name="PodUID")
    node: str


class ExtenderBindingResult(Payload, frozen=True, gc=False):
    """Empty if the pod is bound."""

    error: str = ""


# --- the table of verbs --------------------------------------------------------------------------


class Verb(msgspec.Struct, Generic[A, R], frozen=True):
    """A verb, for the calling and the serving side: an extender serves `filter` at /filter."""

    name: str
    args: type[A]
    result: type[R]
    points: tuple[type[Base], ...]  # the extension points whose plugins answer it
    other_paths: tuple[str, ...] = ()
    says_errors: bool = False  # the result has a field for the error
    sends_nodes: bool = False  # in full, unless the extender is nodeCacheCapable
    sends_running_pods: bool = False  # likewise

    def path_at(self, extender: cfg.Extender) -> str:
        """The path in a configuration, such as `filterVerb`; empty: the verb is not called."""
        path: str = getattr(extender, f"{self.name}_verb")
        return path


AnyVerb = Verb[Any, Any]

FILTER: Final = Verb(
    "filter",
    ExtenderArgs,
    ExtenderFilterResult,
    points=(PreFilter, Filter),
    says_errors=True,
    sends_nodes=True,
)
PRIORITIZE: Final = Verb(
    "prioritize",
    ExtenderArgs,
    HostPriorityList,
    points=(Score,),
    other_paths=("priority",),
    sends_nodes=True,
)
PREEMPT: Final = Verb(
    "preempt",
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    points=(PostFilter,),
    sends_running_pods=True,
)
BIND: Final = Verb(
    "bind", ExtenderBindingArgs, ExtenderBindingResult, points=(Bind,), says_errors=True
)
VERBS: Final[tuple[AnyVerb, ...]] = (FILTER, PRIORITIZE, PREEMPT, BIND)


# --- reading and writing -------------------------------------------------------------------------


def encode(payload: Any) -> bytes:
    return msgspec.json.encode(payload)


def decode(data: bytes | msgspec.Raw, type_: type[T]) -> T:
    """Read a payload; `DecodeError` says what is wrong with it, and where."""
    try:
        # The spelling of current schedulers; anything else is read field by field.
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found: T = _read(data, type_, "$")
        return found


class _Named(msgspec.Struct):
    name: str = ""


class _Bare(msgspec.Struct):
    metadata: _Named


def name_of(item: msgspec.Raw) -> str:
    """The name of a node in raw JSON."""
    found: str = _parsed(item, _Bare, "$").metadata.name
    return found


# --- names in any case ---------------------------------------------------------------------------


def _read(data: bytes | msgspec.Raw, type_: Any, path: str) -> Any:
    """Read JSON whose names may be in any case; unknown fields are ignored, as in Go."""
    if type_ is msgspec.Raw:
        return data if isinstance(data, msgspec.Raw) else msgspec.Raw(data)
    origin = get_origin(type_)
    if origin in (Union, UnionType):
        if bytes(data).strip() == b"null":
            return None
        nothing = (type(None), msgspec.UnsetType)
        (type_,) = (option for option in get_args(type_) if option not in nothing)
        return _read(data, type_, path)
    if origin is tuple:
        items = _parsed(data, tuple[msgspec.Raw, ...], path)
        inner = get_args(type_)[0]
        return tuple(_read(item, inner, f"{path}[{place}]") for place, item in enumerate(items))
    if origin is dict:
        inner = get_args(type_)[1]
        entries = _parsed(data, dict[str, msgspec.Raw], path)
        return {key: _read(value, inner, f"{path}[{key!r}]") for key, value in entries.items()}
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _read_struct(data, type_, path)
    return _parsed(data, type_, path)


def _read_struct(data: bytes | msgspec.Raw, type_: type[msgspec.Struct], path: str) -> Any:
    members = _parsed(data, dict[str, msgspec.Raw], path)
    given = {name.lower(): value for name, value in members.items()}
    hints = get_type_hints(type_)
    values = {}
    for field in msgspec.structs.fields(type_):
        raw = given.get(field.encode_name.lower())
        if raw is not None:
            values[field.name] = _read(raw, hints[field.name], f"{path}.{field.encode_name}")
        elif field.required:
            raise DecodeError(type_.__name__, path, f"{field.encode_name} is missing")
    return type_(**values)


def _parsed(data: bytes | msgspec.Raw, type_: Any, path: str) -> Any:
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.ValidationError as error:
        raise DecodeError("", path, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError("", path, f"not valid JSON: {error}") from error
