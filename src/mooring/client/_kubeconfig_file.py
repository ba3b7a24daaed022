"""Reads and merges kubeconfig files; `kubeconfig` decides what the fields mean.

Entries are validated when they are used: a broken user that the context does not name is no
problem. Problems never quote values, because any of them may be a secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import msgspec
import yaml

from mooring.api.unreadable import NOT_YAML
from mooring.api.yaml import PythonLoader, check_size
from mooring.client._confidential import Confidential
from mooring.errors import Problem

T = TypeVar("T")

_QUOTED: Final = re.compile(r"'[^'<]{4,}'")
_KINDS: Final[Mapping[type, str]] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "fields",
    type(None): "nothing",
}


class KubeconfigEntry(Confidential, frozen=True):
    """One cluster, user or context, and the file it is in."""

    secret: ClassVar[tuple[str, ...]] = ("fields",)

    file: str
    path: str  # in the file: users[admin].user
    fields: Mapping[str, Any]


Entries = Mapping[str, KubeconfigEntry]


class Kubeconfig(msgspec.Struct, frozen=True):
    """One file, or several merged."""

    files: tuple[str, ...] = ()
    current_context: str = ""
    contexts: Entries = {}
    clusters: Entries = {}
    users: Entries = {}


def merge(configs: Iterable[Kubeconfig]) -> Kubeconfig:
    """The first file that has an entry of a name wins, with the whole entry."""
    return reduce(_merge_two, configs, Kubeconfig())


def _merge_two(first: Kubeconfig, second: Kubeconfig) -> Kubeconfig:
    return Kubeconfig(
        files=first.files + second.files,
        current_context=first.current_context or second.current_context,
        contexts={**second.contexts, **first.contexts},
        clusters={**second.clusters, **first.clusters},
        users={**second.users, **first.users},
    )


def read_file(path: str, problems: list[Problem]) -> Kubeconfig | None:
    """One file; None if there is no such file, or nothing in it can be used."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as error:
        problems.append(Problem(path, f"cannot read: {error.strerror or error}"))
        return None
    except UnicodeDecodeError as error:
        problems.append(Problem(path, f"not UTF-8 text: byte {error.start} is not valid"))
        return None
    try:
        check_size(text)
        raw = yaml.load(text, Loader=PythonLoader)
    except NOT_YAML as error:
        problems.append(_yaml_problem(path, error))
        return None
    return read_data({} if raw is None else raw, path, problems)


def read_data(raw: object, file: str, problems: list[Problem]) -> Kubeconfig | None:
    """The data of one file: three lists by name, and the context to use."""
    if not isinstance(raw, dict):
        problems.append(Problem(file, f"expected a kubeconfig, found {_kind(raw)}"))
        return None
    top = Fields(KubeconfigEntry(file, "", raw), problems)
    before = len(problems)
    for key, expected in (("apiVersion", "v1"), ("kind", "Config")):
        if top.text(key) not in ("", expected):
            top.report(key, f"expected {expected}")
    if len(problems) > before:
        return None  # not a kubeconfig
    return Kubeconfig(
        files=(file,),
        current_context=top.text("current-context"),
        contexts=_entries(top, "contexts", "context"),
        clusters=_entries(top, "clusters", "cluster"),
        users=_entries(top, "users", "user"),
    )


def _entries(top: Fields, key: str, inner: str) -> Entries:
    found: dict[str, KubeconfigEntry] = {}
    for index, item in enumerate(top.items(key)):
        place = f"{key}[{index}]"
        if not isinstance(item, dict):
            top.report(place, f"expected fields, found {_kind(item)}")
            continue
        name = Fields(KubeconfigEntry(top.entry.file, place, item), top.problems).text("name")
        fields = item.get(inner)
        if not name:
            top.report(f"{place}.name", f"expected the name of a {inner}")
        elif name in found:
            top.report(f"{key}[{name}]", "there are two of this name, expected one")
        elif fields is not None and not isinstance(fields, dict):
            top.report(f"{key}[{name}].{inner}", f"expected fields, found {_kind(fields)}")
        else:
            found[name] = KubeconfigEntry(top.entry.file, f"{key}[{name}].{inner}", fields or {})
    return found


class Fields(msgspec.Struct, frozen=True):
    """Typed access to the fields of an entry; one of another type is a problem, and left out."""

    entry: KubeconfigEntry
    problems: list[Problem]

    def place(self, key: str = "") -> str:
        """Where a field is: the file, and the path in it."""
        path = ".".join(part for part in (self.entry.path, key) if part)
        return f"{self.entry.file}: {path}" if path else self.entry.file

    def report(self, key: str, message: str) -> None:
        self.problems.append(Problem(self.place(key), message))

    def text(self, key: str) -> str:
        return self._take(key, str) or ""

    def flag(self, key: str) -> bool:
        return self._take(key, bool) is True

    def items(self, key: str) -> Sequence[Any]:
        return self._take(key, list) or ()

    def texts(self, key: str) -> tuple[str, ...]:
        items = self.items(key)
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self.report(f"{key}[{index}]", f"expected text, found {_kind(item)}{_advice(item)}")
        return tuple(item for item in items if isinstance(item, str))

    def sections(self, key: str) -> Sequence[Fields]:
        """A list of fields below a field."""
        found: list[Fields] = []
        for index, item in enumerate(self.items(key)):
            if isinstance(item, dict):
                path = f"{self.entry.path}.{key}[{index}]"
                found.append(Fields(KubeconfigEntry(self.entry.file, path, item), self.problems))
            else:
                self.report(f"{key}[{index}]", f"expected fields, found {_kind(item)}")
        return found

    def inner(self, key: str) -> Fields | None:
        """The fields below a field; None if it is absent."""
        value = self._take(key, dict)
        if value is None:
            return None
        path = f"{self.entry.path}.{key}"
        return Fields(KubeconfigEntry(self.entry.file, path, value), self.problems)

    def data(self, key: str) -> bytes:
        """Base64, as all fields that end in -data are."""
        try:
            return base64.b64decode("".join(self.text(key).split()), validate=True)
        except (binascii.Error, ValueError) as error:
            self.report(key, f"expected base64: {error}")
            return b""

    def file(self, key: str) -> str:
        """A path, relative to the kubeconfig it is in."""
        return resolved(self.text(key), self.entry.file)

    def _take(self, key: str, type_: type[T]) -> T | None:
        value = self.entry.fields.get(key)
        if value is None or isinstance(value, type_):
            return value
        wanted = _KINDS[type_]
        self.report(key, f"expected {wanted}, found {_kind(value)}{_advice(value, type_)}")
        return None


def resolved(path: str, file: str) -> str:
    """A path as it is meant in a file: relative to the file's folder."""
    return str(Path(file).absolute().parent / path) if path else ""


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "something else")


def _advice(value: object, wanted: type = str) -> str:
    # YAML takes 1234 for a number and yes for a truth, whatever they are used for.
    return "; put it in quotes" if wanted is str and isinstance(value, bool | int | float) else ""


def _yaml_problem(path: str, error: Exception) -> Problem:
    if not isinstance(error, yaml.MarkedYAMLError):
        return Problem(path, f"not YAML: {type(error).__name__}")
    mark = error.problem_mark or error.context_mark
    place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
    # What PyYAML quotes may be a password that begins with a star.
    said = ", ".join(part for part in (error.context, error.problem) if part)
    return Problem(place, f"not YAML: {_QUOTED.sub('[hidden]', said)}")
