"""The objects in the bodies of writes: decoded and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.decoding import YAML, check_kind, decode_object, fit, unknown_fields
from mooring.cluster.apiserver.errors import bad_request, invalid_kind, invalid_value
from mooring.cluster.apiserver.options import WriteOptions
from mooring.cluster.apiserver.requests import ApiRequest
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.schema import ANY, schema_of
from mooring.cluster.apiserver.store import Object

_READABLE: Final = ("application/json", "", YAML)


def media_of(request: ApiRequest) -> str:
    """The media type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip()


def decode_body(
    resource: Resource, request: ApiRequest, options: WriteOptions
) -> tuple[Object, list[str]]:
    """An object of this kind, and the warnings about it."""
    media = media_of(request)
    if media not in _READABLE:
        raise StatusError(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml",
            code=415,
            reason="UnsupportedMediaType",
        )
    value, strangers = decode_object(resource, request.body, media)
    if strangers and options.validation == "Strict":
        raise bad_request(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: strict decoding error: {', '.join(strangers)}"
        )
    return value, strangers if options.validation == "Warn" else []


def check_patched(
    resource: Resource, value: Object, options: WriteOptions, patch: bytes
) -> tuple[Object, list[str]]:
    """The result of a patch, if it is still valid, and the warnings about it."""
    shown = patch.decode(errors="replace")
    said = (value.get("apiVersion", ""), value.get("kind", ""))
    if all(isinstance(word, str) for word in said):  # if not, it does not fit anyway
        check_kind(resource, *said)
    try:
        fitting = fit(resource, value)
    except ValueError as error:
        raise invalid_kind("", "", "", [invalid_value("patch", shown, str(error))]) from error
    if fitting == value:
        return value, []
    schema = schema_of(resource.api_version, resource.kind) or ANY
    strangers = list(unknown_fields(value, schema))
    if strangers and options.validation == "Strict":
        why = f"strict decoding error: {', '.join(strangers)}"
        raise invalid_kind("", "", "", [invalid_value("patch", shown, why)])
    return fitting, strangers if options.validation == "Warn" else []


def check_name(value: Object, name: str) -> None:
    """Refuse an object whose name differs from the one in the path."""
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
    """All warnings in one header: a response has each header once."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in warnings)
    return {"Warning": ", ".join(f'299 - "{text}"' for text in quoted)} if warnings else {}
