"""What an expression reads of a device, if that can be told: devices alike there match alike."""

from __future__ import annotations

from typing import Any

from mooring.plugins.dynamicresources.cel import syntax

Path = tuple[str, ...]
"""A field of a device, or `attributes` or `capacity` with a domain and a name."""

_DEVICE = syntax.Ident("device")


class _Anything(Exception):
    """It may read any part of a device."""


def paths_of(node: syntax.Node) -> tuple[Path, ...] | None:
    """All that an expression reads; None if it may read anything."""
    found: dict[Path, None] = {}
    try:
        _walk(node, found)
    except _Anything:
        return None
    return tuple(found)


def _walk(node: syntax.Node, found: dict[Path, None]) -> None:
    path = _path(node)
    if path is not None:
        found[path] = None
        return
    if node == _DEVICE or isinstance(node, syntax.BindMacro):
        raise _Anything  # a name may stand for a part of a device
    for part in _parts(node):
        _walk(part, found)


def _path(node: syntax.Node) -> Path | None:
    """The path that a node reads, if it is nothing but that."""
    if isinstance(node, syntax.Select) and node.operand == _DEVICE:
        return (node.field,) if node.field in ("driver", "allowMultipleAllocations") else None
    if isinstance(node, syntax.Select):
        return _member(node.operand, node.field)
    if isinstance(node, syntax.Call) and node.target is None and len(node.args) == 2:
        first, second = node.args
        if node.name in ("[]", "[?]") and isinstance(second, syntax.Literal):
            return _member(first, second.value)
        if node.name == "in" and isinstance(first, syntax.Literal):
            return _member(second, first.value)
    return None


def _member(domain: syntax.Node, name: Any) -> Path | None:
    """`device.attributes["domain"]` and a name in it."""
    if not isinstance(domain, syntax.Call) or domain.name != "[]" or not isinstance(name, str):
        return None
    maps, key = domain.args
    if not isinstance(key, syntax.Literal) or not isinstance(key.value, str):
        return None
    if maps not in (syntax.Select(_DEVICE, "attributes"), syntax.Select(_DEVICE, "capacity")):
        return None
    assert isinstance(maps, syntax.Select)
    return (maps.field, key.value, name)


def _parts(node: syntax.Node) -> tuple[syntax.Node, ...]:
    if isinstance(node, syntax.Select):
        return (node.operand,)
    if isinstance(node, syntax.Call):
        return node.args if node.target is None else (node.target, *node.args)
    if isinstance(node, syntax.ListLiteral):
        return node.items
    if isinstance(node, syntax.MapLiteral):
        return tuple(part for entry in node.entries for part in entry)
    if isinstance(node, syntax.Fold):
        return (node.over, *node.args)
    return ()
