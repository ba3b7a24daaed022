from hypothesis import given
from hypothesis import strategies as st

from mooring.queue._heap import NamedHeap


def heap_of(**numbers: int) -> NamedHeap[int]:
    heap: NamedHeap[int] = NamedHeap(lambda number: number)
    for name, number in numbers.items():
        heap.put(name, number)
    return heap


def drain(heap: NamedHeap[int]) -> list[int]:
    taken = []
    while (item := heap.pop()) is not None:
        taken.append(item)
    return taken


def test_gives_the_smallest_first() -> None:
    assert drain(heap_of(c=3, a=1, b=2)) == [1, 2, 3]


def test_is_empty_handed_when_it_is_empty() -> None:
    heap = heap_of()
    assert heap.peek() is None
    assert heap.pop() is None
    assert heap.remove("a") is None


def test_keeps_equals_in_order_of_arrival_even_when_one_is_replaced() -> None:
    heap: NamedHeap[str] = NamedHeap(lambda item: 0)
    for name in ("a", "b", "c"):
        heap.put(name, name)
    heap.put("a", "A")
    assert [heap.pop() for _ in range(3)] == ["A", "b", "c"]


def test_moves_a_replaced_item_to_its_new_place() -> None:
    heap = heap_of(a=1, b=2, c=3)
    heap.put("a", 9)
    assert heap.get("a") == 9
    assert len(heap) == 3
    assert drain(heap) == [2, 3, 9]


def test_forgets_a_removed_item() -> None:
    heap = heap_of(a=1, b=2)
    assert heap.remove("a") == 1
    assert "a" not in heap
    assert heap.peek() == 2
    assert list(heap) == [2]


def test_does_not_grow_with_the_number_of_replacements() -> None:
    heap = heap_of(a=1, b=2)
    for number in range(10_000):
        heap.put("a", number)
    assert len(heap._heap) < 100


NAMES = st.sampled_from("abcdefgh")
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, st.integers(0, 5)),
    st.tuples(st.just("remove"), NAMES, st.just(0)),
    st.tuples(st.just("pop"), st.just(""), st.just(0)),
)


@given(st.lists(STEPS))
def test_agrees_with_a_sorted_dict(steps: list[tuple[str, str, int]]) -> None:
    heap: NamedHeap[tuple[str, int]] = NamedHeap(lambda item: item[1])
    model: dict[str, tuple[str, int]] = {}  # in order of arrival, as dicts are
    for verb, name, number in steps:
        if verb == "put":
            heap.put(name, (name, number))
            model[name] = (name, number)
        elif verb == "remove":
            assert heap.remove(name) == model.pop(name, None)
        else:
            expected = min(model.values(), key=lambda item: item[1], default=None)
            assert heap.pop() == expected
            if expected is not None:
                del model[expected[0]]
        assert list(heap) == sorted(model.values(), key=lambda item: item[1])
        assert len(heap) == len(model)
