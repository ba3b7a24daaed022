"""Objects as YAML or JSON, in one file or one file each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mooring.cli.manifests.rbac_objects import Object
from mooring.config.source import Dumper

_WIDTH = 100  # a list that fits into a line is written as one


class _Dumper(Dumper):
    """Multi-line strings as blocks, short lists on one line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    is_short = all(isinstance(item, str) for item in items) and len(str(items)) < _WIDTH
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=is_short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def to_yaml(objects: Sequence[Object], head: str = "") -> str:
    """A stream of documents; `head` is a comment for the first line."""
    documents = [
        yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=_WIDTH)
        for value in objects
    ]
    return (f"# {head}\n" if head else "") + "---\n".join(documents)


def to_json(objects: Sequence[Object]) -> str:
    """A List, as kubectl prints several objects."""
    everything = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    return json.dumps(everything, indent=2) + "\n"


def file_stem(value: Object, name: str) -> str:
    """`deployment`, or `rolebinding-client-ca`: unique among the objects of scheduler `name`."""
    kind, own = value["kind"].lower(), value["metadata"]["name"]
    return f"{kind}{own.removeprefix(name)}"


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts under their names, creating the folder if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
