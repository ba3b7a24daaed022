"""Short forms of plugin references and sets."""

from mooring.config.types import PluginRef, PluginSet


def refs(text: str) -> tuple[PluginRef, ...]:
    """`"A B:3"` as plugin references."""
    pairs = (word.partition(":") for word in text.split())
    return tuple(PluginRef(name, int(weight or 0)) for name, _, weight in pairs)


def chosen(enabled: str = "", disabled: str = "") -> PluginSet:
    return PluginSet(enabled=refs(enabled), disabled=refs(disabled))
