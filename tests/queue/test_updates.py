import pytest
from tests.queue.builders import pod

from mooring.cache.pods import Pod
from mooring.framework.events import ASSIGNED_POD, Action
from mooring.queue.updates import pod_update_events


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (pod("a"), pod("a"), []),
        (pod("a"), pod("a", nominated="n1"), []),
        (pod("a"), pod("a", labels={"x": "y"}), [Action.UPDATE_POD_LABEL]),
        (pod("a", cpu="2"), pod("a", cpu="1"), [Action.UPDATE_POD_SCALE_DOWN]),
        (pod("a", cpu="2"), pod("a"), [Action.UPDATE_POD_SCALE_DOWN]),
        (pod("a", cpu="1"), pod("a", cpu="2"), [Action.UPDATE]),
        (
            pod("a", gates=["x"]),
            pod("a"),
            [Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED],
        ),
        (pod("a", gates=["x", "y"]), pod("a", gates=["y"]), [Action.UPDATE]),
        (pod("a"), pod("a", tolerates=["x"]), [Action.UPDATE_POD_TOLERATION]),
        (pod("a", tolerates=["x"]), pod("a", tolerates=["y"]), [Action.UPDATE]),
        (pod("a"), pod("a", claims=["c"]), [Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM]),
        (
            pod("a", gates=["x"], cpu="2"),
            pod("a", labels={"x": "y"}, tolerates=["x"], cpu="1"),
            [
                Action.UPDATE_POD_LABEL,
                Action.UPDATE_POD_SCALE_DOWN,
                Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
                Action.UPDATE_POD_TOLERATION,
            ],
        ),
    ],
)
def test_names_what_changed(old: Pod, new: Pod, actions: list[Action]) -> None:
    assert [event.action for event in pod_update_events(old, new)] == actions


def test_says_what_kind_of_pod_it_is_about() -> None:
    old, new = pod("a"), pod("a", labels={"x": "y"})
    assert [e.label for e in pod_update_events(old, new)] == ["UnschedulablePodUpdatePodLabel"]
    assert [e.label for e in pod_update_events(old, new, ASSIGNED_POD)] == [
        "AssignedPodUpdatePodLabel"
    ]
