"""Where a file can be changed, and how."""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tools.mutation import syntax

OPERATORS: Final[dict[type[ast.AST], tuple[str, list[str]]]] = {
    ast.Lt: ("<", ["<=", ">="]),
    ast.LtE: ("<=", ["<", ">"]),
    ast.Gt: (">", [">=", "<="]),
    ast.GtE: (">=", [">", "<"]),
    ast.Eq: ("==", ["!="]),
    ast.NotEq: ("!=", ["=="]),
    ast.Is: ("is", ["is not"]),
    ast.IsNot: (r"is\s+not", ["is"]),
    ast.In: ("in", ["not in"]),
    ast.NotIn: (r"not\s+in", ["in"]),
    ast.Add: (r"\+", ["-"]),
    ast.Sub: ("-", ["+"]),
    ast.Mult: (r"\*", ["//"]),
    ast.FloorDiv: ("//", ["*"]),
    ast.BitAnd: ("&", ["|"]),
    ast.BitOr: (r"\|", ["&"]),
    ast.And: ("and", ["or"]),
    ast.Or: ("or", ["and"]),
}  # how each is found between its operands, and what takes its place
DECLARATIONS: Final = {"__slots__", "__all__"}
LOGGERS: Final = {"log", "_log", "logger", "logging"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one file."""

    file: str
    line: int
    kind: str
    start: int  # bytes from the start of the file
    end: int
    replacement: str
    before: str  # the lines it touches, without comments, on one line
    after: str

    @property
    def id(self) -> str:
        """The same wherever in its file the line moves."""
        return " ## ".join((self.file, self.kind, self.before, self.after))

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.replacement.encode() + source[self.end :]

    def diff(self, source: bytes) -> str:
        before, after = (
            text.decode().splitlines(keepends=True) for text in (source, self.apply(source))
        )
        return "".join(difflib.unified_diff(before, after, self.file, "mutant", n=1))


def find(file: str, source: bytes) -> list[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    finder = _Finder(file, source)
    finder.visit(finder.tree)
    return sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


class _Finder(ast.NodeVisitor):
    """Collects the mutants of one file.

    Declarations are left alone: annotations, decorators, `__slots__`, the keywords of classes. So
    are log calls, assertions, text, and assignments without which a name would not exist at all,
    because any test that reaches the line catches that.
    """

    def __init__(self, file: str, source: bytes) -> None:
        self.tree = ast.parse(source)
        self.found: list[Mutant] = []
        self._file = file
        self._code = _without_comments(source)  # every byte of code in its place
        self._starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]  # of lines
        self._function: syntax.Function | None = None
        self._names: Counter[str] = Counter()  # how often the function binds each
        self._attributes = syntax.count_attributes(self.tree)  # how often the file binds each
        self._last: set[ast.stmt] = set()  # statements after which their function or loop ends

    # Declarations and other parts that are left alone

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: syntax.Function) -> None:
        outer = self._function, self._names
        self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)])
        self._function, self._names = node, syntax.count_names(node)
        self._last.update(syntax.last_statements(node.body))
        self._visit_all(node.body)
        self._function, self._names = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._function = self._function, None
        self._visit_all(node.body)
        self._function = outer

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Call(self, node: ast.Call) -> None:
        if syntax.is_log(node):
            return
        for keyword in node.keywords:
            if self._function and keyword.arg and not isinstance(keyword.value, ast.Constant):
                self._replace(keyword.value, "None", "argument")
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: an assertion
            self.visit(node.value)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    # Statements

    def visit_Expr(self, node: ast.Expr) -> None:
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if isinstance(called, ast.Call) and not syntax.is_log(called):
            self._replace(node, "pass", "statement")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(one, ast.Name) and one.id in DECLARATIONS for one in node.targets):
            self._remove_assignment(node, node.targets)
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._remove_assignment(node, [node.target])
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._remove_assignment(node, [])
        self._swap(node.target, node.op, node.value, "arithmetic")
        self.generic_visit(node)

    def _remove_assignment(self, node: ast.stmt, targets: list[ast.expr]) -> None:
        leaves = [leaf for target in targets for leaf in syntax.leaves(target)]
        if self._function and not (leaves and all(map(self._is_only_binding, leaves))):
            self._replace(node, "pass", "statement")

    def _is_only_binding(self, target: ast.expr) -> bool:
        match target:
            case ast.Name(id=name):
                return self._names[name] == 1
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                in_init = self._function is not None and self._function.name == "__init__"
                return in_init and self._attributes[name] == 1
        return False

    def visit_Continue(self, node: ast.Continue) -> None:
        self._remove_jump(node)

    def visit_Break(self, node: ast.Break) -> None:
        self._remove_jump(node)

    def visit_Return(self, node: ast.Return) -> None:
        self._remove_jump(node)
        says_none = node.value is None or syntax.is_none(node.value)
        if self._function and not says_none and syntax.may_be_none(self._function.returns):
            self._replace(node, "return None", "result")
        self.generic_visit(node)

    def _remove_jump(self, node: ast.stmt) -> None:
        if node not in self._last:
            self._replace(node, "pass", "jump")

    # Conditions

    def visit_If(self, node: ast.If) -> None:
        if syntax.is_about_imports(node.test):
            self._visit_all(node.orelse)
            return
        self._condition(node.test, ["True", "False"])
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test, ["True", "False"])
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._condition(test, ["True", "False"])
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard is not None:
            self._condition(node.guard, ["True", "False"])
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test, ["False"])  # True would only hang
        self._visit_loop(node)

    def visit_For(self, node: ast.For) -> None:
        self._visit_loop(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> None:
        self._visit_loop(node)

    def _visit_loop(self, node: ast.While | ast.For | ast.AsyncFor) -> None:
        last = [one for one in syntax.last_statements(node.body) if isinstance(one, ast.Continue)]
        self._last.update(last)
        self.generic_visit(node)

    def _condition(self, test: ast.expr, instead: list[str]) -> None:
        if isinstance(test, ast.Constant) or (isinstance(test, ast.Call) and syntax.is_log(test)):
            return
        for value in instead:
            self._replace(test, value, "condition")
        match test:
            case ast.Compare(ops=[_]) | ast.UnaryOp(op=ast.Not()):
                pass  # the operator is inverted, or `not` removed
            case _:
                start, end = self._span(test)
                text = self._code[start:end].decode()
                self._edit(start, end, f"not ({text})", "negation")

    # Operators and constants

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self._swap(left, operator, right, "comparison")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap(left, node.op, right, "and/or")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        is_bitwise = isinstance(node.op, ast.BitAnd | ast.BitOr)
        if is_bitwise and self._function is None:
            return  # a union of types
        if not any(map(syntax.is_display, (node.left, node.right))):  # those fail with a TypeError
            self._swap(node.left, node.op, node.right, "arithmetic")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, end = self._span(node)
        if isinstance(node.op, ast.Not):
            operand = self._code[start:end].removeprefix(b"not").lstrip()
            self._edit(start, end - len(operand), "", "negation")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value), "constant")
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1), "constant")
            self._replace(node, str(node.value - 1), "constant")

    # Edits

    def _swap(self, left: ast.AST, operator: ast.AST, right: ast.AST, kind: str) -> None:
        """Other operators for the one between two operands, which has no position of its own."""
        pattern, instead = OPERATORS.get(type(operator), ("", []))
        start, end = self._span(left)[1], self._span(right)[0]
        if found := re.search(pattern.encode(), self._code[start:end]):
            for text in instead:
                self._edit(start + found.start(), start + found.end(), text, kind)

    def _replace(self, node: ast.AST, text: str, kind: str) -> None:
        self._edit(*self._span(node), text, kind)

    def _edit(self, start: int, end: int, text: str, kind: str) -> None:
        first = self._code.rfind(b"\n", 0, start) + 1
        last = self._code.find(b"\n", end)
        last = len(self._code) if last < 0 else last
        before = self._code[first:last]
        after = self._code[first:start] + text.encode() + self._code[end:last]
        line = self._code.count(b"\n", 0, start) + 1
        mutant = Mutant(self._file, line, kind, start, end, text, _plain(before), _plain(after))
        self.found.append(mutant)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset


def _without_comments(source: bytes) -> bytes:
    """The source with spaces for its comments."""
    lines = source.split(b"\n")
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            code = lines[row - 1].decode()[:column].encode()
            lines[row - 1] = code.ljust(len(lines[row - 1]))
    return b"\n".join(lines)


def _plain(text: bytes) -> str:
    """On one line, and without the separator of the fields of an id."""
    return re.sub("##+", "#", " ".join(text.decode().split()))
