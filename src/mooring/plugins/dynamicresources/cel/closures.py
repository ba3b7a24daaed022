"""Expressions as Python closures over the values of their variables.

A closure takes a frame: the device, then the variables of the macros around it, innermost last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from mooring.plugins.dynamicresources.cel import regex
from mooring.plugins.dynamicresources.cel.library import FUNCTIONS, runner, sorted_by
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
from mooring.plugins.dynamicresources.cel.values import (
    NONE,
    CelError,
    Domains,
    Optional,
    TypeValue,
    equal,
    find,
    has_key,
    kind_of,
    look_up,
    no_such_key,
    no_such_overload,
)

Frame = list[Any]
Closure = Callable[[Frame], Any]
Scope = dict[str, int]  # the places of variables in a frame

MOST_STEPS: Final = 1_000_000
"""About the cost that Kubernetes allows: parts of an expression that macros evaluate."""
_STEPS: Final = 1  # the place in a frame that counts them; the device is before it
_FIXED: Final = 2


class Budget:
    """Counts what the loops of one evaluation cost."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_STEPS

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise CelError("operation cancelled: actual cost limit exceeded")


def compiled(node: Node) -> Callable[[Any], Any]:
    """A function of the device. It raises CelError."""
    closure = _closure(node, {"device": 0})
    return lambda device: closure([device, Budget()])


def compiled_for(node: Node, names: Sequence[str]) -> Callable[..., Any]:
    """A function of variables with these names. It raises CelError."""
    scope = {name: place and place + 1 for place, name in enumerate(names)}
    closure = _closure(node, scope)
    return lambda first, *others: closure([first, Budget(), *others])


def _closure(node: Node, scope: Scope) -> Closure:
    if isinstance(node, Literal):
        value = node.value
        return lambda frame: value
    if isinstance(node, Ident):
        if node.name not in scope:
            named = TypeValue(node.name)
            return lambda frame: named
        place = scope[node.name]
        return lambda frame: frame[place]
    if isinstance(node, Select):
        return _select(node, scope)
    if isinstance(node, Call):
        return _call(node, scope)
    if isinstance(node, ListLiteral):
        return _list(node, scope)
    if isinstance(node, MapLiteral):
        return _map(node, scope)
    if isinstance(node, Fold):
        return _fold(node, scope)
    assert isinstance(node, BindMacro)
    return _bind(node, scope)


# --- members and calls ----------------------------------------------------------------------------


def _select(node: Select, scope: Scope) -> Closure:
    operand, field = _closure(node.operand, scope), node.field

    def select(frame: Frame) -> Any:
        value = operand(frame)
        kind = type(value)
        if kind is dict:
            try:
                return value[field]
            except KeyError:
                raise no_such_key(field) from None
        if kind is Domains:
            return value[field]
        if kind is Optional:
            return find(value, field)
        return look_up(value, field)

    def is_there(frame: Frame) -> Any:
        value = operand(frame)
        if type(value) is Optional:
            if not value.is_present:
                return False
            value = value.value
        if isinstance(value, dict):
            return type(value) is Domains or field in value
        if isinstance(value, list | tuple):
            look_up(value, field)  # which is an error
        return False

    def select_optional(frame: Frame) -> Any:
        value = operand(frame)
        if not isinstance(value, dict | Optional):
            raise no_such_overload()
        return find(value, field)

    if node.is_test:
        return is_there
    return select_optional if node.is_optional else select


