"""Is there room?"""

from typing import Any

import pytest

from mooring.framework import OK, CycleState, Event, Node, Pod, Status
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.testing.build import build, prepare
from mooring.testing.builders import node, nodes, pod

GPU = "nvidia.com/gpu"


def verdict(incoming: Pod, target: Node, **args: Any) -> Status:
    """The verdict, after both forms gave the same one."""
    plugin, cluster, state = (
        build(NodeResourcesFit, **args),
        nodes(node("roomy"), target),
        CycleState(),
    )
    assert plugin.pre_filter(state, incoming, cluster) is OK
    status = plugin.filter(state, incoming, target)
    assert plugin.filter_all(state, incoming, cluster).status(1) == status
    return status


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param({}, OK, id="nothing"),
        pytest.param({"cpu": "1", "memory": "1Gi"}, OK, id="exactly what is left"),
        pytest.param({"cpu": "1001m"}, Status.unschedulable("Insufficient cpu"), id="cpu"),
        pytest.param(
            {"memory": "1025Mi"}, Status.unschedulable("Insufficient memory"), id="memory"
        ),
        pytest.param(
            {"cpu": "2", "memory": "2Gi"},
            Status.unschedulable("Insufficient cpu", "Insufficient memory"),
            id="both, in order",
        ),
        pytest.param(
            {"cpu": "5"}, Status.unresolvable("Insufficient cpu"), id="more than the node has"
        ),
        pytest.param(
            {"cpu": "5", "memory": "2Gi"},
            Status.unresolvable("Insufficient cpu", "Insufficient memory"),
            id="one hopeless shortage makes all so",
        ),
        pytest.param(
            {GPU: 1}, Status.unresolvable(f"Insufficient {GPU}"), id="a resource it lacks"
        ),
        pytest.param({GPU: 0}, OK, id="zero of a resource it lacks"),
        pytest.param(
            {"ephemeral-storage": "6Gi", "b.io/x": 1, "a.io/x": 1, "memory": "2Gi"},
            Status.unresolvable(
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                "Insufficient a.io/x",
                "Insufficient b.io/x",
            ),
            id="extended resources last, by name",
        ),
    ],
)
def test_refuses_a_node_that_is_short(asked: dict[str, str | int], expected: Status) -> None:
    resident = pod("r", cpu="3", memory="3Gi", requests={"ephemeral-storage": "5Gi"})
    target = node(
        "n", cpu="4", memory="4Gi", resources={"ephemeral-storage": "10Gi"}, pods=[resident]
    )
    assert verdict(pod(requests=asked), target) == expected


def test_counts_pods_even_if_they_ask_for_nothing() -> None:
    full = node("n", max_pods=1, pods=[pod("r")])
    assert verdict(pod(), full) == Status.unschedulable("Too many pods")
    assert verdict(pod(cpu="1"), node("n", max_pods=0)) == Status.unschedulable("Too many pods")
    both = Status.unresolvable("Too many pods", "Insufficient cpu")
    assert verdict(pod(cpu="99"), full) == both


def test_lets_pods_that_ask_for_nothing_onto_overcommitted_nodes() -> None:
    crammed = node("n", cpu="1", pods=[pod("r", cpu="2")])
    assert verdict(pod(memory="1Gi"), crammed) is OK
    assert verdict(pod(cpu="1m"), crammed) == Status.unschedulable("Insufficient cpu")


@pytest.mark.parametrize(
    ("args", "resource", "fits"),
    [
        ({}, GPU, False),
        ({"ignored_resources": [GPU]}, GPU, True),
        ({"ignored_resources": ["nvidia.com/other"]}, GPU, False),
        ({"ignored_resource_groups": ["nvidia.com"]}, GPU, True),
        ({"ignored_resource_groups": ["amd.com"]}, GPU, False),
        ({"ignored_resources": ["hugepages-2Mi"]}, "hugepages-2Mi", False),
    ],
)
def test_leaves_ignored_extended_resources_to_others(
    args: dict[str, list[str]], resource: str, fits: bool
) -> None:
    assert verdict(pod(requests={resource: 1}), node("n"), **args).ok == fits


def test_counts_init_containers_overhead_and_requests_of_the_pod_as_a_whole() -> None:
    init = {"name": "i", "resources": {"requests": {"cpu": "3"}}}
    small = node("n", cpu="3500m")
    assert verdict(pod(cpu="1", spec={"initContainers": [init]}), small) is OK
    sidecar = {**init, "restartPolicy": "Always"}
    assert not verdict(pod(cpu="1", spec={"initContainers": [sidecar]}), small).ok
    assert not verdict(pod(cpu="3", spec={"overhead": {"cpu": "1"}}), small).ok
    assert not verdict(pod(cpu="1", spec={"resources": {"requests": {"cpu": "4"}}}), small).ok


