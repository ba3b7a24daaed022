import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api import INT64_MAX, INT64_MIN, Format, Quantity, parse_quantity
from mooring.api.quantity import _memo

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "quantities.json").read_text(encoding="utf-8")
)["vectors"]

quantities = st.builds(
    Quantity,
    st.one_of(
        st.integers(-(10**12), 10**12), st.integers(-(2**62), 2**62).map(lambda n: n * 10**9)
    ),
    st.sampled_from(Format),
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: repr(v["text"]))
def test_agrees_with_apimachinery(vector: dict[str, Any]) -> None:
    if not vector["ok"]:
        with pytest.raises(ValueError, match=r"expected a quantity|out of range"):
            parse_quantity(vector["text"])
        return
    quantity = parse_quantity(vector["text"])
    assert str(quantity) == vector["string"]
    if vector["milli"] is not None:
        assert quantity.milli == vector["milli"]
    if vector["value"] is not None:
        assert quantity.value == vector["value"]


@pytest.mark.parametrize("text", ["-", "+", ".", "m", "Ki", "E3", "-m"])
def test_refuses_spellings_without_a_digit(text: str) -> None:
    with pytest.raises(ValueError, match="expected a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["1e1001", "1e-1001", "9" * 257])
def test_refuses_numbers_too_long_to_mean_anything(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a quantity|out of range"):
        parse_quantity(text)


def test_shows_the_text_it_could_not_read() -> None:
    with pytest.raises(ValueError, match=r"Ki Mi Gi.*got '1 Gi'"):
        parse_quantity("1 Gi")


@pytest.mark.parametrize("thing", [True, None, [], {}, float("nan"), float("inf")])
def test_refuses_json_that_is_no_number(thing: Any) -> None:
    with pytest.raises(ValueError, match="expected a quantity"):
        parse_quantity(thing)


def test_reads_plain_numbers() -> None:
    assert parse_quantity(2) == parse_quantity("2")
    assert parse_quantity(0.1) == parse_quantity("100m")
    assert parse_quantity(1e-7) == parse_quantity("100n")


def test_saturates_at_int64_instead_of_wrapping() -> None:
    assert parse_quantity("9E").milli == INT64_MAX
    assert parse_quantity("1e30").value == INT64_MAX
    assert parse_quantity("-1e30").value == INT64_MIN


def test_remembers_spellings_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mooring.api.quantity._REMEMBERED", 2)
    _memo.clear()
    first = parse_quantity("1")
    assert parse_quantity("1") is first
    parse_quantity("2")
    parse_quantity("3")
    assert len(_memo) == 1


def test_ignores_the_format_when_comparing() -> None:
    assert parse_quantity("1Ki") == parse_quantity("1024") == parse_quantity("1.024k")
    assert hash(parse_quantity("1Ki")) == hash(parse_quantity("1024"))
    assert parse_quantity("1k") < parse_quantity("1Ki") <= parse_quantity("1Ki")
    assert parse_quantity("1Ki") != 1024


def test_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="read-only"):
        parse_quantity("1").nanos = 2
    with pytest.raises(AttributeError, match="read-only"):
        del parse_quantity("1").nanos


def test_takes_the_format_of_its_first_non_zero_part() -> None:
    assert str(Quantity.ZERO + parse_quantity("1Mi") + parse_quantity("1M")) == "2048576"
    assert str(Quantity.ZERO + parse_quantity("1Mi") + parse_quantity("1Ki")) == "1025Ki"
    assert not Quantity.ZERO


@given(quantities)
def test_round_trips_through_its_text(quantity: Quantity) -> None:
    assert parse_quantity(str(quantity)) == quantity


@given(quantities)
def test_survives_pickle_and_copy(quantity: Quantity) -> None:
    for twin in (pickle.loads(pickle.dumps(quantity)), copy.deepcopy(quantity)):
        assert (twin.nanos, twin.format) == (quantity.nanos, quantity.format)


@given(quantities, quantities)
def test_adds_and_subtracts_exactly(a: Quantity, b: Quantity) -> None:
    assert (a + b).nanos == a.nanos + b.nanos
    assert (a + b) - b == a
    assert -a == Quantity.ZERO - a
    assert (a < b) == (a.nanos < b.nanos)
