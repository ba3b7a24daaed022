"""What writes bring along: read, and held against what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.calls import Call
from mooring.cluster.apiserver.decoding import YAML, check_kind, decode_object, fit, unknown_fields
from mooring.cluster.apiserver.failures import bad_request, invalid_kind, wrong
from mooring.cluster.apiserver.options import WriteOptions
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.schema import ANY, shape_of
from mooring.cluster.apiserver.store import Object

_READABLE: Final = ("application/json", "", YAML)


def media_of(call: Call) -> str:
    """The media type of the body, without its parameters."""
    return call.headers.get("content-type", "").partition(";")[0].strip()


def whole_object(resource: Resource, call: Call, options: WriteOptions) -> tuple[Object, list[str]]:
    """An object of this kind, and what to warn of."""
    media = media_of(call)
    if media not in _READABLE:
        raise StatusError(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml",
            code=415,
            reason="UnsupportedMediaType",
        )
    value, strangers = decode_object(resource, call.body, media)
    if strangers and options.validation == "Strict":
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: strict decoding error: {', '.join(strangers)}"
        )
    return value, strangers if options.validation == "Warn" else []


def fitting_object(
    resource: Resource, value: Object, options: WriteOptions, patch: bytes
) -> tuple[Object, list[str]]:
    """What a patch has made, if it is still what it should be, and what to warn of."""
    shown = patch.decode(errors="replace")
    said = (value.get("apiVersion", ""), value.get("kind", ""))
    if all(isinstance(word, str) for word in said):  # if not, it does not fit anyway
        check_kind(resource, *said)
    try:
        fitting = fit(resource, value)
    except ValueError as error:
        raise invalid_kind("", "", "", [wrong("patch", shown, str(error))]) from error
    if fitting == value:
        return value, []
    shape = shape_of(resource.api_version, resource.kind) or ANY
    strangers = list(unknown_fields(value, shape))
    if strangers and options.validation == "Strict":
        why = f"strict decoding error: {', '.join(strangers)}"
        raise invalid_kind("", "", "", [wrong("patch", shown, why)])
    return fitting, strangers if options.validation == "Warn" else []


def check_name(value: Object, name: str) -> None:
    """Refuse an object that has another name than its path."""
    own = (value.get("metadata") or {}).get("name", "")
    if not own:
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if own != name:
        raise bad_request(
            f"the name of the object ({own}) does not match the name on the URL ({name})"
        )


def warning_headers(warnings: list[str]) -> Mapping[str, str]:
    """Several in one header: the replies here can have each header once."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    return {"Warning": ", ".join(f'299 - "{text}"' for text in quoted)} if warnings else {}