def test_tells_many_kinds_of_shortage_apart() -> None:
    plugin, incoming = build(NodeResourcesFit), pod(cpu="2", memory="2Gi")
    cluster = nodes(
        node("fits"),
        node("cpu", cpu="3", pods=[pod("r1", cpu="2")]),
        node("never", cpu="1"),
        node("memory", memory="3Gi", pods=[pod("r2", memory="2Gi")]),
        node("cpu-too", cpu="3", pods=[pod("r3", cpu="2")]),
        node("pods", max_pods=1, pods=[pod("r4")]),
    )
    verdicts = plugin.filter_all(prepare(plugin, incoming), incoming, cluster)
    assert [verdicts.status(place) for place in range(len(cluster))] == [
        OK,
        Status.unschedulable("Insufficient cpu"),
        Status.unresolvable("Insufficient cpu"),
        Status.unschedulable("Insufficient memory"),
        Status.unschedulable("Insufficient cpu"),
        Status.unschedulable("Too many pods"),
    ]
    assert len(verdicts.statuses) == 4


def test_copes_with_more_resources_than_there_are_bits() -> None:
    incoming = pod(requests={f"example.com/r{i:02}": 1 for i in range(30)})
    status = verdict(incoming, node("n", resources={"example.com/r07": 1}))
    assert len(status.reasons) == 29
    assert status == Status.unresolvable(
        *(f"Insufficient example.com/r{i:02}" for i in range(30) if i != 7)
    )


# --- what wakes a pod -----------------------------------------------------------------------------


def test_wakes_when_a_pod_leaves_a_node() -> None:
    plugin, waiting = build(NodeResourcesFit), pod(cpu="1")
    assert plugin.hint(Event.POD_DELETED, waiting, pod(on="n"), None)
    assert plugin.hint(Event.POD_DELETED, waiting, pod(nominated="n"), None)
    assert not plugin.hint(Event.POD_DELETED, waiting, pod(), None)


def test_wakes_when_a_placed_pod_gives_back_what_is_wanted() -> None:
    plugin, waiting = build(NodeResourcesFit), pod(cpu="1")
    large, small = pod("r", cpu="2", memory="2Gi", on="n"), pod("r", cpu="1", memory="2Gi", on="n")
    leaner = pod("r", cpu="2", memory="1Gi", on="n")
    assert plugin.hint(Event.POD_SCALED_DOWN, waiting, large, small)
    assert not plugin.hint(Event.POD_SCALED_DOWN, waiting, large, leaner)
    assert not plugin.hint(Event.POD_SCALED_DOWN, waiting, small, large)
    assert not plugin.hint(Event.POD_SCALED_DOWN, waiting, pod("r", cpu="2"), pod("r", cpu="1"))
    assert not plugin.hint(Event.POD_SCALED_DOWN, pod(requests={"cpu": 0}), large, small)


def test_wakes_when_the_pod_itself_asks_for_less() -> None:
    plugin = build(NodeResourcesFit)
    before, after = pod("a", uid="a", cpu="2"), pod("a", uid="a", cpu="1")
    assert plugin.hint(Event.POD_SCALED_DOWN, before, before, after)


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, node("n", cpu="2"), True, id="a new node with room"),
        pytest.param(None, node("n", cpu="1"), False, id="a new node that is too small"),
        pytest.param(None, node("n", cpu="2", max_pods=0), False, id="a new node for no pods"),
        pytest.param(node("n", cpu="1"), node("n", cpu="2"), True, id="grown to fit"),
        pytest.param(node("n", cpu="3"), node("n", cpu="2"), False, id="shrunk"),
        pytest.param(
            node("n", memory="1Gi"), node("n", memory="9Gi"), False, id="grown where it matters not"
        ),
        pytest.param(node("n", max_pods=5), node("n", max_pods=6), True, id="allows more pods"),
    ],
)
def test_wakes_for_nodes_that_could_hold_the_pod(old: Node | None, new: Node, wakes: bool) -> None:
    plugin, waiting = build(NodeResourcesFit), pod(cpu="2")
    event = Event.NODE_ADDED if old is None else Event.NODE_ALLOCATABLE_CHANGED
    assert plugin.hint(event, waiting, old.api if old is not None else None, new.api) == wakes
