"""Content negotiation: whole objects, tables, or metadata only."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from mooring.client.errors import StatusError

Form = Literal["whole", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

_ANY: Final = ("application/json", "application/*", "*/*", "")
_META: Final = "meta.k8s.io"


@lru_cache(maxsize=256)
def accepted(header: str) -> Form:
    """The first form that the client accepts and the server has; 406 if there is none."""
    is_json = False
    for clause in header.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media.lower() not in _ANY:
            continue
        is_json = True
        asked = dict(part.split("=", 1) for part in parameters if "=" in part)
        form = asked.get("as", "")
        if not form:
            return "whole"
        if asked.get("g", "") == _META and asked.get("v", "") == "v1":
            if form == "Table":
                return "Table"
            if form == "PartialObjectMetadata":
                return "PartialObjectMetadata"
            if form == "PartialObjectMetadataList":
                return "PartialObjectMetadataList"
    if is_json:
        message = "only the following media types are accepted: application/json"
        raise StatusError(message, code=406, reason="NotAcceptable")
    message = "406: Not Acceptable\n\nAvailable representations: application/json"
    raise StatusError(message, code=406, reason="NotAcceptable", details={})


def check_form(form: Form, kind: str, *, is_list: bool) -> None:
    """Refuse list metadata for one object, and object metadata for a list."""
    if is_list and form == "PartialObjectMetadata":
        why = f"but the requested object is a list (*core.{kind}List)"
    elif not is_list and form == "PartialObjectMetadataList":
        why = f"but the requested object is not a list (*core.{kind})"
    else:
        return
    raise StatusError(f"you requested {form}, {why}", code=406, reason="NotAcceptable")
