"""The one YAML loader: safe, in C where libyaml is there; times stay text, as they are in JSON."""

from typing import Any, Final

import yaml

_DEEPEST: Final = 1_000  # levels; libyaml's loader recurses in C and would exhaust the stack
_RESOLVERS: Final = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # C or Python
    """The fast loader."""

    yaml_implicit_resolvers = _RESOLVERS


class PythonLoader(yaml.SafeLoader):
    """Slower, with better messages: for configuration files."""

    yaml_implicit_resolvers = _RESOLVERS


def _readable_int(loader: Any, node: Any) -> int:
    """Refuses a number of so many digits that Python does not print it."""
    value: int = loader.construct_yaml_int(node)
    str(value)
    return value


for _class in (_Loader, PythonLoader):
    _class.add_constructor("tag:yaml.org,2002:int", _readable_int)


def load_all(text: str | bytes) -> list[Any]:
    """The data of every document; raises one of `unreadable.NOT_YAML`."""
    _check_depth(text)
    return list(yaml.load_all(text, Loader=_Loader))


def load(text: str | bytes) -> Any:
    """The data of the only document; raises one of `unreadable.NOT_YAML`."""
    _check_depth(text)
    return yaml.load(text, Loader=_Loader)


def _check_depth(text: str | bytes) -> None:
    if len(text) <= _DEEPEST:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise RecursionError
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
