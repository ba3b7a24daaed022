"""Strict YAML in, plain YAML out.

`parse_yaml` turns a text into plain data and explains what it cannot accept: syntax errors with
line and column, a second document, an empty file. Keys given twice are collected rather than
raised, so that `load` can report them together with everything else. JSON is accepted because it
is YAML. `parse_documents` is for texts with several documents. `dump_yaml` writes what
`parse_yaml` reads back unchanged.
"""

import re
from typing import Any, NamedTuple

import yaml

from mooring.api.unreadable import NOT_YAML, why_unreadable
from mooring.api.yaml import PythonLoader, check_size
from mooring.config.lines import SourceLines
from mooring.errors import ConfigError, Problem

_MERGE_TAG = "tag:yaml.org,2002:merge"
_FLOAT_TAG = "tag:yaml.org,2002:float"
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")

# PyYAML wants a dot in every float, JSON does not: 1e-3 must not arrive as text.
_JSON_FLOAT = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$")


class _Loader(PythonLoader):
    """The loader, with JSON's floats."""


class Dumper(yaml.SafeDumper):
    """The safe dumper, without aliases; quotes text that the loader would read as a float."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _class in (_Loader, Dumper):
    _class.add_implicit_resolver(_FLOAT_TAG, _JSON_FLOAT, list("-+0123456789"))


class YamlDocument(NamedTuple):
    """One of the documents in a text: its data, where it begins, and its own part of the text."""

    data: object
    line: int
    text: str  # with empty lines in front, so that lines keep their numbers
    problems: list[Problem]  # keys that are set twice
    lines: SourceLines
    blocks: dict[str, int]  # the first line of each text that is written as a block, by path


def parse_yaml(text: str, source: str = "<string>") -> tuple[object, list[Problem]]:
    """The data of the one document, and a problem for every key that is set twice.

    Raises ConfigError if the text is not YAML, has no document or more than one, or has an anchor
    that contains itself.
    """
    document = parse_document(text, source)
    return document.data, document.problems


def parse_document(text: str, source: str = "<string>", first_line: int = 1) -> YamlDocument:
    """The one document of a text that begins on `first_line` of its file."""
    documents = parse_documents(text, source, most=2, first_line=first_line)
    if len(documents) > 1:
        place = f"{source}:{documents[1].line}"
        problem = Problem(place, "expected one document, found a second one")
        raise ConfigError([problem], source)
    return documents[0]


def parse_documents(
    text: str, source: str = "<string>", *, most: int = 0, first_line: int = 1
) -> list[YamlDocument]:
    """Read all documents that are not blank, or as many as asked for; there is at least one."""
    text = "\n" * (first_line - 1) + text
    try:
        check_size(text)
        loader = _Loader(text)
    except NOT_YAML as error:
        raise _refusal(error, source, first_line) from error
    documents: list[YamlDocument] = []
    try:
        while (not most or len(documents) < most) and loader.check_node():
            node = loader.get_node()
            if node is None or _is_blank(node):
                continue
            walk = _Walk(source)
            walk.visit(node, "")
            line = node.start_mark.line
            own = "\n" * line + text[node.start_mark.index : node.end_mark.index]
            data = loader.construct_document(node)
            found = YamlDocument(data, line + 1, own, walk.problems, walk.lines, walk.blocks)
            documents.append(found)
    except NOT_YAML as error:
        raise _refusal(error, source, first_line) from error
    finally:
        loader.dispose()
    if not documents:
        raise ConfigError([Problem(source, "the file is empty")], source)
    return documents


def dump_yaml(data: object) -> str:
    """Write plain data in block style, keys in the order given."""
    text = yaml.dump(
        data, Dumper=Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True
    )
    assert isinstance(text, str)
    return text


def child_path(path: str, key: object) -> str:
    """Extend a YAML path by a key: `a.b`, or `a[x/y]` when the key would be misread."""
    name = str(key)
    if not _PLAIN_KEY.fullmatch(name):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _is_blank(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == "" and node.style is None


def _refusal(error: Exception, source: str, first_line: int) -> ConfigError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        message = ", ".join(part for part in (error.context, error.problem) if part)
        place = f"{source}:{mark.line + 1}" if mark else source
        if mark and first_line == 1:  # inside another file the text is indented
            place += f":{mark.column + 1}"
        return ConfigError([Problem(place, message)], source)
    return ConfigError([Problem(source, " ".join(why_unreadable(error).split()))], source)


class _Walk:
    """Walks the node graph once: duplicate keys, and the lines of all paths.

    A node that several aliases share is looked at once.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.lines = SourceLines()
        self.blocks: dict[str, int] = {}
        self.open: set[int] = set()
        self.done: set[int] = set()

    def visit(self, node: yaml.Node, path: str) -> None:
        if id(node) in self.open:
            place = f"{self.source}:{node.start_mark.line + 1}"
            raise ConfigError([Problem(place, "the anchored value contains itself")], self.source)
        self.lines.add(path, node.start_mark.line + 1)
        if id(node) in self.done:
            return
        self.open.add(id(node))
        if isinstance(node, yaml.ScalarNode) and node.style == "|":
            self.blocks[path] = node.start_mark.line + 2
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.visit(item, f"{path}[{index}]")
                self.lines.add_name(f"{path}[{_name_of(item)}]", f"{path}[{index}]")
        elif isinstance(node, yaml.MappingNode):
            self.visit_mapping(node, path)
        self.open.discard(id(node))
        self.done.add(id(node))

    def visit_mapping(self, node: yaml.MappingNode, path: str) -> None:
        lines: dict[tuple[str, str], int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE_TAG:
                self.visit(value, path)
                continue
            place = child_path(path, key.value)
            line = key.start_mark.line + 1
            self.lines.add(place, line)
            spelling = (key.tag, key.value)
            if spelling in lines:
                message = f"duplicate key on line {line}, first set on line {lines[spelling]}"
                self.problems.append(Problem(place, message))
            else:
                lines[spelling] = line
            self.visit(value, place)


def _name_of(node: yaml.Node) -> str:
    """The `name` of an item of a list, if it has one."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == "name" and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    return ""
