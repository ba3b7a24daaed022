import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config.duration import Duration, format_duration, format_nanoseconds

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("0s", 0),
        ("15s", 15 * SECOND),
        ("1m30s", 90 * SECOND),
        ("1.5h", 5400 * SECOND),
        ("100ms", SECOND // 10),
        (".5s", SECOND // 2),
        ("5.s", 5 * SECOND),
        ("+3s", 3 * SECOND),
        ("-2m", -120 * SECOND),
        ("1h1h", 7200 * SECOND),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("0.000000001s", 1),
        ("0.0000000019s", 1),
        ("2540400h10m10.000000000s", (2540400 * 3600 + 610) * SECOND),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_reads_what_go_reads(text: str, nanoseconds: int) -> None:
    assert Duration.parse(text).nanoseconds == nanoseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("--3s", 'time: invalid duration "--3s"'),
        ("15", 'time: missing unit in duration "15"'),
        ("1m30", 'time: missing unit in duration "1m30"'),
        ("3d", 'time: unknown unit "d" in duration "3d"'),
        ("5 s", 'time: unknown unit " s" in duration "5 s"'),
        ("1.2.3s", 'time: missing unit in duration "1.2.3s"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
    ],
)
def test_refuses_what_go_refuses_with_the_same_words(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="time: ") as caught:
        Duration.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (1.5, "1.5s"),
        (0.1, "100ms"),
        (900, "15m0s"),
        (300, "5m0s"),
        (3600, "1h0m0s"),
        (90, "1m30s"),
        (3661.25, "1h1m1.25s"),
        (-90, "-1m30s"),
        (0.0025, "2.5ms"),
        (0.0000011, "1.1µs"),
        (0.000000007, "7ns"),
    ],
)
def test_writes_what_go_writes(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
    assert str(Duration.of(seconds)) == text


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_reads_back_what_it_writes_to_the_nanosecond(nanoseconds: int) -> None:
    assert Duration.parse(format_nanoseconds(nanoseconds)).nanoseconds == nanoseconds


@given(st.integers(), st.integers())
def test_orders_and_hashes_like_its_nanoseconds(one: int, other: int) -> None:
    assert (Duration(one) < Duration(other)) == (one < other)
    assert (Duration(one) <= Duration(other)) == (one <= other)
    assert (Duration(one) == Duration(other)) == (one == other)
    assert hash(Duration(one)) == hash(Duration(one))


def test_is_false_only_when_zero_and_knows_its_seconds() -> None:
    assert not Duration()
    assert Duration(1)
    assert Duration.parse("1m30s").seconds == 90.0
    assert repr(Duration.of(90)) == "Duration.parse('1m30s')"
    assert Duration() != 0
