import logging

import pytest
from tests.queue.builders import PROFILE, START, pod

from mooring.cache.pods import Pod
from mooring.framework.events import (
    ANY_RESOURCE,
    ASSIGNED_POD,
    NODE,
    Action,
    ClusterEvent,
    Event,
)
from mooring.framework.results import QueuedPod
from mooring.queue.hints import Hint, Hints, Registration, Requeue, with_taint_fallback
from mooring.queue.inflight import ObservedEvent

NODE_ADDED = ObservedEvent(Event.NODE_ADDED, None, None)
POD_GONE = ObservedEvent(ClusterEvent(ASSIGNED_POD, Action.DELETE), None, None)
EVERYTHING = ClusterEvent(ANY_RESOURCE, Action.ALL, "ForceActivate")


def says(answer: bool) -> Hint:
    return lambda event, pod, old, new: answer


def refused(*plugins: str, pending: tuple[str, ...] = ()) -> QueuedPod:
    queued = QueuedPod(pod("p"), START)
    queued.unschedulable_plugins = frozenset(plugins)
    queued.pending_plugins = frozenset(pending)
    return queued


def hints(*registrations: Registration) -> Hints:
    return Hints({PROFILE: registrations})


RULES = hints(
    Registration(Event.NODE_ADDED, "Yes", says(True)),
    Registration(Event.NODE_ADDED, "No", says(False)),
    Registration(Event.NODE_ADDED, "Always", None),
    Registration(Event.POD_DELETED, "Pods", None),
    Registration(Event.NODE_ADDED, "Hold", says(True)),
    Registration(Event.NODE_ADDED, "Never", says(False)),
)


@pytest.mark.parametrize(
    ("queued", "observed", "worth"),
    [
        (refused(), NODE_ADDED, Requeue.AFTER_BACKOFF),
        (refused("Yes"), NODE_ADDED, Requeue.AFTER_BACKOFF),
        (refused("Always"), NODE_ADDED, Requeue.AFTER_BACKOFF),
        (refused("No"), NODE_ADDED, Requeue.SKIP),
        (refused("No", "Yes"), NODE_ADDED, Requeue.AFTER_BACKOFF),
        (refused("Yes"), POD_GONE, Requeue.SKIP),
        (refused("Pods"), POD_GONE, Requeue.AFTER_BACKOFF),
        (refused("Pods"), NODE_ADDED, Requeue.SKIP),
        (refused("Stranger"), NODE_ADDED, Requeue.SKIP),
        (refused(pending=("Hold",)), NODE_ADDED, Requeue.IMMEDIATELY),
        (refused("Yes", pending=("Hold",)), NODE_ADDED, Requeue.IMMEDIATELY),
        (refused("Yes", pending=("Never",)), NODE_ADDED, Requeue.AFTER_BACKOFF),
        (refused("Hold", pending=("Hold",)), NODE_ADDED, Requeue.IMMEDIATELY),
        (refused("No"), ObservedEvent(EVERYTHING, None, None), Requeue.AFTER_BACKOFF),
        (refused("No"), ObservedEvent(EVERYTHING, None, pod("p")), Requeue.AFTER_BACKOFF),
        (refused("No"), ObservedEvent(EVERYTHING, None, pod("other")), Requeue.SKIP),
    ],
)
def test_asks_only_the_plugins_that_refused_the_pod(
    queued: QueuedPod, observed: ObservedEvent, worth: Requeue
) -> None:
    assert RULES.requeue_for(queued, observed) is worth


def test_takes_the_best_of_several_events() -> None:
    queued = refused("Pods", pending=("Hold",))
    assert RULES.requeue_for_any(queued, []) is Requeue.SKIP
    assert RULES.requeue_for_any(queued, [POD_GONE]) is Requeue.AFTER_BACKOFF
    assert RULES.requeue_for_any(queued, [POD_GONE, NODE_ADDED]) is Requeue.IMMEDIATELY


def test_stops_asking_once_the_answer_is_known() -> None:
    asked: list[str] = []

    def hint(name: str) -> Hint:
        def answer(event: ClusterEvent, pod: Pod, old: object | None, new: object | None) -> bool:
            asked.append(name)
            return True

        return answer

    rules = hints(*(Registration(Event.NODE_ADDED, name, hint(name)) for name in ("A", "B")))
    rules.requeue_for_any(refused("A", "B"), [NODE_ADDED, NODE_ADDED])
    assert asked == ["A"]


def test_hands_the_hint_the_event_and_both_versions() -> None:
    seen: list[object] = []

    def hint(event: ClusterEvent, pod: Pod, old: object | None, new: object | None) -> bool:
        seen.extend((event, pod.name, old, new))
        return False

    observed = ObservedEvent(Event.NODE_ADDED, "before", "after")
    hints(Registration(Event.NODE_ADDED, "A", hint)).requeue_for(refused("A"), observed)
    assert seen == [Event.NODE_ADDED, "p", "before", "after"]


def test_counts_a_broken_hint_as_yes_and_complains_once(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: ClusterEvent, pod: Pod, old: object | None, new: object | None) -> bool:
        raise RuntimeError("bug")

    rules = hints(Registration(Event.NODE_ADDED, "A", broken))
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert rules.requeue_for(refused("A"), NODE_ADDED) is Requeue.AFTER_BACKOFF
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.__dict__["plugin"] == "A"


def test_retries_a_pod_whose_profile_registered_nothing_at_all() -> None:
    assert Hints({}).requeue_for(refused("A"), NODE_ADDED) is Requeue.AFTER_BACKOFF


def test_knows_who_waits_for_an_event() -> None:
    assert RULES.plugins_for(Event.NODE_ADDED) == ("Yes", "No", "Always", "Hold", "Never")
    assert RULES.plugins_for(POD_GONE.event) == ("Pods",)
    assert RULES.plugins_for(Event.NODE_DELETED) == ()


def test_knows_whether_an_event_concerns_the_gate() -> None:
    queued = refused("Yes", "Pods")
    queued.gated_by = "Pods"
    assert RULES.concerns_gate(queued, POD_GONE.event)
    assert not RULES.concerns_gate(queued, Event.NODE_ADDED)
    assert not RULES.concerns_gate(queued, EVERYTHING)


@pytest.mark.parametrize(
    ("actions", "is_added"),
    [
        ([Action.ADD], True),
        ([Action.ADD | Action.UPDATE_NODE_LABEL], True),
        ([Action.ADD | Action.UPDATE_NODE_TAINT], False),
        ([Action.ADD, Action.UPDATE_NODE_TAINT], False),
        ([Action.UPDATE_NODE_LABEL], False),
        ([Action.ALL], False),
    ],
)
def test_lets_who_waits_for_nodes_hear_of_taints(actions: list[Action], is_added: bool) -> None:
    given = [Registration(ClusterEvent(NODE, action), "A", says(False)) for action in actions]
    added = with_taint_fallback(given)[len(given) :]
    assert added == ((Registration(Event.NODE_TAINTS_CHANGED, "A", None),) if is_added else ())


def test_looks_at_each_plugin_alone_for_the_taint_fallback() -> None:
    given = [
        Registration(Event.NODE_ADDED, "A", None),
        Registration(Event.NODE_TAINTS_CHANGED, "B", None),
        Registration(Event.POD_ADDED, "C", None),
    ]
    assert with_taint_fallback(given)[3:] == (Registration(Event.NODE_TAINTS_CHANGED, "A", None),)
