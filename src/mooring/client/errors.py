"""Errors of requests to an API server.

ApiError
├── StatusError        the server answered with a failure: `code`, `reason`, its message
│   ├── Unauthorized   401      unknown credentials
│   ├── Forbidden      403      no rule allows this
│   ├── NotFound       404
│   ├── ConflictError  409      changed, bound or created by another client meanwhile
│   ├── Gone           410      the version asked for is too old: list again
│   ├── TooManyRequests 429     try again later
│   └── ServerError    5xx
├── Garbled            2xx with a body that cannot be decoded; a write may have been carried out
├── Unreachable        no response; `sent` says whether the request may have been carried out
│   └── AnswerTooLong  the response has more bytes than it may have
└── Fenced             not sent: this process may not write any more
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from mooring.api import protobuf
from mooring.api.codec import DecodeError
from mooring.api.unreadable import NOT_JSON
from mooring.errors import ApiError
from mooring.observe.texts import cut

_LONGEST_WAIT: Final = 86_400.0  # seconds; whatever a Status asks for
_LONGEST_STATUS: Final = 64 * 1024  # bytes that are decoded


class StatusError(ApiError):
    """The server answered with a failure; `details` is that of its Status."""

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str = "",
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code: int = code
        self.reason: str = reason
        self.retry_after: float | None = retry_after  # seconds
        self.details: Mapping[str, Any] | None = details


class Unauthorized(StatusError):
    """The credentials are missing, wrong or expired."""


class Forbidden(StatusError):
    """No RBAC rule allows it; the message names verb and resource."""


class NotFound(StatusError):
    """There is no such object, or no such kind."""


class ConflictError(StatusError):
    """Changed or created by another client; `reason` is Conflict or AlreadyExists."""


class Gone(StatusError):
    """The resourceVersion, or the page, that was asked for is no longer kept."""


class TooManyRequests(StatusError):
    """The server asks to try again later."""


class ServerError(StatusError):
    """The server failed; a write may have been carried out all the same."""


class Garbled(ApiError):
    """The body of a success, or an event of a watch, is not JSON or not the object it should be.

    The sender may be a proxy: a write may or may not have been carried out.
    """


class Unreachable(ApiError):
    """No response came; if `sent`, the request may have been carried out."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent: bool = sent
        self.is_logged: bool = False  # as a failure to connect; see `Reachability`


class AnswerTooLong(Unreachable):
    """The response has more bytes than it may have, and was not read to its end."""


class Fenced(ApiError):
    """Not sent, because this process has lost the right to write."""


OUTCOME_UNKNOWN: Final = (Unreachable, ServerError, Garbled)
"""Errors after which a write may or may not have been carried out."""

_BY_CODE: Final[Mapping[int, type[StatusError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: ConflictError,
    410: Gone,
    429: TooManyRequests,
}


class _Status(msgspec.Struct, rename="camel"):
    """The `Status` object that an API server sends for a failure."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None


def status_error(code: int, body: bytes, headers: Mapping[str, str] | None = None) -> StatusError:
    """The error for a response that is not 2xx; the body is a Status, or anything."""
    body = body[:_LONGEST_STATUS]
    try:
        if protobuf.is_protobuf(body):
            status = _Status(**protobuf.read_status(body))
        else:
            status = msgspec.json.decode(body, type=_Status)
    except (*NOT_JSON, DecodeError):
        shown = body[:200].decode(errors="replace").strip()
        status = _Status(message=shown or f"the server answered {code}")
    return _error(status, code, headers or {})


def status_error_of_event(status: Mapping[str, Any]) -> StatusError:
    """The error for a Status that came as an event of a watch."""
    found = msgspec.convert(dict(status), type=_Status, strict=False)
    return _error(found, found.code, {})


def _error(status: _Status, code: int, headers: Mapping[str, str]) -> StatusError:
    kind = _BY_CODE.get(code, ServerError if code >= 500 else StatusError)
    return kind(
        cut(status.message) or f"the server answered {code}",
        code=code,
        reason=cut(status.reason),
        retry_after=_retry_after(headers, status),
        details=status.details,
    )


def _retry_after(headers: Mapping[str, str], status: _Status) -> float | None:
    asked = headers.get("retry-after", "")
    if asked.isdecimal():
        return float(asked)
    seconds = (status.details or {}).get("retryAfterSeconds")
    if not isinstance(seconds, int) or seconds <= 0:
        return None
    return float(min(seconds, _LONGEST_WAIT))