def _call(node: Call, scope: Scope) -> Closure:
    name, target = node.name, node.target
    if target is not None and isinstance(target, Ident):
        qualified = f"{target.name}.{name}"
        if qualified in FUNCTIONS:
            name, target = qualified, None
    parts = node.args if target is None else (target, *node.args)
    args = [_closure(part, scope) for part in parts]
    if name in ("&&", "||"):
        return _logical(name == "||", *args)
    if name == "?:":
        return _ternary(*args)
    if name == "==":
        return _binary(equal, *args)
    if name == "[]":
        return _index(*args)
    if name == "matches" and isinstance(node.args[-1], Literal):
        regex.check(str(node.args[-1].value))
    run = runner(name, target is not None, len(args))
    if len(args) == 1:
        (only,) = args
        return lambda frame: run(only(frame))
    if len(args) == 2:
        return _binary(run, *args)
    return lambda frame: run(*[arg(frame) for arg in args])


def _binary(run: Callable[[Any, Any], Any], first: Closure, second: Closure) -> Closure:
    return lambda frame: run(first(frame), second(frame))


def _index(operand: Closure, key: Closure) -> Closure:
    def index(frame: Frame) -> Any:
        value = operand(frame)
        return find(value, key(frame)) if type(value) is Optional else look_up(value, key(frame))

    return index


def _logical(decides: bool, first: Closure, second: Closure) -> Closure:
    """`||` if true decides, `&&` if false does: also where the other side fails."""

    def logical(frame: Frame) -> Any:
        problem: CelError
        try:
            value = first(frame)
        except CelError as error:
            problem = error
        else:
            if value is decides:
                return decides
            if type(value) is bool:
                return _passes(second, frame)
            problem = no_such_overload()
        if second(frame) is decides:
            return decides
        raise problem

    return logical


