"""Where objects live on an API server: kinds to resources, names to paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final
from urllib.parse import quote, urlencode

from mooring.api.meta import Object

_plain: Final = re.compile(r"[a-zA-Z0-9._~-]*", re.ASCII).fullmatch  # nothing in it to be quoted


@cache
def group_of(kind: type[Object]) -> str:
    """The API group; empty for the core group."""
    group, slash, _ = kind.API_VERSION.partition("/")
    return group if slash else ""


@cache
def resource_of(kind: type[Object]) -> str:
    """The plural in lower case, as paths and RBAC rules spell it."""
    singular = kind.KIND.lower()
    if singular.endswith("s"):
        return singular + "es"
    if singular.endswith("y"):
        return singular[:-1] + "ies"
    return singular + "s"


def collection(
    kind: type[Object], namespace: str = "", query: Mapping[str, str] | None = None
) -> str:
    """The path of all objects of a kind; without a namespace, of all namespaces."""
    return _collection(kind, namespace) + ("?" + urlencode(query) if query else "")


def single(kind: type[Object], name: str, namespace: str = "", subresource: str = "") -> str:
    """The path of one object, or of one of its subresources."""
    tail = f"/{subresource}" if subresource else ""
    quoted = name if _plain(name) else quote(name)
    return f"{_collection(kind, namespace)}/{quoted}{tail}"


@lru_cache(maxsize=1024)
def _collection(kind: type[Object], namespace: str) -> str:
    place = f"/namespaces/{quote(namespace)}" if namespace else ""
    root = "apis" if group_of(kind) else "api"
    return f"/{root}/{kind.API_VERSION}{place}/{resource_of(kind)}"
