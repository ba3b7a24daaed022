"""What `mooring run` writes into a real cluster: bindings, conditions, Events, evictions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.controlplane.admin import Object
from tests.controlplane.fixtures import on_both
from tests.controlplane.invariants import audit, binds, removals
from tests.controlplane.objects import node, nodes, pod, pods, priority_class
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import (
    condition,
    events_about,
    node_of,
    wait_for_condition,
    wait_for_event,
    wait_until_bound,
)
from tests.integration.mooring_process import NAME, Mooring, start_mooring

# --- binding -----------------------------------------------------------------------------------


@on_both
def test_binding_names_the_pod_by_its_uid(control_plane: Plane, namespace: str) -> None:
    control_plane.admin.create_many(nodes(3))
    start_mooring(control_plane)
    made = control_plane.admin.create_many(pods(20, scheduler=NAME, namespace=namespace))
    placed = wait_until_bound(control_plane, namespace)
    trail = binds(control_plane, namespace)
    assert {(bind.pod, bind.uid, bind.node, bind.code) for bind in trail} == {
        (name, each["metadata"]["uid"], placed[name], 201)
        for each in made
        if (name := each["metadata"]["name"])
    }
    assert len(trail) == 20
    assert {bind.user_agent.split("/")[0] for bind in trail} == {"mooring"}
    assert audit(control_plane, namespace).broken == ()


@on_both
def test_pods_of_others_are_left_alone(control_plane: Plane, namespace: str) -> None:
    control_plane.admin.create(node("only"))
    start_mooring(control_plane)
    control_plane.admin.create(pod("theirs", namespace=namespace))
    control_plane.admin.create(pod("ours", namespace=namespace, scheduler=NAME))
    wait_until_bound(control_plane, namespace, "ours")
    assert node_of(control_plane, namespace, "theirs") == ""
    assert events_about(control_plane, namespace, "theirs") == []


@on_both
def test_gated_pod_waits_without_complaint_until_its_gates_are_gone(
    control_plane: Plane, namespace: str
) -> None:
    control_plane.admin.create(node("only"))
    start_mooring(control_plane)
    gated = pod("gated", namespace=namespace, scheduler=NAME, gates=["example.com/quota"])
    control_plane.admin.create(gated)
    control_plane.admin.create(pod("after", namespace=namespace, scheduler=NAME))
    wait_until_bound(control_plane, namespace, "after")
    waiting = control_plane.admin.get("Pod", "gated", namespace)
    assert condition(waiting, "PodScheduled")["reason"] == "SchedulingGated"
    control_plane.admin.patch("Pod", "gated", {"spec": {"schedulingGates": None}}, namespace)
    wait_until_bound(control_plane, namespace, "gated")
    wait_for_event(control_plane, namespace, "gated", "Scheduled")
    assert events_about(control_plane, namespace, "gated", "FailedScheduling") == []


@on_both
def test_pods_that_are_deleted_on_their_way_are_no_trouble(
    control_plane: Plane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create_many(nodes(3))
    mooring = start_mooring(control_plane)

    def come_and_go(number: int) -> None:
        fleeting = pod(f"fleeting-{number}", namespace=namespace, scheduler=NAME, cpu="1m")
        admin.create(fleeting)
        admin.delete("Pod", f"fleeting-{number}", namespace)
        if number % 5 == 0:
            admin.create(fleeting)  # another pod under its name

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(come_and_go, range(150)))
    assert len(wait_until_bound(control_plane, namespace)) == 30
    assert audit(control_plane, namespace).broken == ()
    assert troubles(mooring) == []

    def forgotten() -> bool:
        sizes = mooring.metrics(control_plane.token)["scheduler_cache_size"].samples
        return {sample.labels["type"]: sample.value for sample in sizes} == {
            "nodes": 3,
            "pods": 30,
            "assumed_pods": 0,
        }

    wait_until(forgotten, what="nothing is left of those that went")


# --- preemption --------------------------------------------------------------------------------


@on_both
def test_more_important_pod_takes_the_place_of_a_lesser_one(
    control_plane: Plane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create(node("full", cpu="1"))
    admin.create_many([priority_class("low", 10), priority_class("high", 1000)])
    start_mooring(control_plane)
    lesser = ours("lesser", namespace, priority_class="low")
    admin.create(lesser)
    wait_until_bound(control_plane, namespace, "lesser")
    important = admin.create(ours("important", namespace, priority_class="high"))

    why = wait_for_condition(
        control_plane, namespace, "lesser", "DisruptionTarget", "PreemptionByScheduler"
    )
    assert why["status"] == "True"
    assert why["message"] == f"{NAME}: preempting to accommodate a higher priority pod"
    told = wait_for_event(control_plane, namespace, "lesser", "Preempted")
    assert told["note"] == f"Preempted by pod {important['metadata']['uid']} on node full"
    assert told["related"]["uid"] == important["metadata"]["uid"]
    assert (told["action"], told["reportingController"]) == ("Preempting", NAME)
    wait_until(
        lambda: admin.get("Pod", "important", namespace)["status"].get("nominatedNodeName"),
        what="the pod is nominated to the node",
    )
    leaving = admin.get("Pod", "lesser", namespace)
    assert leaving["metadata"]["deletionTimestamp"]
    assert node_of(control_plane, namespace, "important") == ""

    admin.delete("Pod", "lesser", namespace)  # no kubelet ends its grace period
    wait_until_bound(control_plane, namespace, "important")
    (asked, _) = removals(control_plane, namespace)
    assert (asked.pod, asked.user, asked.is_eviction) == ("lesser", "scheduler", False)


@on_both
def test_pods_of_other_schedulers_are_not_preempted(control_plane: Plane, namespace: str) -> None:
    admin = control_plane.admin
    admin.create(node("full", cpu="1"))
    admin.create_many([priority_class("low", 10), priority_class("high", 1000)])
    admin.create(pod("theirs", namespace=namespace, cpu="800m", node="full", priority_class="low"))
    start_mooring(control_plane)
    admin.create(ours("important", namespace, priority_class="high"))
    told = wait_for_event(control_plane, namespace, "important", "FailedScheduling")
    wanted = "0/1 nodes are available: 1 Insufficient cpu."
    assert told["note"].startswith(wanted)
    wait_for_condition(control_plane, namespace, "important", "PodScheduled", "Unschedulable")
    # Anything it might want to evict would have been asked for before that.
    left = admin.get("Pod", "theirs", namespace)
    assert "deletionTimestamp" not in left["metadata"]
    assert condition(left, "DisruptionTarget") == {}
    assert "nominatedNodeName" not in admin.get("Pod", "important", namespace)["status"]
    assert removals(control_plane, namespace) == []


# --- Events ------------------------------------------------------------------------------------


@on_both
def test_repeated_refusals_become_a_series(control_plane: Plane, namespace: str) -> None:
    admin = control_plane.admin
    admin.create_many([node("small"), node("tainted", cpu="64", taints=["keep=out:NoSchedule"])])
    start_mooring(control_plane)
    admin.create(ours("huge", namespace, cpu="32"))
    wait_for_condition(control_plane, namespace, "huge", "PodScheduled", "Unschedulable")
    grown = iter(range(65, 10_000))

    def is_series() -> bool:
        # Wakes the pod, which is refused for the same reasons as before.
        cpu = {"cpu": str(next(grown))}
        change = {"status": {"capacity": cpu, "allocatable": cpu}}
        admin.patch("Node", "tainted", change, subresource="status")
        return any("series" in event for event in refusals())

    def refusals() -> list[Object]:
        return events_about(control_plane, namespace, "huge", "FailedScheduling")

    wait_until(is_series, what="an Event became a series", every=0.2)
    assert len(refusals()) <= 3  # the pod changes when its condition is written, and then no more
    (series,) = [event["series"] for event in refusals() if "series" in event]
    assert series["count"] >= 2
    assert series["lastObservedTime"]
    described = control_plane.kubectl("describe", "pod", "huge", "-n", namespace)
    assert "(x" in described  # how often, over how long


@on_both
def test_each_profile_speaks_in_its_own_name(control_plane: Plane, namespace: str) -> None:
    control_plane.admin.create(node("only"))
    profiles = [{"schedulerName": "blue"}, {"schedulerName": "red"}]
    start_mooring(control_plane, config={"profiles": profiles})
    for colour in ("blue", "red"):
        control_plane.admin.create(pod(colour, namespace=namespace, scheduler=colour))
        control_plane.admin.create(
            pod(f"huge-{colour}", namespace=namespace, scheduler=colour, cpu="64")
        )
    for colour in ("blue", "red"):
        said = [
            wait_for_event(control_plane, namespace, colour, "Scheduled"),
            wait_for_event(control_plane, namespace, f"huge-{colour}", "FailedScheduling"),
        ]
        assert {event["reportingController"] for event in said} == {colour}
        assert all(event["reportingInstance"].startswith(f"{colour}-") for event in said)
    assert {event["reportingController"] for event in _all_events(control_plane, namespace)} == {
        "blue",
        "red",
    }


def ours(name: str, namespace: str, *, cpu: str = "800m", priority_class: str = "") -> Object:
    return pod(
        name, namespace=namespace, scheduler=NAME, cpu=cpu, memory="", priority_class=priority_class
    )


def troubles(mooring: Mooring) -> list[str]:
    """Lines of the log that want somebody to act."""
    return [line for line in mooring.log.splitlines() if line.startswith(("W", "E"))]


def _all_events(control_plane: Plane, namespace: str) -> list[Object]:
    return control_plane.admin.list("events.k8s.io/v1/Event", namespace)
