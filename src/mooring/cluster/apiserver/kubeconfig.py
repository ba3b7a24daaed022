"""The kubeconfig of an embedded cluster: written atomically, never over another one."""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path
from typing import Any, Final

import yaml

from mooring.api.unreadable import NOT_YAML
from mooring.api.yaml import load as load_yaml
from mooring.errors import ConfigError, Problem

NAME: Final = "mooring"  # of cluster, user and context

# An extension and not a comment, because kubectl drops comments when it changes a file.
_MARK: Final = "mooring/embedded-cluster"


def render(url: str, *, authority: bytes, token: str) -> str:
    """The file for one user of one server; `authority` is PEM, empty for plain HTTP."""
    cluster: dict[str, Any] = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "extensions": [
            {"name": _MARK, "extension": {"note": "made by mooring, overwritten by it"}}
        ],
    }
    return yaml.safe_dump(document, sort_keys=False)


def write(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write a kubeconfig with mode 0600; ConfigError if the file there is not ours."""
    target = Path(os.path.realpath(path))  # a link stays a link
    refuse_to_overwrite(path, force=force)
    try:
        descriptor, made = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(made, target)
        except BaseException:
            os.unlink(made)
            raise
    except OSError as error:
        raise ConfigError([Problem(str(path), error.strerror or str(error))]) from error


def refuse_to_overwrite(path: str | Path, *, force: bool = False) -> None:
    """ConfigError if the file exists and was not written by us, unless forced."""
    target = Path(path)
    if target.is_dir():
        raise ConfigError([Problem(str(path), "is a folder; expected the name of a file")])
    if target.exists() and not force and not _is_ours(target):
        text = "exists and was not made by mooring; choose another file, or overwrite it by --force"
        raise ConfigError([Problem(str(path), text)])


def _is_ours(path: Path) -> bool:
    """Marked, and without further clusters or users that were merged into it."""
    try:
        document = load_yaml(path.read_text(encoding="utf-8"))
    except (OSError, *NOT_YAML):
        return False
    if document is None and not path.stat().st_size:
        return True  # an empty file, as mktemp makes it
    if not isinstance(document, dict):
        return False
    marks = _names(document.get("extensions"))
    named = [_names(document.get(part)) for part in ("clusters", "users")]
    return marks == [_MARK] and named == [[NAME], [NAME]]


def _names(entries: object) -> list[object]:
    if not isinstance(entries, list):
        return []
    return [entry.get("name") for entry in entries if isinstance(entry, dict)]
