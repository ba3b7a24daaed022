"""The syntax of CEL: text to a tree. Macros become nodes of their own."""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

import msgspec

from mooring.plugins.dynamicresources.cel.values import INT_MAX, UINT_MAX, Uint

LONGEST: Final = 10 * 1024  # bytes of an expression
_DEEPEST: Final = 250  # nested expressions, as in cel-go


class SyntaxProblem(Exception):
    """The text is no expression."""


class Node(msgspec.Struct, frozen=True, gc=False):
    """A part of an expression."""


class Literal(Node, frozen=True):
    """A constant."""

    value: Any


class Ident(Node, frozen=True):
    """A variable."""

    name: str


class Select(Node, frozen=True):
    """`operand.field`, `operand.?field`, or `has(operand.field)`."""

    operand: Node
    field: str
    is_optional: bool = False
    is_test: bool = False


class Call(Node, frozen=True):
    """A function, method or operator; operators are called by their sign."""

    name: str
    target: Node | None
    args: tuple[Node, ...]


class ListLiteral(Node, frozen=True):
    """`[a, ?b]`."""

    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class MapLiteral(Node, frozen=True):
    """`{key: value, ?key: value}`."""

    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


class Fold(Node, frozen=True):
    """A macro over a list or map: all, exists, map, filter, transformList and so on."""

    kind: str
    over: Node
    names: tuple[str, ...]  # of one or two variables
    args: tuple[Node, ...]


class BindMacro(Node, frozen=True):
    """`cel.bind(name, value, body)`, and the macros of optional values and sortBy."""

    kind: str
    name: str
    value: Node
    body: Node


_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\n\r\f]+|//[^\n]*)
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
  | (?P<int>(?:0[xX][0-9a-fA-F]+|\d+)[uU]?)
  | (?P<string>[bB]?[rR]?(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\n\r])*"|'(?:\\.|[^'\\\n\r])*'))
  | (?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
_RAW: Final = re.compile(
    r"""[bB]?[rR](?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n\r]*"|'[^'\n\r]*')""", re.DOTALL
)
_RESERVED: Final = frozenset(
    (
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import",
        "in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void",
        "while",
    )
)  # fmt: skip
_RELATIONS: Final = frozenset(("==", "!=", "<", "<=", ">", ">=", "in"))
_LEVELS: Final = (("+", "-"), ("*", "/", "%"))
_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip
_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|X([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))",
    re.DOTALL,
)

# Macros: the number of arguments after which a method with this name is one.
_ONE_VARIABLE: Final = {
    ("all", 2), ("exists", 2), ("exists_one", 2), ("existsOne", 2), ("map", 2), ("map", 3),
    ("filter", 2),
}  # fmt: skip
_TWO_VARIABLES: Final = {
    ("all", 3), ("exists", 3), ("existsOne", 3), ("transformList", 3), ("transformList", 4),
    ("transformMap", 3), ("transformMap", 4), ("transformMapEntry", 3), ("transformMapEntry", 4),
}  # fmt: skip
_BINDING: Final = {("optMap", 2), ("optFlatMap", 2), ("sortBy", 2)}


def parse(text: str) -> Node:
    """The tree of an expression. Raises SyntaxProblem."""
    if len(text.encode()) > LONGEST:
        raise SyntaxProblem(f"expression code point size exceeds limit: limit {LONGEST}")
    try:
        return _Parser(tokens(text)).whole()
    except RecursionError:
        raise SyntaxProblem("expression recursion limit exceeded") from None


def tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _RAW.match(text, at) or _TOKEN.match(text, at)
        if match is None:
            raise SyntaxProblem(f"token recognition error at: {text[at : at + 10]!r}")
        kind = match.lastgroup or "string"
        if kind != "space":
            found.append((kind, match[0]))
        at = match.end()
    found.append(("end", "<EOF>"))
    return found


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        if self._kind != "end":
            self._refuse()
        return node

    # --- tokens ----------------------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _is(self, *texts: str) -> bool:
        kind, text = self._tokens[self._at]
        return text in texts and kind in ("sign", "ident")

    def _accept(self, *texts: str) -> str:
        """The next token, if it is one of these; otherwise ""."""
        if not self._is(*texts):
            return ""
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._refuse(f", expecting {text!r}")

    def _refuse(self, more: str = "") -> NoReturn:
        raise SyntaxProblem(f"mismatched input {self._tokens[self._at][1]!r}{more}")

    def _name(self) -> str:
        kind, text = self._tokens[self._at]
        if kind != "ident":
            self._refuse(", expecting an identifier")
        self._at += 1
        return text

    # --- operators -------------------------------------------------------------------------------

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SyntaxProblem("expression recursion limit exceeded")
        node = self._logical("||")
        if self._accept("?"):
            then = self._logical("||")
            self._expect(":")
            node = Call("?:", None, (node, then, self._expression()))
        self._depth -= 1
        return node

    def _logical(self, sign: str) -> Node:
        node = self._logical("&&") if sign == "||" else self._relation()
        while self._accept(sign):
            other = self._logical("&&") if sign == "||" else self._relation()
            node = Call(sign, None, (node, other))
        return node

    def _relation(self) -> Node:
        node = self._arithmetic(0)
        while sign := self._accept(*_RELATIONS):
            node = Call(sign, None, (node, self._arithmetic(0)))
        return node

    def _arithmetic(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._arithmetic(level + 1)
        while sign := self._accept(*_LEVELS[level]):
            node = Call(sign, None, (node, self._arithmetic(level + 1)))
        return node

    def _unary(self) -> Node:
        count = 0
        if self._is("!"):
            while self._accept("!"):
                count += 1
            node = self._member()
            return Call("!", None, (node,)) if count % 2 else node
        while self._is("-"):
            following, text = self._tokens[self._at + 1]
            if following in ("int", "float") and count % 2 == 0 and text[-1] not in "uU":
                self._at += 1
                return self._with_members(self._number(negative=True))
            self._at += 1
            count += 1
        node = self._member()
        return Call("-", None, (node,)) if count % 2 else node

    # --- members ---------------------------------------------------------------------------------

    def _member(self) -> Node:
        return self._with_members(self._primary())

    def _with_members(self, node: Node) -> Node:
        while True:
            if self._accept("."):
                is_optional = bool(self._accept("?"))
                name = self._name()
                if is_optional:
                    node = Select(node, name, is_optional=True)
                elif self._accept("("):
                    node = self._method(node, name, self._arguments(")"))
                elif name in _RESERVED and name in ("in", "true", "false", "null"):
                    self._refuse()
                else:
                    node = Select(node, name)
            elif self._accept("["):
                sign = "[?]" if self._accept("?") else "[]"
                node = Call(sign, None, (node, self._expression()))
                self._expect("]")
            elif self._is("{") and isinstance(node, Ident | Select):
                raise SyntaxProblem("undeclared reference to a message type")
            else:
                return node

    def _arguments(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._accept(end):
            found.append(self._expression())
            if not self._accept(","):
                self._expect(end)
                break
        return tuple(found)

    def _method(self, target: Node, name: str, args: tuple[Node, ...]) -> Node:
        key = (name, len(args))
        if key in _ONE_VARIABLE:
            return Fold(name, target, (_variable(args[0]),), args[1:])
        if key in _TWO_VARIABLES:
            names = (_variable(args[0]), _variable(args[1]))
            if names[0] == names[1]:
                raise SyntaxProblem(f"duplicate variable name: {names[0]}")
            return Fold(name, target, names, args[2:])
        if key in _BINDING:
            return BindMacro(name, _variable(args[0]), target, args[1])
        if name == "bind" and len(args) == 3 and target == Ident("cel"):
            return BindMacro("bind", _variable(args[0]), args[1], args[2])
        return Call(name, target, args)

    def _primary(self) -> Node:
        kind, text = self._tokens[self._at]
        if kind in ("int", "float"):
            return self._number(negative=False)
        if kind == "string":
            self._at += 1
            return Literal(string_of(text))
        if self._accept("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._accept("["):
            return self._list()
        if self._accept("{"):
            return self._map()
        constants: dict[str, Any] = {"true": True, "false": False, "null": None}
        if kind == "ident" and text in constants:
            self._at += 1
            return Literal(constants[text])
        self._accept(".")
        name = self._name()
        if name in _RESERVED:
            raise SyntaxProblem(f"reserved identifier: {name}")
        if not self._accept("("):
            return Ident(name)
        args = self._arguments(")")
        if name == "has" and len(args) == 1:
            tested = args[0]
            if not isinstance(tested, Select) or tested.is_test:
                raise SyntaxProblem("invalid argument to has() macro")
            return Select(tested.operand, tested.field, is_optional=False, is_test=True)
        return Call(name, None, args)

    def _list(self) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self._accept("]"):
            if self._accept("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self._accept(","):
                self._expect("]")
                break
        return ListLiteral(tuple(items), frozenset(optional))

    def _map(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: set[int] = set()
        while not self._accept("}"):
            if self._accept("?"):
                optional.add(len(entries))
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
            if not self._accept(","):
                self._expect("}")
                break
        return MapLiteral(tuple(entries), frozenset(optional))

    def _number(self, *, negative: bool) -> Node:
        kind, text = self._tokens[self._at]
        self._at += 1
        sign = -1 if negative else 1
        if kind == "float":
            return Literal(sign * float(text))
        if text[-1] in "uU":
            number = int(text[:-1], 0 if text[:2] in ("0x", "0X") else 10)
            if number > UINT_MAX:
                raise SyntaxProblem("invalid uint literal")
            return Literal(Uint(number))
        number = sign * int(text, 16 if text[:2] in ("0x", "0X") else 10)
        if not -INT_MAX - 1 <= number <= INT_MAX:
            raise SyntaxProblem("invalid int literal")
        return Literal(number)


def _variable(node: Node) -> str:
    if not isinstance(node, Ident):
        raise SyntaxProblem("argument must be a simple name")
    return node.name


def string_of(token: str) -> str | bytes:
    """The value of a string or bytes literal."""
    quote_at = min(place for place in (token.find('"'), token.find("'")) if place >= 0)
    prefix, quoted = token[:quote_at].lower(), token[quote_at:]
    width = 3 if quoted[:3] in ('"""', "'''") and len(quoted) >= 6 else 1
    body = quoted[width:-width]
    is_bytes = "b" in prefix
    if "r" in prefix:
        return body.encode() if is_bytes else body
    if is_bytes:
        return _bytes(body)

    def replace(match: re.Match[str]) -> str:
        hex_digits = match[1] or match[2] or match[3] or match[4]
        number = int(hex_digits, 16) if hex_digits else int(match[5], 8) if match[5] else -1
        if number < 0:
            return _escaped(match[6])
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise SyntaxProblem("invalid unicode code point")
        return chr(number)

    return _ESCAPE.sub(replace, body)


def _bytes(body: str) -> bytes:
    found = bytearray()
    at = 0
    for match in _ESCAPE.finditer(body):
        found += body[at : match.start()].encode()
        at = match.end()
        digits = match[1] or match[2]
        if match[3] or match[4]:
            raise SyntaxProblem("unable to unescape string")
        if digits or match[5]:
            found.append(int(digits, 16) if digits else int(match[5], 8))
        else:
            found += _escaped(match[6]).encode()
    return bytes(found + body[at:].encode())


def _escaped(letter: str) -> str:
    if letter not in _ESCAPES:
        raise SyntaxProblem("unable to unescape string")
    return _ESCAPES[letter]
