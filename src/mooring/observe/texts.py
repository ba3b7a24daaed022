"""Safe texts of a plugin's exceptions, results and reasons.

`str(error)` and even `type(error).__name__` can run code of the plugin, which may raise anything,
hang, or return 20 MB. The texts made here are plain `str`, valid UTF-8 and at most 4 KiB long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from mooring.observe.signals import is_ctrl_c

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

LONGEST: Final = 3_840  # bytes: 4 KiB minus room for a sentence around the text
_END: Final = " ..."
_BETWEEN: Final = 2  # bytes between two reasons of a message
_MOST_SHOWN: Final = 16  # exceptions of a chain, and notes of an exception

# The interpreter's own accessors, which no metaclass or subclass can override.
_NAME: Final[Any] = vars(type)["__name__"]
_QUALNAME: Final[Any] = vars(type)["__qualname__"]
_TRACEBACK: Final[Any] = vars(BaseException)["__traceback__"]
_CAUSE: Final[Any] = vars(BaseException)["__cause__"]
_CONTEXT: Final[Any] = vars(BaseException)["__context__"]
_SUPPRESSED: Final[Any] = vars(BaseException)["__suppress_context__"]
_MESSAGE: Final[Any] = vars(BaseExceptionGroup)["message"]
_MEMBERS: Final[Any] = vars(BaseExceptionGroup)["exceptions"]


class Overrun(BaseException):
    """Raised by a watchdog inside code that hangs; nothing here catches it."""


def cut(text: str, longest: int = LONGEST) -> str:
    """A text cut to so many bytes of UTF-8; a cut text ends in " ...".

    A subclass of str becomes a str, and half a pair of surrogates becomes a `?`.
    """
    plain = str.__getitem__(text, slice(longest + 1))
    if len(plain) <= longest and plain.isascii():
        return plain
    sent = plain.encode(errors="replace")
    if len(sent) <= longest:
        return sent.decode()
    return sent[: longest - len(_END)].decode(errors="ignore") + _END


def text_of(value: object, show: Callable[[object], str] = str) -> str:
    """`str` or `repr` of a value, cut."""
    return _guarded(lambda: cut(show(value)), f"<{type_name(value)} that can't be shown>")


def type_name(value: object) -> str:
    """The name of a value's type, cut."""
    return cut(_NAME.__get__(type(value)))


def named(error: BaseException) -> str:
    """An exception in one line, "ValueError: boom", cut."""
    return cut(f"{type_name(error)}: {text_of(error)}")


def cut_all(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """These texts, cut to 4 KiB together; the same tuple if nothing is cut."""
    left = LONGEST
    for reason in reasons:
        if type(reason) is not str or not reason.isascii():
            break
        left -= len(reason) + _BETWEEN
    else:
        if left >= 0:
            return reasons
    kept: list[str] = []
    left = LONGEST
    for reason in reasons:
        kept.append(cut(reason, max(left, len(_END))))
        left -= len(kept[-1].encode()) + _BETWEEN
        if left <= 0:
            break
    return tuple(kept)


def safe_copy(error: BaseException) -> Exception:
    """An exception that looks the same in a log and runs no code of a plugin.

    It has the name, the text, the traceback and the notes, and copies of the exceptions that led to
    it.
    """
    return _SafeCopies().of(error)


class _SafeCopies:
    """The copies of one chain of exceptions, limited in number."""

    def __init__(self) -> None:
        self._seen: dict[int, Exception] = {}

    def of(self, error: BaseException) -> Exception:
        made = self._made(error)
        self._seen[id(error)] = made
        nothing: list[object] = []
        for note in _guarded(lambda: _first(getattr(error, "__notes__", nothing)), nothing):
            made.add_note(text_of(note))
        made.__traceback__ = _TRACEBACK.__get__(error)
        made.__cause__ = self._linked(_CAUSE.__get__(error))
        if not _SUPPRESSED.__get__(error):
            made.__context__ = self._linked(_CONTEXT.__get__(error))
        made.__suppress_context__ = bool(_SUPPRESSED.__get__(error))
        return made

    def _linked(self, error: BaseException | None) -> Exception | None:
        if error is None or len(self._seen) >= _MOST_SHOWN:
            return None
        return self._seen.get(id(error)) or self.of(error)

    def _made(self, error: BaseException) -> Exception:
        kind = type(error)
        if not issubclass(kind, BaseExceptionGroup):
            return _renamed_exception(kind, Exception, text_of(error))
        self._seen[id(error)] = Exception()  # the group counts while its members are copied
        members = [self._linked(member) for member in _first(_MEMBERS.__get__(error))]
        shown = [member for member in members if member is not None]
        if not shown:
            return _renamed_exception(kind, Exception, text_of(error))
        return _renamed_exception(kind, ExceptionGroup, cut(_MESSAGE.__get__(error)), shown)


def _renamed_exception(kind: type[BaseException], base: type[E], *args: object) -> E:
    """An exception with the name of another class."""
    module = _guarded(lambda: cut(kind.__module__), "?")
    names = {"__module__": module, "__qualname__": cut(_QUALNAME.__get__(kind))}
    made: E = type(cut(_NAME.__get__(kind)), (base,), names)(*args)
    return made


def _first(values: Iterable[T]) -> list[T]:
    return [value for value, _ in zip(values, range(_MOST_SHOWN), strict=False)]


def _guarded(take: Callable[[], T], otherwise: T) -> T:
    """The result of a plugin's code; `otherwise` if it raises anything."""
    try:
        return take()
    except Overrun:
        raise
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        return otherwise
