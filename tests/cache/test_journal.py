from mooring.cache.cache import Cache
from mooring.cache.internals import changed_since, mark_of
from mooring.cache.journal import Journal
from mooring.cache.snapshot import RowChanges
from mooring.testing import node, pod


def test_tells_what_changed_since_a_position() -> None:
    journal = Journal()
    journal.changed(1)
    position = journal.position
    assert journal.since(position) == []
    journal.changed(2)
    journal.changed(2)
    journal.changed(0)
    assert journal.since(position) == [2, 2, 0]
    assert journal.since(journal.position) == []


def test_has_no_answer_across_a_restructuring() -> None:
    journal = Journal()
    before = journal.position
    journal.changed(1)
    between = journal.position
    journal.restructured()
    assert journal.since(before) is None
    assert journal.since(between) is None
    after = journal.position
    journal.changed(3)
    assert journal.since(after) == [3]


def test_has_no_answer_across_a_restructuring_of_nothing() -> None:
    journal = Journal()
    before = journal.position
    journal.restructured()
    assert journal.since(before) is None


def test_drops_its_older_half_when_it_grows_too_long() -> None:
    journal = Journal(limit=4)
    positions = []
    for row in range(5):
        positions.append(journal.position)
        journal.changed(row)
    assert journal.since(positions[0]) is None
    assert journal.since(positions[1]) is None
    assert journal.since(positions[2]) == [2, 3, 4]
    assert journal.position == 5


def test_never_holds_more_than_its_limit() -> None:
    journal = Journal(limit=10)
    for row in range(1000):
        journal.changed(row)
        assert len(journal._rows) <= 10
    assert journal.since(journal.position - 3) == [997, 998, 999]


def test_follows_the_pods_and_updates_of_a_node() -> None:
    cache = Cache()
    cache.put_node(node("n0").api)
    cache.put_node(node("n1").api)
    mark = mark_of(cache.nodes)
    resident = pod("p", on="n1")
    cache.put_pod(resident)
    cache.put_node(node("n0", unschedulable=True).api)
    cache.remove_pod(resident)
    assert changed_since(cache.nodes, mark) == RowChanges(pods=[1, 1], nodes=[0])


def test_a_pod_without_its_node_changes_no_row() -> None:
    cache = Cache()
    cache.put_node(node("n0").api)
    mark = mark_of(cache.nodes)
    cache.put_pod(pod("p", on="elsewhere"))
    assert changed_since(cache.nodes, mark) == RowChanges(pods=[], nodes=[])
    cache.put_node(node("elsewhere").api)
    assert changed_since(cache.nodes, mark) is None
