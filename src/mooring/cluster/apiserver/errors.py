"""The errors that the server raises: those of `client.errors`, with kube-apiserver's messages.

Validation collects a `FieldError` per field; `invalid` makes one error of them. `status_of` is the
Status object that is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from mooring.client.errors import ConflictError, Forbidden, NotFound, StatusError, TooManyRequests
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Object

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class FieldError(msgspec.Struct, frozen=True):
    """What is invalid about one field of an object."""

    field: str
    message: str  # without the field
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


ErrorList = list[FieldError]


# --- one field ---------------------------------------------------------------------------------


def required(field: str, why: str = "") -> FieldError:
    message = f"Required value: {why}" if why else "Required value"
    return FieldError(field, message, "FieldValueRequired")


def invalid_value(field: str, value: Any, why: str) -> FieldError:
    message = f"Invalid value: {shown(value)}"
    return FieldError(field, f"{message}: {why}" if why else message)


def unsupported(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    listed = ", ".join(f'"{one}"' for one in supported)
    message = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return FieldError(field, message, "FieldValueNotSupported")


def one_of(field: str, value: Any, supported: Sequence[str]) -> ErrorList:
    return [] if value in supported else [unsupported(field, value, supported)]


def invalid_values(field: str, value: Any, faults: Sequence[str]) -> ErrorList:
    """An error for each fault of a value."""
    return [invalid_value(field, value, fault) for fault in faults]


def forbidden_field(field: str, why: str) -> FieldError:
    return FieldError(field, f"Forbidden: {why}", "FieldValueForbidden")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def not_found_value(field: str, value: Any) -> FieldError:
    """A reference to something that does not exist."""
    return FieldError(field, f"Not found: {shown(value)}", "FieldValueNotFound")


def shown(value: Any) -> str:
    """A value as messages quote it: compact JSON, in which Go writes these signs as numbers."""
    text = msgspec.json.encode(value).decode()
    if not isinstance(value, str):
        for sign in "<>&":
            text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


# --- one request -------------------------------------------------------------------------------


def invalid(resource: Resource, name: str, problems: Sequence[FieldError]) -> StatusError:
    # Objects in two groups are checked as what they are stored as.
    return invalid_kind(resource.kind, "" if resource.storage else resource.group, name, problems)


def invalid_kind(kind: str, group: str, name: str, problems: Sequence[FieldError]) -> StatusError:
    """422 with all field errors, each message once."""
    listed = aggregated([str(problem) for problem in problems])
    called = f"{kind}.{group}" if group else kind
    causes = [
        {"reason": problem.reason, "message": problem.message, "field": problem.field}
        for problem in problems
    ]
    details = _details(name, group, kind) | {"causes": causes}
    message = f'{called} "{name}" is invalid: {listed}'
    return StatusError(message, code=422, reason="Invalid", details=details)


def not_found(resource: Resource, name: str) -> NotFound:
    message = f'{resource.qualified} "{name}" not found'
    return NotFound(message, code=404, reason="NotFound", details=_about(resource, name))


def already_exists(resource: Resource, name: str) -> ConflictError:
    message = f'{resource.qualified} "{name}" already exists'
    return ConflictError(message, code=409, reason="AlreadyExists", details=_about(resource, name))


def conflict(what: str, group: str, name: str, why: str = MODIFIED) -> ConflictError:
    """409; `what` is a resource as messages name it, without the group."""
    called = f"{what}.{group}" if group else what
    message = f'Operation cannot be fulfilled on {called} "{name}": {why}'
    details = _details(name, group, what)
    return ConflictError(message, code=409, reason="Conflict", details=details)


def precondition_failed(resource: Resource, namespace: str, name: str, why: str) -> ConflictError:
    """409 for a uid or a resourceVersion that differs when the object is written."""
    place = "/".join(filter(None, ("/registry", _registry(resource), namespace, name)))
    why = (
        f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {why}"
    )
    return conflict(resource.name, resource.group, name, why)


def forbidden(resource: Resource, name: str, why: str) -> Forbidden:
    """403 because of the request's content, not because of the caller."""
    quoted = f' "{name}"' if name else ""
    message = f"{resource.qualified}{quoted} is forbidden: {why}"
    return Forbidden(message, code=403, reason="Forbidden", details=_about(resource, name))


def aggregated(texts: Sequence[str]) -> str:
    """Several messages as one, each once, as Go's aggregate errors."""
    listed = list(dict.fromkeys(texts))
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"


def bad_request(message: str) -> StatusError:
    return StatusError(message, code=400, reason="BadRequest")


def other_namespace() -> StatusError:
    """400 for an object of another namespace than that of the path."""
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request"
    )


def too_many(message: str, seconds: int, cause: str) -> TooManyRequests:
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    details: dict[str, Any] = {"causes": causes}
    if seconds:
        details["retryAfterSeconds"] = seconds
    return TooManyRequests(
        message,
        code=429,
        reason="TooManyRequests",
        retry_after=float(seconds) if seconds else None,
        details=details,
    )


def insufficient_storage(why: str) -> StatusError:
    """507 for any write, while what was written before can't be saved."""
    message = f"nothing can be written at the moment: changes can't be saved: {why}"
    return StatusError(message, code=507, reason="InsufficientStorage")


def rejected() -> StatusError:
    """422 for a patch that does not apply; the server gives no detail."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(message, code=422, reason="Invalid", details={})


def no_such_path() -> NotFound:
    message = "the server could not find the requested resource"
    return NotFound(message, code=404, reason="NotFound", details={})


def no_such_method() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(message, code=405, reason="MethodNotAllowed", details={})


def no_such_verb(resource: Resource, verb: str) -> StatusError:
    message = f'{verb} is not supported on resources of kind "{resource.qualified}"'
    details = _details("", resource.group, resource.name)
    return StatusError(message, code=405, reason="MethodNotAllowed", details=details)


# --- over the wire -----------------------------------------------------------------------------


def status_of(error: StatusError) -> Object:
    """The Status object for a failure."""
    status: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
    }
    if error.reason:
        status["reason"] = error.reason
    if error.details is not None:
        status["details"] = error.details
    status["code"] = error.code
    return status


def success(code: int = 0, details: Mapping[str, Any] | None = None) -> Object:
    """The Status object of a success that returns no object."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code:
        status["code"] = code
    return status


def _details(name: str, group: str, kind: str) -> dict[str, Any]:
    found = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in found.items() if value}


def _about(resource: Resource, name: str) -> dict[str, Any]:
    return _details(name, resource.group, resource.name)


def _registry(resource: Resource) -> str:
    """The resource as keys in etcd name it."""
    odd = {"nodes": "minions", "services": "services/specs", "endpoints": "services/endpoints"}
    return odd.get(resource.name, resource.name)
