import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.selectors import LabelRequirement
from mooring.cache.arrays import IntArray
from mooring.cache.labels import ABSENT, LabelColumn, match

VALUES = ("a", "b", "5", "10", "-3", "")


def column_of(*values: str | None) -> tuple[LabelColumn, IntArray]:
    column = LabelColumn("key")
    codes = np.array([column.intern(value) for value in values], np.int64)
    return column, codes


def test_gives_equal_values_equal_codes_and_none_the_code_zero() -> None:
    column, codes = column_of("a", None, "b", "a", "")
    assert codes.tolist() == [1, ABSENT, 2, 1, 3]
    assert column.values == [None, "a", "b", ""]


def test_knows_the_codes_of_values_it_has_seen() -> None:
    column, _ = column_of("a")
    assert column.code("a") == 1
    assert column.code("b") is None


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        (LabelRequirement("key", "In", frozenset({"a", "never seen"})), [True, False, False]),
        (LabelRequirement("key", "NotIn", frozenset({"a", "never seen"})), [False, True, True]),
        (LabelRequirement("key", "Exists"), [True, True, False]),
        (LabelRequirement("key", "DoesNotExist"), [False, False, True]),
        (LabelRequirement("key", "Gt", bound=4), [False, True, False]),
        (LabelRequirement("key", "Lt", bound=4), [False, False, False]),
    ],
)
def test_matches_every_operator(requirement: LabelRequirement, met: list[bool]) -> None:
    column, codes = column_of("a", "5", None)
    assert match(column, codes, requirement).tolist() == met


@given(
    held=st.lists(st.none() | st.sampled_from(VALUES)),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    wanted=st.frozensets(st.sampled_from(VALUES)),
    bound=st.integers(-5, 12),
)
def test_matches_as_asking_each_node_would(
    held: list[str | None], operator: str, wanted: frozenset[str], bound: int
) -> None:
    requirement = LabelRequirement("key", operator, wanted, bound)
    column, codes = column_of(*held)
    assert match(column, codes, requirement).tolist() == [
        requirement.matches_value(value) for value in held
    ]


def test_asks_about_each_distinct_value_once() -> None:
    column, codes = column_of("a", "a", "b", None, "a")
    asked: list[str | None] = []

    class Recording(LabelRequirement, frozen=True):
        def matches_value(self, value: str | None) -> bool:
            asked.append(value)
            return value == "a"

    found = match(column, codes, Recording("key", "Gt"))
    assert found.tolist() == [True, True, False, False, True]
    assert asked == [None, "a", "b"]
