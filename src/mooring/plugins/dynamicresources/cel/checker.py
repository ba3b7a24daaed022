"""The type check of an expression: refused before it ever runs, or the type of its result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from mooring.plugins.dynamicresources.cel.library import FUNCTIONS, INCLUDES
from mooring.plugins.dynamicresources.cel.syntax import (
    BindMacro,
    Call,
    Fold,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)
from mooring.plugins.dynamicresources.cel.types import (
    ANY,
    BOOL,
    DYN,
    ERROR,
    INT,
    OPTIONAL,
    STRING,
    Bindings,
    Type,
    is_dynamic,
    list_of,
    map_of,
    most_general,
    optional_of,
    text_of,
)
from mooring.plugins.dynamicresources.cel.values import kind_of

QUANTITY: Final[Type] = ("opaque", "kubernetes.Quantity")
DEVICE: Final[Type] = ("struct", "kubernetes.DRADevice")
_FIELDS: Final[Mapping[str, Type]] = {
    "driver": STRING,
    "allowMultipleAllocations": BOOL,
    "attributes": map_of(STRING, map_of(STRING, ANY)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
}
_TYPE_NAMES: Final = (
    "bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "dyn",
)  # fmt: skip


class TypeProblem(Exception):
    """The types of an expression do not fit together."""


def check(node: Node, *, has_lists: bool = False) -> Type:
    """The type of the result; attributes may have several values. Raises TypeProblem."""
    checker = _Checker(has_lists)
    return checker.bindings.resolved(checker.type_of(node, {"device": DEVICE}), to_dyn=True)


def check_dynamic(node: Node, names: Iterable[str]) -> Type:
    """The same for variables of any type."""
    checker = _Checker(has_lists=False)
    scope = dict.fromkeys(names, DYN)
    return checker.bindings.resolved(checker.type_of(node, scope), to_dyn=True)


Scope = Mapping[str, Type]


class _Checker:
    def __init__(self, has_lists: bool) -> None:
        self.bindings = Bindings()
        self._has_lists = has_lists
        self._may_mix = False  # types in a list or map

    def type_of(self, node: Node, scope: Scope) -> Type:
        if isinstance(node, Literal):
            return (kind_of(node.value),)
        if isinstance(node, Ident):
            return self._ident(node.name, scope)
        if isinstance(node, Select):
            return self._select(node, scope)
        if isinstance(node, Call):
            return self._call(node, scope)
        if isinstance(node, ListLiteral):
            return self._list(node, scope)
        if isinstance(node, MapLiteral):
            return self._map(node, scope)
        if isinstance(node, Fold):
            return self._fold(node, scope)
        assert isinstance(node, BindMacro)
        return self._bind(node, scope)

    def _resolved(self, node: Node, scope: Scope) -> Type:
        return self.bindings.resolved(self.type_of(node, scope))

    def _expect(self, given: Type, wanted: Type) -> None:
        if not self.bindings.assign(given, wanted):
            found = text_of(self.bindings.resolved(given))
            raise TypeProblem(f"expected type '{text_of(wanted)}' but found '{found}'")

    def _ident(self, name: str, scope: Scope) -> Type:
        if name in scope:
            return scope[name]
        if name in _TYPE_NAMES:
            return ("type", (name,))
        raise TypeProblem(f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select, scope: Scope) -> Type:
        operand = self._resolved(node.operand, scope)
        is_optional = node.is_optional or operand[0] == OPTIONAL
        target = operand[1] if operand[0] == OPTIONAL else operand
        if target[0] == "map":
            found = target[2]
        elif target == DEVICE:
            if node.field not in _FIELDS:
                raise TypeProblem(f"undefined field '{node.field}'")
            found = _FIELDS[node.field]
            if self._has_lists and node.field == "attributes":
                found = map_of(STRING, map_of(STRING, DYN))
        elif is_dynamic(target) or target[0] == "param":
            self.bindings.assign(DYN, target)
            found = DYN
        else:
            raise TypeProblem(f"type '{text_of(target)}' does not support field selection")
        if node.is_test:
            return BOOL
        return optional_of(found) if is_optional else found

    def _call(self, node: Call, scope: Scope) -> Type:
        name, target = node.name, node.target
        if target is not None:
            qualified = _qualified(target, node.name)
            if qualified in FUNCTIONS:
                name, target = qualified, None
        may_mix, self._may_mix = self._may_mix, self._may_mix or name == "format"
        args = tuple(self.type_of(arg, scope) for arg in node.args)
        self._may_mix = may_mix
        if name in ("&&", "||"):
            for given in args:
                self._expect(given, BOOL)
            return BOOL
        if target is not None:
            args = (self.type_of(target, scope), *args)
        overloads = FUNCTIONS.get(name)
        if overloads is None or (name == INCLUDES and not self._has_lists):
            raise TypeProblem(f"undeclared reference to '{name}' (in container '')")
        result: Type | None = None
        for overload in overloads:
            if overload.is_method != (target is not None):
                continue
            given, *wanted = self.bindings.renamed((overload.result, *overload.args))
            if self.bindings.assign_all(args, tuple(wanted)):
                found = self.bindings.resolved(given)
                if result is None:
                    result = found
                elif not is_dynamic(result) and found != result:
                    result = DYN
        if result is None:
            listed = ", ".join(text_of(self.bindings.resolved(one, to_dyn=True)) for one in args)
            raise TypeProblem(f"found no matching overload for '{name}' applied to '({listed})'")
        return result

    def _joined(self, known: Type | None, given: Type) -> Type:
        if known is None:
            return given
        if not self.bindings.assign(known, given):
            if self._may_mix:
                return DYN
            raise TypeProblem(f"expected type '{text_of(known)}' but found '{text_of(given)}'")
        return most_general(known, given)

    def _unwrapped(self, given: Type) -> Type:
        if given[0] == OPTIONAL:
            inner: Type = given[1]
            return inner
        if is_dynamic(given):
            return given
        raise TypeProblem(
            f"expected type '{text_of(optional_of(given))}' but found '{text_of(given)}'"
        )

    def _list(self, node: ListLiteral, scope: Scope) -> Type:
        found: Type | None = None
        for place, item in enumerate(node.items):
            given = self.type_of(item, scope)
            found = self._joined(found, self._unwrapped(given) if place in node.optional else given)
        return list_of(found if found is not None else self.bindings.fresh())

    def _map(self, node: MapLiteral, scope: Scope) -> Type:
        key: Type | None = None
        value: Type | None = None
        for place, entry in enumerate(node.entries):
            key = self._joined(key, self.type_of(entry[0], scope))
            given = self.type_of(entry[1], scope)
            value = self._joined(value, self._unwrapped(given) if place in node.optional else given)
        if key is None or value is None:
            return map_of(self.bindings.fresh(), self.bindings.fresh())
        return map_of(key, value)

    def _fold(self, node: Fold, scope: Scope) -> Type:
        over = self._resolved(node.over, scope)
        if over[0] == "list":
            first, second = (INT, over[1]) if len(node.names) == 2 else (over[1], ERROR)
        elif over[0] == "map":
            first, second = over[1], over[2]
        elif over[0] in ("dyn", "error", "param"):
            self.bindings.assign(DYN, over)
            first = second = DYN
        else:
            raise TypeProblem(
                f"expression of type '{text_of(over)}' cannot be range of a comprehension"
                " (must be list, map, or dynamic)"
            )
        inner = {**scope, **dict(zip(node.names, (first, second), strict=False))}
        types = [self.type_of(arg, inner) for arg in node.args]
        if node.kind in ("all", "exists", "exists_one", "existsOne", "filter") or len(types) == 2:
            self._expect(types[0], BOOL)
        made = types[-1]
        if node.kind in ("map", "transformList"):
            return list_of(made)
        if node.kind == "filter":
            return list_of(first)
        if node.kind == "transformMap":
            return map_of(first, made)
        if node.kind == "transformMapEntry":
            self._expect(made, map_of(DYN, DYN))
            return made
        return BOOL

    def _bind(self, node: BindMacro, scope: Scope) -> Type:
        value = self._resolved(node.value, scope)
        if node.kind == "bind":
            return self.type_of(node.body, {**scope, node.name: value})
        if node.kind == "sortBy":
            if value[0] != "list" and not is_dynamic(value):
                raise TypeProblem("found no matching overload for 'sortBy'")
            item = value[1] if value[0] == "list" else DYN
            self.type_of(node.body, {**scope, node.name: item})
            return value
        if value[0] != OPTIONAL and not is_dynamic(value):
            raise TypeProblem(f"found no matching overload for '{node.kind}'")
        inner = value[1] if value[0] == OPTIONAL else DYN
        made = self.type_of(node.body, {**scope, node.name: inner})
        if node.kind == "optMap":
            return optional_of(made)
        self._expect(made, optional_of(self.bindings.fresh()))
        return made


def _qualified(target: Node, name: str) -> str:
    """`a.b` of a method call that may be a function with a namespace."""
    return f"{target.name}.{name}" if isinstance(target, Ident) else ""
