"""Reads from the Go types of Kubernetes which number each field has in protobuf.

    python -m tests.cluster.apiserver.make_field_numbers

rewrites `src/mooring/cluster/apiserver/fieldnumbers.txt` for the types in `schema.txt`. kubectl and
other Go programs send the objects they create as protobuf, and can't be asked not to.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests import golang

from mooring.cluster.apiserver.protobuf import NUMBERS_FILE
from mooring.cluster.apiserver.schema import all_types

_HEADER: Final = """\
# Numbers of fields in protobuf, from the Go types of Kubernetes 1.36.
# Made by make_field_numbers.py. 2.3: field 3 of the message in field 2, which is
# no field of its own in JSON. A star: the field is a pointer, so that a zero is said on purpose.
"""
_MODULE: Final = Path(__file__).parents[2] / "controlplane" / "binaries"
_STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(r"^\t(?:(\w+) +)?(\S+)\s+`(.*)`", re.MULTILINE)
_TAG: Final = re.compile(r'(\w+):"([^"]*)"')


class Field(NamedTuple):
    """One field of a Go struct."""

    name: str  # in JSON; empty if the fields of its type are ours
    type: str
    number: int


def describe() -> str:
    """The content of the file."""
    lines = []
    for name in sorted(all_types()):
        numbers = dict(_numbers(name))
        missing = all_types()[name].fields.keys() - numbers.keys() - {"apiVersion", "kind"}
        if missing:
            raise LookupError(f"{name}: no protobuf number for {', '.join(sorted(missing))}")
        fields = [f"{field}={number}" for field, number in numbers.items()]
        lines.append(" ".join([name, *fields]))
    return _HEADER + "\n".join(lines) + "\n"


def _numbers(name: str) -> Iterator[tuple[str, str]]:
    package, _, kind = name.rpartition(".")
    known = all_types()[name].fields
    for field in _structs(package).get(kind, ()):  # a struct without fields is on one line
        if not field.name:
            for inner, number in _inlined(package, field.type):
                yield inner, f"{field.number}.{number}"
        elif field.name in known:
            yield field.name, f"{field.number}{'*' if field.type.startswith('*') else ''}"


def _inlined(package: str, kind: str) -> Iterator[tuple[str, str]]:
    for field in _structs(package)[kind]:
        if not field.name:
            for inner, number in _inlined(package, field.type):
                yield inner, f"{field.number}.{number}"
        else:
            yield field.name, f"{field.number}{'*' if field.type.startswith('*') else ''}"


@cache
def _structs(package: str) -> Mapping[str, list[Field]]:
    group, _, version = package.rpartition(".")
    module, folder = ("k8s.io/api", f"{group}/{version}")
    if group == "meta":
        module, folder = "k8s.io/apimachinery", f"pkg/apis/meta/{version}"
    if group == "apiextensions":
        module, folder = "k8s.io/apiextensions-apiserver", f"pkg/apis/{group}/{version}"
    files = [_folder(module) / folder / name for name in ("types.go", "types_jsonschema.go")]
    text = "".join(file.read_text() for file in files if file.exists())
    return {match[1]: list(_fields(match[2])) for match in _STRUCT.finditer(text)}


def _fields(body: str) -> Iterator[Field]:
    for _, kind, tags in _FIELD.findall(body):
        found = dict(_TAG.findall(tags))
        if {"protobuf", "json"} <= found.keys():
            name = found["json"].partition(",")[0]
            yield Field(name, kind, int(found["protobuf"].split(",")[1]))


@cache
def _folder(module: str) -> Path:
    """Where Go keeps the sources that the control plane is built from."""
    command = golang.go()
    if command is None:
        raise golang.GoError("the Go types are read from Go's modules, and there is no Go here")
    listed = subprocess.run(
        [command, "list", "-m", "-f", "{{.Dir}}", module],
        cwd=_MODULE,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(listed.stdout.strip())


if __name__ == "__main__":
    NUMBERS_FILE.write_text(describe())
    print(f"wrote {NUMBERS_FILE}", file=sys.stderr)
