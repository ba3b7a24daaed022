"""Regular expressions as RE2 understands them: no backtracking, so time is linear in the text.

Python's `re` would let one selector hang a scheduler. Its parser is used; patterns run on a small
virtual machine that follows all alternatives at once and prefers them as `re` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

# The parser of the standard library is not public; its tree has been the same since Python 3.11.
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

from mooring.plugins.dynamicresources.cel.values import CelError

_MOST_STEPS: Final = 20_000  # of a program; counted repeats are written out
_MOST_REPEATS: Final = 1000  # as in RE2

# Instructions: ("char", test), ("split", first, second), ("jump", to), ("at", test), ("match",)
_Step = tuple[Any, ...]
_Test = Callable[[str], bool]


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern is found anywhere in a text. Raises CelError."""
    return _search(_program(pattern), text, 0) is not None


def find(text: str, pattern: str) -> str:
    """The first match, or ""."""
    found = _search(_program(pattern), text, 0)
    return text[found[0] : found[1]] if found is not None else ""


def find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    """All matches that do not overlap, at most `count` of them."""
    program, at, last_end = _program(pattern), 0, -1
    found: list[str] = []
    while at <= len(text) and (count < 0 or len(found) < count):
        match = _search(program, text, at)
        if match is None:
            break
        start, end = match
        if end > start or start != last_end:  # no empty match right after a match
            found.append(text[start:end])
        last_end = end
        at = end if end > start else end + 1
    return found


def check(pattern: str) -> None:
    """Raises CelError if it is no pattern."""
    _program(pattern)