def _ternary(condition: Closure, then: Closure, otherwise: Closure) -> Closure:
    def ternary(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is False:
            return otherwise(frame)
        raise no_such_overload()

    return ternary


# --- lists and maps -------------------------------------------------------------------------------


def _list(node: ListLiteral, scope: Scope) -> Closure:
    items = [_closure(item, scope) for item in node.items]
    if not node.optional:
        return lambda frame: [item(frame) for item in items]

    def make(frame: Frame) -> list[Any]:
        found: list[Any] = []
        for place, item in enumerate(items):
            value = item(frame)
            if place not in node.optional:
                found.append(value)
            elif _as_optional(value).is_present:
                found.append(value.value)
        return found

    return make


def _map(node: MapLiteral, scope: Scope) -> Closure:
    entries = [(_closure(key, scope), _closure(value, scope)) for key, value in node.entries]

    def make(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for place, (key_of, value_of) in enumerate(entries):
            key, value = key_of(frame), value_of(frame)
            if place in node.optional:
                if not _as_optional(value).is_present:
                    continue
                value = value.value
            if not isinstance(key, str | int | float):
                raise CelError("unsupported key type")
            found[key] = value
        return found

    return make


def _as_optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise CelError("cannot initialize optional entry from a value that is not optional")
    return value


# --- macros ---------------------------------------------------------------------------------------


def _inner(scope: Scope, *names: str) -> Scope:
    """A scope with further variables, in the next places of a frame."""
    free = max([_STEPS, *scope.values()]) + 1
    return {**scope, **{name: free + place for place, name in enumerate(names)}}


def _bind(node: BindMacro, scope: Scope) -> Closure:
    value_of = _closure(node.value, scope)
    body = _closure(node.body, _inner(scope, node.name))
    weight = _weight(node.body)

    def bind(frame: Frame) -> Any:
        return body([*frame, value_of(frame)])

    def map_optional(frame: Frame) -> Any:
        value = _as_optional(value_of(frame))
        if not value.is_present:
            return NONE
        made = body([*frame, value.value])
        return Optional(made, True) if node.kind == "optMap" else made

    def sort(frame: Frame) -> Any:
        items = value_of(frame)
        if not isinstance(items, list | tuple):
            raise no_such_overload()
        frame[_STEPS].spend(weight * len(items))
        return sorted_by(list(items), [body([*frame, item]) for item in items])

    if node.kind == "bind":
        return bind
    return sort if node.kind == "sortBy" else map_optional


def _fold(node: Fold, scope: Scope) -> Closure:
    over = _closure(node.over, scope)
    inner = _inner(scope, *node.names)
    args = [_closure(arg, inner) for arg in node.args]
    weight = sum(map(_weight, node.args))
    has_two = len(node.names) == 2

    def frames(frame: Frame) -> Iterator[Frame]:
        """A frame for each item, with its variables."""
        value = over(frame)
        budget: Budget = frame[_STEPS]
        if isinstance(value, dict):
            pairs: Any = value.items() if has_two else ((key,) for key in value)
        elif isinstance(value, list | tuple):
            pairs = enumerate(value) if has_two else ((item,) for item in value)
        else:
            name = kind_of(value).removesuffix("_type").capitalize()
            raise CelError(f"got 'types.{name}', expected iterable type")
        for pair in pairs:
            budget.spend(weight)
            yield [*frame, *pair]

    return _FOLDS[node.kind](frames, *args)


Frames = Callable[[Frame], Iterator[Frame]]


def _quantified(decides: bool) -> Callable[[Frames, Closure], Closure]:
    """`exists` if true decides, `all` if false does; errors count only if nothing decides."""

    def make(frames: Frames, test: Closure) -> Closure:
        def quantified(frame: Frame) -> Any:
            problem: CelError | None = None
            for each in frames(frame):
                try:
                    value = test(each)
                except CelError as error:
                    problem = problem or error
                    continue
                if value is decides:
                    return decides
                if type(value) is not bool:
                    problem = problem or no_such_overload()
            if problem is not None:
                raise problem
            return not decides

        return quantified

    return make


def _passes(test: Closure, frame: Frame) -> bool:
    value = test(frame)
    if value is True:
        return True
    if value is False:
        return False
    raise no_such_overload()


def _exists_one(frames: Frames, test: Closure) -> Closure:
    return lambda frame: sum(_passes(test, each) for each in frames(frame)) == 1


def _filter(frames: Frames, test: Closure) -> Closure:
    # With one variable, it is the last of a frame.
    return lambda frame: [each[-1] for each in frames(frame) if _passes(test, each)]


def _mapped(frames: Frames, first: Closure, second: Closure | None = None) -> Closure:
    if second is None:
        return lambda frame: [first(each) for each in frames(frame)]
    return lambda frame: [second(each) for each in frames(frame) if _passes(first, each)]


def _transform_map(frames: Frames, first: Closure, second: Closure | None = None) -> Closure:
    if second is None:
        return lambda frame: {each[-2]: first(each) for each in frames(frame)}
    return lambda frame: {each[-2]: second(each) for each in frames(frame) if _passes(first, each)}


def _transform_entry(frames: Frames, first: Closure, second: Closure | None = None) -> Closure:
    def transform(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for each in frames(frame):
            if second is not None and not _passes(first, each):
                continue
            for key, value in (second or first)(each).items():
                if has_key(found, key):
                    raise CelError(f"insert failed: key {key} already exists")
                found[key] = value
        return found

    return transform


_FOLDS: Final[dict[str, Callable[..., Closure]]] = {
    "all": _quantified(False),
    "exists": _quantified(True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _mapped,
    "transformList": _mapped,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
}


def _weight(node: Node) -> int:
    """About what one evaluation costs: the number of parts that do something."""
    if isinstance(node, Literal | Ident):
        return 1
    parts: list[Node] = []
    if isinstance(node, Select):
        parts = [node.operand]
    elif isinstance(node, Call):
        parts = [*node.args, *([node.target] if node.target is not None else [])]
    elif isinstance(node, ListLiteral):
        parts = list(node.items)
    elif isinstance(node, MapLiteral):
        parts = [part for entry in node.entries for part in entry]
    elif isinstance(node, Fold):
        parts = [node.over]  # its arguments are counted when it runs
    elif isinstance(node, BindMacro):
        parts = [node.value, node.body]
    return 1 + sum(map(_weight, parts))
