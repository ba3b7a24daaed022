import numpy as np
import pytest

from mooring.cache.columns import Block, Column, wrapped


def column_of(*numbers: int) -> Column[np.int64]:
    column = Column(np.int64)
    for row, number in enumerate(numbers):
        column.append_zeros()
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
        column.append_zeros()
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
    column.append_zeros()
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


def block_of(*lines: list[int]) -> Block:
    block = Block(len(lines))
    for row in range(len(lines[0])):
        block.append_zeros()
        for column, numbers in zip(block.columns, lines, strict=True):
            column.cells[row] = numbers[row]
    return block


def test_a_block_is_its_columns_also_after_it_grew() -> None:
    lines = [list(range(100)), list(range(1000, 1100))]
    block = block_of(*lines)
    assert block.view.tolist() == lines
    assert [column.view.tolist() for column in block.columns] == lines
    block.columns[1].data[3] = 7
    assert block.view[1, 3] == 7
    assert [column.line for column in block.columns] == [0, 1]


def test_a_block_gives_some_rows_of_all_columns() -> None:
    block = block_of([1, 2, 3, 4], [5, 6, 7, 8])
    taken = block.take(np.array([1, 3]))
    block.columns[0].data[1] = 9
    assert taken.tolist() == [[2, 4], [6, 8]]
    for view in (taken, block.view):
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0] = 2


def test_a_block_fills_a_hole_with_the_last_row_and_adds_zeros() -> None:
    block = block_of([1, 2, 3], [4, 5, 6])
    block.remove(0)
    assert block.view.tolist() == [[3, 2], [6, 5]]
    block.append_zeros()
    assert block.view.tolist() == [[3, 2, 0], [6, 5, 0]]


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
