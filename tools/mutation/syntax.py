"""Questions about parts of a syntax tree, asked by `finding`."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

LOGGERS: Final = {"log", "_log", "logger", "logging"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def count_names(function: Function) -> Counter[str]:
    """How often a function binds each name; one of an outer scope counts as bound before."""
    found: Counter[str] = Counter()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                found[name] += 1
            case ast.Global(names=outer) | ast.Nonlocal(names=outer):
                found.update(outer)
    return found


def count_attributes(tree: ast.Module) -> Counter[str]:
    """How often a file binds each attribute, those that its classes declare included."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found[node.attr] += 1
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                targets = one.targets if isinstance(one, ast.Assign) else []
                targets = [one.target] if isinstance(one, ast.AnnAssign) and one.value else targets
                found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found


def leaves(target: ast.expr) -> list[ast.expr]:
    """What an assignment binds: `a` and `b[0]` of `a, b[0] = ...`."""
    if isinstance(target, ast.Tuple | ast.List):
        return [leaf for element in target.elts for leaf in leaves(element)]
    return leaves(target.value) if isinstance(target, ast.Starred) else [target]


def last_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements after which nothing else of a block can run."""
    if not body:
        return
    yield body[-1]
    match body[-1]:
        case ast.If(body=yes, orelse=no):
            yield from last_statements(yes)
            yield from last_statements(no)
        case ast.With(body=inner) | ast.AsyncWith(body=inner):
            yield from last_statements(inner)
        case ast.Try(handlers=handlers, orelse=no, finalbody=[]):
            yield from last_statements(no or body[-1].body)
            for handler in handlers:
                yield from last_statements(handler.body)
        case ast.Match(cases=cases):
            for case in cases:
                yield from last_statements(case.body)


def is_log(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=name)):
            return name in LOGGERS
    return False


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def may_be_none(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.BinOp(left=left, right=right):
            return may_be_none(left) or may_be_none(right)
        case ast.Subscript(value=ast.Name(id="Optional")):
            return True
    return annotation is not None and is_none(annotation)


def is_about_imports(test: ast.expr) -> bool:
    """`if TYPE_CHECKING`, and `if __name__ == ...`."""
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
        case ast.Compare(left=ast.Name(id="__name__")):
            return True
    return False


def is_display(node: ast.expr) -> bool:
    """Text, a list or a tuple, written out."""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_text or isinstance(node, ast.JoinedStr | ast.List | ast.Tuple)
