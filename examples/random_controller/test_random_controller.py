from mooring.testing import pod
from mooring.testing.sandbox import Sandbox
from random_controller import choose

OURS = "my-scheduler"


def test_places_every_pod_of_its_own_on_some_node(mooring_cluster: Sandbox) -> None:
    nodes = mooring_cluster.add_nodes(3, cpu="64", pods=110)
    mooring_cluster.start_controller(choose)
    mooring_cluster.apply(*[pod(f"p{i}", scheduler=OURS) for i in range(60)], pod("theirs"))
    mooring_cluster.wait_until_running(*[f"p{i}" for i in range(60)])
    placed = mooring_cluster.placements()
    assert placed.pop("theirs") == ""
    assert set(placed.values()) == set(nodes)  # one of them empty: once in ten billion runs


def test_waits_for_the_first_node(mooring_cluster: Sandbox) -> None:
    mooring_cluster.start_controller(choose)
    mooring_cluster.apply(pod("p", scheduler=OURS))
    mooring_cluster.advance(60)
    assert mooring_cluster.node_of("p") == ""
    (told,) = mooring_cluster.events("p", "FailedScheduling")
    assert told.message == "no nodes available to schedule pods"
    mooring_cluster.add_nodes(1)
    mooring_cluster.wait_until_bound("p", seconds=1)