@lru_cache(maxsize=256)
def _program(pattern: str) -> tuple[_Step, ...]:
    try:
        flags = re.ASCII
        tree = _parser.parse(pattern.replace(r"\z", r"\Z"), flags)
        steps: list[_Step] = []
        _compile(tree, steps, tree.state.flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise CelError(f"error parsing regexp: {error}") from None
    steps.append(("match",))
    return tuple(steps)


def _compile(tree: Any, steps: list[_Step], flags: int) -> None:
    for op, argument in tree:
        if len(steps) > _MOST_STEPS:
            raise re.error("expression too large")
        if op is c.BRANCH:
            _branch(argument[1], steps, flags)
        elif op is c.SUBPATTERN:
            _, added, removed, inner = argument
            _compile(inner, steps, (flags | added) & ~removed)
        elif op in (c.MAX_REPEAT, c.MIN_REPEAT):
            least, most, inner = argument
            _repeat(op is c.MAX_REPEAT, least, most, inner, steps, flags)
        elif op is c.AT:
            steps.append(("at", _position(argument, flags)))
        else:
            steps.append(("char", _test(op, argument, flags)))


def _branch(branches: list[Any], steps: list[_Step], flags: int) -> None:
    jumps: list[int] = []
    for place, branch in enumerate(branches):
        is_last = place == len(branches) - 1
        split = len(steps)
        if not is_last:
            steps.append(("split",))
        _compile(branch, steps, flags)
        if not is_last:
            jumps.append(len(steps))
            steps.append(("jump",))
            steps[split] = ("split", split + 1, len(steps))
    for jump in jumps:
        steps[jump] = ("jump", len(steps))


def _repeat(
    is_greedy: bool, least: int, most: Any, inner: Any, steps: list[_Step], flags: int
) -> None:
    is_endless = most is c.MAXREPEAT
    if least > _MOST_REPEATS or (not is_endless and most > _MOST_REPEATS):
        raise re.error("invalid repeat count")
    for _ in range(least):
        _compile(inner, steps, flags)
    if is_endless:
        split = len(steps)
        steps.append(("split",))
        _compile(inner, steps, flags)
        steps.append(("jump", split))
        steps[split] = _split(is_greedy, split + 1, len(steps))
        return
    splits: list[int] = []
    for _ in range(int(most) - least):
        splits.append(len(steps))
        steps.append(("split",))
        _compile(inner, steps, flags)
    for split in splits:
        steps[split] = _split(is_greedy, split + 1, len(steps))


def _split(is_greedy: bool, inside: int, beyond: int) -> _Step:
    return ("split", inside, beyond) if is_greedy else ("split", beyond, inside)


def _test(op: Any, argument: Any, flags: int) -> _Test:
    """Whether a character passes a literal, class or dot."""
    if op is c.ANY:
        return (lambda one: True) if flags & re.DOTALL else (lambda one: one != "\n")
    is_negated, members = _members(op, argument)
    if flags & re.IGNORECASE:
        tests = [_member(*item) for member in members for item in _in_both_cases(*member)]
        return lambda one: any(test(it) for it in _cases(one) for test in tests) != is_negated
    tests = [_member(*item) for item in members]
    return lambda one: any(test(one) for test in tests) != is_negated


def _members(op: Any, argument: Any) -> tuple[bool, list[tuple[Any, Any]]]:
    """Whether it is all characters but these, and these."""
    if op in (c.LITERAL, c.NOT_LITERAL):
        return op is c.NOT_LITERAL, [(c.LITERAL, argument)]
    if op is not c.IN:
        raise re.error(f"invalid or unsupported syntax: {op}")
    is_negated = argument[0][0] is c.NEGATE
    return is_negated, argument[1:] if is_negated else argument


def _member(op: Any, argument: Any) -> _Test:
    if op is c.LITERAL:
        return lambda one: ord(one) == argument
    if op is c.RANGE:
        low, high = argument
        return lambda one: low <= ord(one) <= high
    name = str(argument).rpartition("_")[2]
    test: dict[str, _Test] = {"DIGIT": _is_digit, "SPACE": _is_space, "WORD": _is_word}
    if name not in test:
        raise re.error(f"invalid or unsupported class: {argument}")
    wanted = "NOT" not in str(argument)
    return lambda one: test[name](one) == wanted


def _in_both_cases(op: Any, argument: Any) -> list[tuple[Any, Any]]:
    if op is not c.LITERAL:
        return [(op, argument)]
    return [(op, ord(one)) for one in _cases(chr(argument))]


def _cases(one: str) -> set[str]:
    """A character in both cases; a case of more than one character is none."""
    if one == "\u0131":  # the i without a dot: in upper case an I, and yet another letter
        return {one}
    return {it for it in (one, one.lower(), one.upper()) if len(it) == 1}


def _is_digit(one: str) -> bool:
    return "0" <= one <= "9"


def _is_space(one: str) -> bool:
    return one in "\t\n\f\r "


def _is_word(one: str) -> bool:
    return one == "_" or (one.isascii() and one.isalnum())


def _position(argument: Any, flags: int) -> Callable[[str, int], bool]:
    """Whether a place in a text passes `^`, `$` or a word boundary."""
    if argument in (c.AT_BEGINNING, c.AT_END) and flags & re.MULTILINE:
        if argument is c.AT_BEGINNING:
            return lambda text, at: at == 0 or text[at - 1] == "\n"
        return lambda text, at: at == len(text) or text[at] == "\n"
    if argument in (c.AT_BEGINNING, c.AT_BEGINNING_STRING):
        return lambda text, at: at == 0
    if argument in (c.AT_END, c.AT_END_STRING):
        return lambda text, at: at == len(text)
    wanted = argument is c.AT_BOUNDARY
    return lambda text, at: _is_boundary(text, at) == wanted


def _is_boundary(text: str, at: int) -> bool:
    before = at > 0 and _is_word(text[at - 1])
    return before != (at < len(text) and _is_word(text[at]))


def _search(program: tuple[_Step, ...], text: str, begin: int) -> tuple[int, int] | None:
    """The leftmost match from a place on; of several, the one that `re` prefers."""
    threads: list[tuple[int, int]] = []  # places in the program with the start of their match
    found: tuple[int, int] | None = None
    for at in range(begin, len(text) + 1):
        if found is None:
            threads.append((0, at))
        current: list[tuple[int, int]] = []
        seen: set[int] = set()
        for place, start in threads:
            _follow(program, place, start, text, at, current, seen)
        threads = []
        for place, start in current:
            step = program[place]
            if step[0] == "match":
                found = (start, at)
                break  # what comes later is less preferred
            if at < len(text) and step[1](text[at]):
                threads.append((place + 1, start))
        if not threads and found is not None:
            break
    return found


def _follow(
    program: tuple[_Step, ...],
    place: int,
    start: int,
    text: str,
    at: int,
    current: list[tuple[int, int]],
    seen: set[int],
) -> None:
    """Walk to all steps that take a character, the preferred first."""
    stack = [place]
    while stack:
        place = stack.pop()
        if place in seen:
            continue
        seen.add(place)
        step = program[place]
        if step[0] == "jump":
            stack.append(step[1])
        elif step[0] == "split":
            stack += [step[2], step[1]]
        elif step[0] == "at":
            if step[1](text, at):
                stack.append(place + 1)
        else:
            current.append((place, start))
