"""The files of the page, read once: what is not among them cannot be served.

They are plain modules of JavaScript, as the browser takes them; there is no build. For a page in
one file the modules are joined, each after those it imports.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

import msgspec

_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
INDEX: Final = "index.html"
MAIN: Final = "app.js"
STYLE: Final = "style.css"

_IMPORT: Final = re.compile(r'^import [^;]*?"([^"]+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


class Asset(msgspec.Struct, frozen=True):
    """One file of the page."""

    body: bytes
    packed: bytes  # with gzip
    content_type: str
    etag: str


def web_assets() -> dict[str, Asset]:
    """All files, by their path below the folder."""
    found = {}
    for path, file in sorted(_files(resources.files("mooring.ui") / "web")):
        kind = _TYPES.get(path[path.rfind(".") :])
        if kind is not None:
            body = file.read_bytes()
            tag = hashlib.sha256(body).hexdigest()[:16]
            found[path] = Asset(body, gzip.compress(body, 9, mtime=0), kind, f'"{tag}"')
    return found


def _files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry


def joined(assets: Mapping[str, Asset]) -> str:
    """All modules as one: imports and exports fall away, because no name is taken twice."""
    return "".join(_in_order(MAIN, assets, set()))


def _in_order(path: str, assets: Mapping[str, Asset], seen: set[str]) -> Iterator[str]:
    if path in seen:
        return
    seen.add(path)
    text = assets[path].body.decode()
    folder = path.rpartition("/")[0]
    for match in _IMPORT.finditer(text):
        yield from _in_order(_resolved(folder, match[1]), assets, seen)
    yield _EXPORT.sub("", _IMPORT.sub("", text))


def _resolved(folder: str, path: str) -> str:
    parts = folder.split("/") if folder else []
    for part in path.split("/"):
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
