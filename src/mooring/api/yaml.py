"""The one YAML loader: safe, in C where libyaml is there; times stay text, as they are in JSON."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

_DEEPEST: Final = 1_000  # levels; libyaml's loader recurses in C and would exhaust the stack
_MAX_COPIED: Final = 1_000_000  # nodes and characters that aliases may repeat, in all
_MAX_DIGITS: Final = 4_300  # Python's own limit
_RESOLVERS: Final = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # C or Python
    """The fast loader."""

    yaml_implicit_resolvers = _RESOLVERS


class PythonLoader(yaml.SafeLoader):
    """Slower, with better messages: for configuration files. See `check_size`."""

    yaml_implicit_resolvers = _RESOLVERS


def _readable_int(loader: Any, node: Any) -> int:
    """Refuses a number of so many digits that Python does not print it."""
    if len(node.value) > _MAX_DIGITS:  # 1:1:1 is a number, too, and takes quadratic time
        raise ValueError(f"expected a number of at most {_MAX_DIGITS} digits")
    value: int = loader.construct_yaml_int(node)
    str(value)
    return value


for _class in (_Loader, PythonLoader):
    _class.add_constructor("tag:yaml.org,2002:int", _readable_int)


def load_all(text: str | bytes) -> list[Any]:
    """The data of every document; raises one of `unreadable.NOT_YAML`."""
    check_size(text)
    return list(yaml.load_all(text, Loader=_Loader))


def load(text: str | bytes, *, max_nodes: int | None = None) -> Any:
    """The data of the only document; raises one of `unreadable.NOT_YAML`."""
    check_size(text, max_nodes)
    return yaml.load(text, Loader=_Loader)


def repeated_keys(text: str | bytes) -> Iterator[str]:
    """A sentence, in the words of Go's YAML, about each key that a mapping has more than once."""
    parents: list[_Keys | None] = [None]  # None: a list, or the document
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.MappingStartEvent):
            parents.append(_Keys())
            continue
        if isinstance(event, yaml.SequenceStartEvent):
            parents.append(None)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            parents.pop()
        elif not isinstance(event, yaml.NodeEvent):
            continue
        keys = parents[-1]
        if keys is not None:  # a key, or a value has ended
            yield from keys.take(event)


class _Keys:
    """The keys of a mapping that is being read."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._key: yaml.Event | None = None  # whose value comes next

    def take(self, event: yaml.Event) -> Iterator[str]:
        key, self._key = self._key, event if self._key is None else None
        if isinstance(key, yaml.ScalarEvent):
            if key.value in self._known and key.start_mark is not None:
                yield f'line {key.start_mark.line + 1}: key "{key.value}" already set in map'
            self._known.add(key.value)


class TooLarge(yaml.MarkedYAMLError):
    """Data that is much larger than its text, or has more nodes than allowed."""


def check_size(text: str | bytes, max_nodes: int | None = None) -> None:
    """Raise TooLarge or RecursionError for data that no loader should be given.

    A few hundred bytes of aliases of aliases stand for terabytes. The data is measured event by
    event, before any of it is made; a node is a key or a value. Other mistakes are left to the
    loader.
    """
    has_aliases = "*" in text if isinstance(text, str) else b"*" in text
    if len(text) > min(_DEEPEST, max_nodes or _DEEPEST) or has_aliases:
        try:
            _measure(text, max_nodes)
        except TooLarge:
            raise
        except yaml.YAMLError:
            return


def _measure(text: str | bytes, max_nodes: int | None) -> None:
    nodes = characters = copied = 0
    anchors: dict[str | None, tuple[int, int]] = {}  # nodes and characters of anchored values
    parents: list[tuple[str | None, int, int]] = []  # anchor, nodes and characters before it
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.ScalarEvent):
            nodes += 1
            characters += len(event.value)
            if event.anchor is not None:
                anchors[event.anchor] = 1, len(event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            parents.append((event.anchor, nodes, characters))
            nodes += 1
            if len(parents) > _DEEPEST:
                raise RecursionError
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, nodes_before, characters_before = parents.pop()
            if anchor is not None:
                anchors[anchor] = nodes - nodes_before, characters - characters_before
        elif isinstance(event, yaml.AliasEvent):
            # A value that contains itself is not measured: it can't be written as JSON.
            more_nodes, more_characters = anchors.get(event.anchor, (1, 0))
            nodes += more_nodes
            characters += more_characters
            copied += more_nodes + more_characters
            if copied > _MAX_COPIED:
                raise TooLarge(problem="document contains excessive aliasing")
        if max_nodes is not None and nodes > max_nodes:
            raise TooLarge(problem=f"document has more than {max_nodes} keys and values")
