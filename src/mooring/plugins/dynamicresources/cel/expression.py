"""An expression of variables of any type: the rules of custom resources, for example."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from mooring.plugins.dynamicresources.cel.checker import TypeProblem, check_dynamic
from mooring.plugins.dynamicresources.cel.closures import compiled_for
from mooring.plugins.dynamicresources.cel.syntax import Ident, Node, Select, SyntaxProblem, parse
from mooring.plugins.dynamicresources.cel.types import Type
from mooring.plugins.dynamicresources.cel.values import CelError

_MOST: Final = 4096  # expressions that are kept compiled


class ExpressionProblem(Exception):
    """An expression that cannot run, and why."""


class CelExpression:
    """A compiled expression."""

    def __init__(self, tree: Node, type_: Type, run: Callable[..., Any]) -> None:
        self.type: Type = type_
        self.variables: frozenset[str] = frozenset(
            node.name for node in _nodes(tree) if isinstance(node, Ident)
        )
        self.selections: tuple[tuple[str, ...], ...] = tuple(_selections(tree))
        self._run = run

    def evaluate(self, *values: Any) -> Any:
        """The result for values of the variables. Raises CelError."""
        try:
            return self._run(*values)
        except RecursionError:
            raise CelError("operation cancelled: expression is nested too deeply") from None


@lru_cache(maxsize=_MOST)
def compile_expression(
    text: str, names: tuple[str, ...], field_of: Callable[[str], str] = str
) -> CelExpression:
    """Compile an expression; `field_of` tells which field a name selects.

    Raises ExpressionProblem.
    """
    try:
        tree = _with_fields(parse(text), field_of)
        return CelExpression(tree, check_dynamic(tree, names), compiled_for(tree, names))
    except (SyntaxProblem, TypeProblem, CelError) as problem:
        raise ExpressionProblem(str(problem)) from problem


def _with_fields(node: Any, field_of: Callable[[str], str]) -> Any:
    if isinstance(node, tuple):
        return tuple(_with_fields(part, field_of) for part in node)
    if not isinstance(node, Node):
        return node
    parts = {
        name: _with_fields(getattr(node, name), field_of)
        for name in node.__struct_fields__
        if name != "field"
    }
    if isinstance(node, Select):
        parts["field"] = field_of(node.field)
    return msgspec.structs.replace(node, **parts)


def _nodes(node: Any) -> Iterator[Node]:
    if isinstance(node, tuple):
        for part in node:
            yield from _nodes(part)
    elif isinstance(node, Node):
        yield node
        for name in node.__struct_fields__:
            yield from _nodes(getattr(node, name))


def _selections(tree: Node) -> Iterator[tuple[str, ...]]:
    """Fields of variables, such as (`self`, `spec`, `replicas`)."""
    for node in _nodes(tree):
        path: tuple[str, ...] = ()
        while isinstance(node, Select):
            path = (node.field, *path)
            node = node.operand
        if path and isinstance(node, Ident):
            yield (node.name, *path)
