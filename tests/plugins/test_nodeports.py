"""Host ports are held by one pod per node and address."""

import pytest

from mooring.framework import OK, SKIP, CycleState, Event, Status
from mooring.plugins.nodeports import NodePorts
from mooring.testing.build import build, prepare
from mooring.testing.builders import node, nodes, pod

Port = int | str


@pytest.mark.parametrize(
    ("held", "wanted", "expected"),
    [
        ([], [8080], OK),
        ([8080], [8081], OK),
        ([8080], [8080], NodePorts.TAKEN),
        ([8080], ["8080/UDP"], OK),
        ([8080, "8080/UDP"], ["8080/UDP"], NodePorts.TAKEN),
        (["10.0.0.1:8080"], ["10.0.0.2:8080"], OK),
        (["10.0.0.1:8080"], ["10.0.0.1:8080"], NodePorts.TAKEN),
        (["10.0.0.1:8080"], [8080], NodePorts.TAKEN),
        ([8080], ["10.0.0.1:8080"], NodePorts.TAKEN),
        (["0.0.0.0:8080"], [8080], NodePorts.TAKEN),
        ([9000], [8080, 9000], NodePorts.TAKEN),
    ],
)
def test_refuses_nodes_where_a_port_is_taken(
    held: list[Port], wanted: list[Port], expected: Status
) -> None:
    plugin, incoming = build(NodePorts), pod(ports=wanted)
    busy = node("busy", pods=[pod("r", ports=held)])
    assert plugin.pre_filter(CycleState(), incoming, nodes(busy)) is OK
    assert plugin.filter(prepare(plugin, incoming), incoming, busy) == expected
    verdicts = plugin.filter_all(prepare(plugin, incoming), incoming, nodes(node("idle"), busy))
    assert [verdicts.status(0), verdicts.status(1)] == [OK, expected]


def test_could_be_helped_by_an_eviction() -> None:
    text = "node(s) didn't have free ports for the requested pod ports"
    assert Status.unschedulable(text) == NodePorts.TAKEN


def test_skips_pods_without_host_ports() -> None:
    plugin, cluster = build(NodePorts), nodes(node("n", pods=[pod("r", ports=[80])]))
    assert plugin.pre_filter(CycleState(), pod(), cluster) is SKIP


def test_counts_the_ports_of_sidecars_but_not_of_ordinary_init_containers() -> None:
    init = {"name": "i", "ports": [{"hostPort": 80, "protocol": "TCP"}]}
    sidecar = pod(spec={"initContainers": [{**init, "restartPolicy": "Always"}]})
    ordinary = pod(spec={"initContainers": [init]})
    plugin, busy = build(NodePorts), node("n", pods=[pod("r", ports=[80])])
    assert plugin.filter(prepare(plugin, sidecar), sidecar, busy) == NodePorts.TAKEN
    assert plugin.pre_filter(CycleState(), ordinary, nodes(busy)) is SKIP


def test_follows_what_ifs() -> None:
    plugin, holder, incoming = build(NodePorts), pod("r", ports=[80]), pod(ports=[80])
    busy = node("n", pods=[holder])
    assert plugin.filter(prepare(plugin, incoming), incoming, busy.without_pod(holder)) is OK
    idle = node("n")
    assert (
        plugin.filter(prepare(plugin, incoming), incoming, idle.with_pod(holder)) == NodePorts.TAKEN
    )


def test_wakes_when_a_holder_of_the_port_goes() -> None:
    plugin, waiting = build(NodePorts), pod(ports=[80])
    assert plugin.hint(Event.POD_DELETED, waiting, pod(ports=[80], on="n"), None)
    assert plugin.hint(Event.POD_DELETED, waiting, pod(ports=[80], nominated="n"), None)
    assert not plugin.hint(Event.POD_DELETED, waiting, pod(ports=[80]), None)
    assert not plugin.hint(Event.POD_DELETED, waiting, pod(ports=[81], on="n"), None)
    assert not plugin.hint(Event.POD_DELETED, waiting, pod(on="n"), None)


def test_wakes_for_every_new_node() -> None:
    assert build(NodePorts).hint(Event.NODE_ADDED, pod(ports=[80]), None, node("n").api)
