"""Texts of values whose code may do anything."""

import logging
import traceback
from typing import Any

import pytest

from mooring.observe import log as logs
from mooring.observe import texts


class Mute(Exception):
    """Raises what it is given instead of showing itself."""

    def __str__(self) -> str:
        raise self.args[0]

    __repr__ = __str__


class Meta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__", "__module__"):
            raise SystemExit(f"no {name}")
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=Meta):
    pass


class Odd(BaseException):
    pass


class Slippery(str):
    def __getitem__(self, key: object) -> Any:
        raise SystemExit("no part")

    def isascii(self) -> Any:
        raise SystemExit("no letters")

    __str__ = __len__ = __eq__ = __hash__ = encode = isascii  # type: ignore[assignment]


def raised(error: BaseException, cause: BaseException | None = None) -> BaseException:
    try:
        raise error from cause
    except BaseException as caught:
        return caught


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


# --- one text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("x" * 3840, "x" * 3840),
        ("x" * 3841, "x" * 3836 + " ..."),
        ("ä" * 1920, "ä" * 1920),
        ("ä" * 1921, "ä" * 1918 + " ..."),
        ("half \ud800", "half ?"),
    ],
)
def test_cuts_at_3840_bytes(given: str, expected: str) -> None:
    assert texts.cut(given) == expected


def test_makes_a_plain_str_of_a_subclass_without_asking_it() -> None:
    cut = texts.cut(Slippery("words"))
    assert type(cut) is str
    assert cut == "words"


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(9), Odd("no"), GeneratorExit()])
def test_says_of_what_a_text_could_not_be_taken(error: BaseException) -> None:
    assert texts.text_of(Mute(error)) == "<Mute that can't be shown>"
    assert texts.text_of(Mute(error), repr) == "<Mute that can't be shown>"
    assert texts.named(Mute(error)) == "Mute: <Mute that can't be shown>"


def test_lets_ctrl_c_and_the_watchdog_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        texts.text_of(Mute(KeyboardInterrupt()))
    with pytest.raises(texts.Overrun):
        texts.text_of(Mute(texts.Overrun()))


def test_names_a_type_as_the_interpreter_knows_it() -> None:
    assert texts.named(Nameless("boom")) == "Nameless: boom"
    odd = type("Odd", (Exception,), {})
    odd.__name__ = Slippery("Slip")
    assert texts.named(odd("boom")) == "Slip: boom"


def test_cuts_what_is_said_with_the_name() -> None:
    assert texts.named(ValueError("x" * 20_000_000)) == "ValueError: " + "x" * 3824 + " ..."


# --- reasons -------------------------------------------------------------------------------------


def test_leaves_reasons_alone_that_are_short_and_plain() -> None:
    reasons = ("one", "two")
    assert texts.cut_all(reasons) is reasons


@pytest.mark.parametrize(
    "reasons",
    [
        ("x" * 20_000_000,),
        ("x" * 100,) * 1000,
        ("x",) * 1000_000,
        ("x" * 3839, "y" * 100, "z"),
        ("ä" * 3999,),
        (Slippery("x" * 5000), "y"),
    ],
)
def test_keeps_4_kib_of_all_reasons_together(reasons: tuple[str, ...]) -> None:
    kept = texts.cut_all(reasons)
    assert all(type(reason) is str for reason in kept)
    assert 3800 < len(", ".join(kept).encode()) <= 3850


def test_makes_plain_reasons_of_odd_ones() -> None:
    (kept, other) = texts.cut_all((Slippery("words"), "half \ud800"))
    assert (type(kept), kept, other) == (str, "words", "half ?")


# --- likenesses ----------------------------------------------------------------------------------


def chain() -> BaseException:
    first = raised(KeyError("zone"))
    first.add_note("look at the labels")
    second = raised(ExceptionGroup("some", [ValueError("a"), Mute(ValueError())]), first)
    return raised(Mute(SystemExit(9)), second)


def test_a_likeness_looks_like_the_original() -> None:
    innocent = raised(ExceptionGroup("some", [ValueError("a")]), raised(KeyError("zone")))
    innocent.add_note("look at the labels")
    assert shown(texts.safe_copy(innocent)) == shown(innocent)
    context = raised(ValueError("while"))
    context.__context__ = raised(KeyError("handling"))
    assert shown(texts.safe_copy(context)) == shown(context)
    context.__suppress_context__ = True
    assert shown(texts.safe_copy(context)) == shown(context)


def test_a_likeness_shows_what_can_be_shown_of_a_chain() -> None:
    text = shown(texts.safe_copy(chain()))
    assert "KeyError: 'zone'\nlook at the labels\n" in text
    assert "ExceptionGroup: some (2 sub-exceptions)" in text
    assert text.endswith("Mute: <Mute that can't be shown>\n")


def test_a_likeness_is_bounded() -> None:
    long: BaseException = ValueError("x" * 20_000_000)
    for _ in range(100):
        long = raised(ValueError("x" * 20_000), long)
        long.__notes__ = ["n" * 20_000] * 100
    members = [ValueError("x" * 20_000) for _ in range(1000)]
    long = raised(ExceptionGroup("g" * 20_000, members), long)
    assert 50_000 < len(shown(texts.safe_copy(long))) < 1_500_000


def test_a_likeness_asks_nothing_of_the_class() -> None:
    class Elusive(Nameless):
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(f"no {name}")

    assert shown(texts.safe_copy(raised(Elusive("boom")))).endswith("Elusive: boom\n")


def test_a_likeness_ends_where_a_chain_bites_its_tail() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    safe_copy = texts.safe_copy(first)
    assert safe_copy.__cause__ is not None
    assert safe_copy.__cause__.__cause__ is safe_copy


# --- in a log ------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", [logs.TextLines(), logs.JsonLines()])
def test_a_log_shows_what_can_be_shown(format: logging.Formatter) -> None:
    error = raised(Nameless("x" * 20_000_000), chain())
    info = (type(error), error, error.__traceback__)
    fields = {"value": Mute(SystemExit(9))}
    written = format.format(
        logging.getLogger().makeRecord("x", logging.ERROR, "x.py", 1, "m", (), info, extra=fields)
    )
    assert "Nameless: xxx" in written
    assert "KeyError: 'zone'" in written
    assert "<Mute that can't be shown>" in written
    assert len(written) < 30_000
