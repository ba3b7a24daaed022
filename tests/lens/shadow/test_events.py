from typing import Any

import pytest
from msgspec import structs

from mooring.api import core
from mooring.api.meta import Condition
from mooring.lens.shadow.events import OrderedChanges, SchedulingOutcome
from mooring.testing import node, pod


class Changes(OrderedChanges):
    """A queue whose clock is moved by the test."""

    def __init__(self) -> None:
        self.time = 0.0
        super().__init__(
            lambda p: p.spec.scheduler_name == "default-scheduler", lambda: self.time, settle=1.0
        )

    def pod(self, api: core.Pod) -> None:
        self.put_pod(ignore, api)

    def taken(self) -> list[str]:
        """What can be taken now: names of pods, with their node if they have one."""
        found = []
        while (change := self.next()) is not None:
            value = change.value
            where = f"@{value.spec.node_name}" if isinstance(change, SchedulingOutcome) else ""
            found.append(f"{value.metadata.name}{where}")
        return found


def ignore(_: Any) -> None:
    pass


def pending(name: str, **options: Any) -> core.Pod:
    return pod(name, uid=name, **options).api


def bound(name: str, **options: Any) -> core.Pod:
    return pod(name, uid=name, on="n", **options).api


def refused(name: str, message: str = "0/1 nodes are available") -> core.Pod:
    api = pending(name)
    told = Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
    return structs.replace(api, status=structs.replace(api.status, conditions=(told,)))


@pytest.fixture
def changes() -> Changes:
    """Pods a and b have arrived, in this order."""
    found = Changes()
    for name in "ab":
        found.pod(pending(name))
    assert found.taken() == ["a", "b"]
    return found


def test_a_bind_waits_for_that_of_a_pod_that_arrived_earlier(changes: Changes) -> None:
    changes.pod(bound("b"))
    assert changes.taken() == []
    changes.pod(bound("a"))
    assert changes.taken() == ["a@n", "b@n"]


def test_what_happens_after_a_bind_that_is_held_back_waits_too(changes: Changes) -> None:
    changes.pod(bound("b"))
    changes.put(ignore, node("new").api)
    assert changes.taken() == []
    changes.pod(bound("a"))
    assert changes.taken() == ["a@n", "b@n", "new"]


def test_a_pod_is_awaited_for_a_second_and_only_once(changes: Changes) -> None:
    changes.pod(bound("b"))
    assert changes.due() == 1.0
    changes.time = 0.9
    assert changes.taken() == []
    changes.time = 1.0
    assert changes.taken() == ["b@n"]
    changes.pod(pending("c"))
    changes.pod(bound("c"))
    assert changes.taken() == ["c", "c@n"]
    changes.pod(bound("a"))
    assert changes.taken() == ["a@n"]


def test_a_pod_that_fits_nowhere_is_not_awaited(changes: Changes) -> None:
    changes.pod(refused("a"))
    changes.pod(bound("b"))
    assert changes.taken() == ["a@", "b@n"]


def test_a_refusal_is_an_outcome_once_per_message(changes: Changes) -> None:
    for message in ("one", "one", "two"):
        changes.pod(refused("a", message))
    assert changes.taken() == ["a@", "a", "a@"]


@pytest.mark.parametrize("options", [{"gates": ["example.com/wait"]}, {"deleting": True}])
def test_a_pod_that_cannot_be_scheduled_now_is_not_awaited(options: dict[str, Any]) -> None:
    changes = Changes()
    changes.pod(pending("a", **options))
    changes.pod(pending("b"))
    changes.pod(bound("b"))
    assert changes.taken() == ["a", "b", "b@n"]


def test_a_deleted_pod_is_not_awaited(changes: Changes) -> None:
    changes.remove_pod(ignore, pending("a"))
    changes.pod(bound("b"))
    assert changes.taken() == ["a", "b@n"]


def test_a_pod_of_another_priority_is_not_awaited() -> None:
    changes = Changes()
    changes.pod(pending("low"))
    changes.pod(pending("high", priority=5))
    changes.pod(bound("high", priority=5))
    assert changes.taken() == ["low", "high", "high@n"]


def test_a_new_pod_of_the_same_name_is_another_one(changes: Changes) -> None:
    changes.pod(pod("a", uid="second").api)  # the deletion of the first was missed
    changes.pod(bound("b"))
    assert changes.taken() == ["a", "b@n"]


def test_pods_of_other_schedulers_and_pods_with_a_node_are_no_outcomes(changes: Changes) -> None:
    changes.pod(pending("other", scheduler="another"))
    changes.pod(bound("other", scheduler="another"))
    changes.pod(bound("static"))
    assert changes.taken() == ["other", "other", "static"]
    assert changes.due() is None
