import pytest

from mooring.api import core
from mooring.api.requests import HostPort
from mooring.cache.indexes import ImageIndex, PortIndex, ips_conflict


def image(*names: str, size: int = 100) -> core.ContainerImage:
    return core.ContainerImage(names=names, size_bytes=size)


def rows_of(index: ImageIndex, name: str) -> list[int] | None:
    state = index.get(name)
    return None if state is None else state.rows_array.tolist()


def test_finds_an_image_under_all_its_names() -> None:
    index = ImageIndex()
    index.add(3, [image("app:1", "app@sha256:x")])
    index.add(1, [image("app:1")])
    assert rows_of(index, "app:1") == [1, 3]
    assert rows_of(index, "app@sha256:x") == [3]
    assert rows_of(index, "other") is None


def test_keeps_the_size_that_was_reported_first() -> None:
    index = ImageIndex()
    index.add(0, [image("app", size=10)])
    index.add(1, [image("app", size=20)])
    index.remove(0, [image("app", size=10)])
    state = index.get("app")
    assert state is not None
    assert state.size == 10


def test_forgets_an_image_with_its_last_node() -> None:
    index = ImageIndex()
    index.add(0, [image("app", size=10)])
    index.remove(0, [image("app", size=10)])
    assert index.get("app") is None
    index.add(0, [image("app", size=20)])
    state = index.get("app")
    assert state is not None
    assert state.size == 20


def test_removes_what_it_does_not_know_without_complaint() -> None:
    index = ImageIndex()
    index.remove(0, [image("app", "app")])
    assert index.get("app") is None


def test_copes_with_a_node_that_names_an_image_twice() -> None:
    index = ImageIndex()
    twice = [image("app", "app"), image("app")]
    index.add(1, twice)
    index.add(0, twice)
    index.remove(1, twice)
    assert rows_of(index, "app") == [0]
    index.remove(0, twice)
    assert index.get("app") is None


def test_keeps_an_image_while_some_row_has_it() -> None:
    index = ImageIndex()
    index.add(0, [image("app")])
    index.add(5, [image("app"), image("db")])
    assert rows_of(index, "app") == [0, 5]
    index.add(2, [image("app"), image("db")])
    index.remove(5, [image("app"), image("db")])
    assert rows_of(index, "app") == [0, 2]
    assert rows_of(index, "db") == [2]


def test_the_rows_of_an_image_cannot_be_written() -> None:
    index = ImageIndex()
    index.add(0, [image("app")])
    state = index.get("app")
    assert state is not None
    with pytest.raises(ValueError, match="read-only"):
        state.rows_array[0] = 1


def test_counts_how_often_an_address_holds_a_port() -> None:
    index = PortIndex()
    port = HostPort("10.0.0.1", "TCP", 80)
    index.count(2, [port, port], +1)
    assert index.holders(port) == {2: {"10.0.0.1": 2}}
    index.count(2, [port], -1)
    assert index.holders(port) == {2: {"10.0.0.1": 1}}
    index.count(2, [port], -1)
    assert index.holders(port) == {}
    assert not index._holders


def test_keeps_protocols_and_rows_apart() -> None:
    index = PortIndex()
    index.count(0, [HostPort("0.0.0.0", "TCP", 80)], +1)
    index.count(1, [HostPort("0.0.0.0", "UDP", 80)], +1)
    assert set(index.holders(HostPort("1.1.1.1", "TCP", 80))) == {0}
    assert set(index.holders(HostPort("1.1.1.1", "UDP", 80))) == {1}
    assert index.holders(HostPort("1.1.1.1", "SCTP", 80)) == {}


@pytest.mark.parametrize(
    ("a", "b", "conflict"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("0.0.0.0", "10.0.0.2", True),
        ("10.0.0.1", "0.0.0.0", True),
        ("0.0.0.0", "0.0.0.0", True),
    ],
)
def test_an_address_conflicts_with_itself_and_with_all_of_them(
    a: str, b: str, conflict: bool
) -> None:
    assert ips_conflict(a, b) is conflict
