"""Lists: the objects of a kind that match, in pages, consistent at one resourceVersion."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

import msgspec

from mooring.client.errors import Gone, ServerError, StatusError
from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.options import ListOptions, read_version
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Expired, Item, Object, Store

_TOO_OLD: Final = "The resourceVersion for the provided list is too old."
_PAGE_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue parameter, or use the continue token in this response "
    "to retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_encode: Final = msgspec.json.Encoder().encode


class ListResult(msgspec.Struct, frozen=True):
    """The objects of a list, and its metadata."""

    items: Sequence[Item]
    version: int
    token: str = ""  # the continue token; empty after the last page
    left: int | None = None  # the number of remaining items, if known

    @property
    def metadata(self) -> Object:
        meta: Object = {"resourceVersion": str(self.version)}
        if self.token:
            meta["continue"] = self.token
        if self.left is not None:
            meta["remainingItemCount"] = self.left
        return meta


class _Token(msgspec.Struct):
    """Where the next page begins."""

    version: int = msgspec.field(name="rv")
    start: str
    api: str = msgspec.field(default="meta.k8s.io/v1", name="v")


def list_objects(store: Store, resource: Resource, options: ListOptions) -> ListResult:
    """The objects that a request selects; Gone for a version that is no longer kept."""
    wanted = read_version(options)
    if options.token:
        if options.version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _read_token(options.token)
        items = _at(store, resource, options, token.version, _PAGE_TOO_OLD)
        rest = [item for item in items if item.path >= token.start]
        return _cut(rest, token.version, options.limit, options)
    if wanted > store.version:
        raise too_large(wanted, store.version)
    version = store.version
    is_exact = options.match == "Exact" or (options.limit and wanted and not options.match)
    items = _at(store, resource, options, wanted if is_exact else None, _TOO_OLD)
    if is_exact:
        version = wanted
    # kube-apiserver serves version 0 from its watch cache, without pages.
    limit = 0 if options.version == "0" else options.limit
    return _cut(items, version, limit, options)


def _at(
    store: Store, resource: Resource, options: ListOptions, version: int | None, complaint: str
) -> list[Item]:
    predicate = options.predicate
    try:
        items = store.list(resource, predicate.namespace, at=version)
    except Expired as error:
        raise Gone(complaint, code=410, reason="Expired") from error
    if predicate.has_selector:
        return [item for item in items if predicate.matches(item)]
    return items


def _cut(items: list[Item], version: int, limit: int, options: ListOptions) -> ListResult:
    if not limit or len(items) <= limit:
        return ListResult(items, version)
    token = _Token(version, items[limit].path)
    text = base64.urlsafe_b64encode(_encode(token)).decode().rstrip("=")
    return ListResult(
        items[:limit], version, text, None if options.predicate.has_selector else len(items) - limit
    )


def _read_token(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(raw, type=_Token)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error


def too_large(wanted: int, current: int) -> StatusError:
    """504: the client asks for a resourceVersion in the future."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ServerError(
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        code=504,
        reason="Timeout",
        retry_after=1.0,
        details={"causes": [cause], "retryAfterSeconds": 1},
    )
