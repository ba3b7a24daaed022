import numpy as np
import pytest

from mooring.cache.columns import Column, wrapped


def column_of(*numbers: int) -> Column[np.int64]:
    column = Column(np.int64)
    for row, number in enumerate(numbers):
        column.append_zero()
        column.data[row] = number
    return column


def test_starts_with_as_many_zeros_as_asked_for() -> None:
    assert Column(np.int64).view.tolist() == []
    assert Column(np.int64, 3).view.tolist() == [0, 0, 0]
    assert Column(np.bool_, 100).view.tolist() == [False] * 100


def test_keeps_its_values_when_it_outgrows_its_array() -> None:
    column = column_of(*range(1000))
    assert len(column) == 1000
    assert column.view.tolist() == list(range(1000))


def test_its_cells_are_its_data_also_after_it_grew() -> None:
    column = column_of(*range(10))
    for row in range(10, 100):
        column.append_zero()
        column.cells[row] = column.cells[row - 1] + 1
    column.data[0] = 7
    assert column.cells[0] == 7
    assert column.view.tolist() == [7, *range(1, 100)]


def test_fills_a_hole_with_the_last_row() -> None:
    column = column_of(1, 2, 3, 4)
    column.remove(1)
    assert column.view.tolist() == [1, 4, 3]
    column.remove(2)
    assert column.view.tolist() == [1, 4]


def test_adds_a_zero_where_a_removed_row_was() -> None:
    column = column_of(1, 2)
    column.remove(0)
    column.append_zero()
    assert column.view.tolist() == [2, 0]


def test_shows_later_writes_through_the_same_view() -> None:
    column = column_of(1, 2)
    view = column.view
    column.data[0] = 7
    assert view.tolist() == [7, 2]
    assert column.view is view


def test_lets_no_reader_write() -> None:
    with pytest.raises(ValueError, match="read-only"):
        column_of(1).view[0] = 2


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (0, 0),
        (2**63 - 1, 2**63 - 1),
        (2**63, -(2**63)),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, 2**63 - 1),
        (3 * 2**64 + 5, 5),
    ],
)
def test_wraps_as_int64_does(value: int, left: int) -> None:
    assert wrapped(value) == left
