"""The sections that changed little: leader election, addresses, extenders."""

from collections.abc import Sequence
from typing import Any

import msgspec

from mooring.config.decode import decode, decode_partly
from mooring.config.duration import format_nanoseconds
from mooring.config.legacy import names
from mooring.config.legacy.types import Alpha, CommonFields, V1Beta
from mooring.config.notes import Findings
from mooring.config.types import Extender, ExtenderTLS, ManagedResource, Section

Document = dict[str, Any]


def decode_legacy(
    raw: dict[Any, object], type_: type[msgspec.Struct], findings: Findings, *, lenient: bool
) -> Any:
    """Decode an old document without its header; None if that fails.

    In versions whose unknown fields kube-scheduler ignored, an unknown field is a note.
    """
    body = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
    value, problems = decode_partly(body, type_)
    for problem in problems:
        if lenient and problem.message.startswith("unknown field"):
            findings.note(problem.path, "unknown field; kube-scheduler ignored it as well")
        else:
            findings.refuse(problem.path, problem.message)
    return value


def convert_common_fields(old: CommonFields, findings: Findings) -> Document:
    """The part of a document that every version has, as far as it is given."""
    kept: Document = {}
    for field in msgspec.structs.fields(CommonFields):
        value = getattr(old, field.name)
        if value is not None:
            kept[field.encode_name] = value
    if old.leader_election is not None:
        kept["leaderElection"] = convert_leader_election(old.leader_election, findings)
    if isinstance(old, V1Beta | Alpha):
        for name, address in (
            ("healthzBindAddress", old.healthz_bind_address),
            ("metricsBindAddress", old.metrics_bind_address),
        ):
            if address:
                text = "has no counterpart: health and metrics are served on --secure-port"
                findings.note(name, text)
    return kept


def convert_leader_election(old: dict[str, Any], findings: Findings) -> Document:
    """Locks that were removed become leases; v1alpha1's lockObject fields are renamed."""
    new = dict(old)
    for part in ("Name", "Namespace"):
        lock, resource = new.pop(f"lockObject{part}", None), new.get(f"resource{part}")
        if not lock:
            continue
        if resource and resource != lock:
            text = (
                f"Resource{part} and LockObject{part} are both set and do not match,"
                f" Resource{part}: {resource}, LockObject{part}: {lock}"
            )
            findings.refuse(f"leaderElection.lockObject{part}", text)
        new[f"resource{part}"] = lock
    lock = new.get("resourceLock")
    if isinstance(lock, str) and lock in names.LEASE_LOCKS:
        text = (
            f"{lock} is read as leases: the lock is a Lease now, which excludes only replicas"
            " that use leases as well"
        )
        findings.note("leaderElection.resourceLock", text)
        new["resourceLock"] = "leases"
    return new


def convert_extenders(old: Sequence[dict[str, Any]], findings: Findings) -> list[Document]:
    """Extenders as the Policy API and v1alpha2 wrote them.

    Their field names were not case-sensitive (`enableHttps`), and `httpTimeout` was a number of
    nanoseconds.
    """
    return [
        _convert_extender(extender, f"extenders[{index}]", findings)
        for index, extender in enumerate(old)
    ]


def _convert_extender(old: dict[str, Any], path: str, findings: Findings) -> Document:
    new = _with_v1_spelling(old, Extender, path, findings)
    if isinstance(tls := new.get("tlsConfig"), dict):
        new["tlsConfig"] = _with_v1_spelling(tls, ExtenderTLS, f"{path}.tlsConfig", findings)
    if isinstance(managed := new.get("managedResources"), list | tuple):
        new["managedResources"] = [
            _with_v1_spelling(item, ManagedResource, f"{path}.managedResources[{index}]", findings)
            if isinstance(item, dict)
            else item
            for index, item in enumerate(managed)
        ]
    if (timeout := new.pop("httpTimeout", None)) is not None:
        if isinstance(timeout, int) and not isinstance(timeout, bool):
            new["httpTimeout"] = format_nanoseconds(timeout)
        else:
            text = f"expected a number of nanoseconds, such as 5000000000, got {timeout!r}"
            findings.refuse(f"{path}.httpTimeout", text)
    _, problems = decode(new, Extender, path)
    findings.refuse_all(problems)
    return new


def _with_v1_spelling(
    old: dict[str, Any], type_: type[Section], path: str, findings: Findings
) -> Document:
    spellings = {name.lower(): name for name in type_.__struct_encode_fields__}
    new: Document = {}
    for key, value in old.items():
        name = spellings.get(str(key).lower())
        if name is None:
            findings.note(f"{path}.{key}", "unknown field; kube-scheduler ignored it as well")
        elif value is not None:
            new[name] = value
    return new
