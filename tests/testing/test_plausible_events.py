from mooring.api import core
from mooring.api.storage import StorageClass
from mooring.cache.pods import Pod
from mooring.framework.events import DEFAULT_WAKES_ON, Action, ClusterEvent, Event
from mooring.testing._bench import Case
from mooring.testing._plausible_events import PlausibleEvent, plausible_events
from mooring.testing._random_clusters import random_cluster

CLUSTER = random_cluster(6)
CASE = Case(CLUSTER, CLUSTER.incoming[0], 0)


def those_for(awaited: ClusterEvent) -> list[PlausibleEvent]:
    return list(plausible_events(awaited, CASE))


def test_shows_nothing_before_an_addition_and_nothing_after_a_deletion() -> None:
    assert all(old is None and new is not None for _, old, new in those_for(Event.NODE_ADDED))
    assert all(old is not None and new is None for _, old, new in those_for(Event.NODE_DELETED))


def test_shows_nodes_as_values_and_pods_as_plugins_know_them() -> None:
    assert {type(new) for _, _, new in those_for(Event.NODE_LABELS_CHANGED)} == {core.Node}
    assert {type(old) for _, old, _ in those_for(Event.POD_DELETED)} == {Pod}
    assert {type(new) for _, _, new in those_for(Event.STORAGE_CLASS_CHANGED)} >= {StorageClass}


def test_shows_two_versions_of_one_object() -> None:
    for _, old, new in those_for(Event.NODE_TAINTS_CHANGED):
        assert isinstance(old, core.Node)
        assert isinstance(new, core.Node)
        assert old.metadata.name == new.metadata.name


def test_comes_up_with_something_for_every_event_of_a_kind_we_know() -> None:
    known = [event for event in DEFAULT_WAKES_ON if "resource.k8s.io" not in event.resource]
    assert all(those_for(event) for event in [*known, Event.ANYTHING])


def test_comes_up_only_with_events_that_the_plugin_waits_for() -> None:
    for awaited in (*DEFAULT_WAKES_ON, Event.POD_SCALED_DOWN, Event.ANYTHING):
        assert all(awaited.matches(event) for event, _, _ in those_for(awaited))


def test_tells_kinds_of_change_apart() -> None:
    actions = {event.action for event, _, _ in those_for(Event.NODE_CHANGED)}
    assert {Action.ADD, Action.DELETE, Action.UPDATE_NODE_TAINT} <= actions
    assert Action.UPDATE_POD_LABEL not in actions
