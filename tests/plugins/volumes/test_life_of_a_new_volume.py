"""Claims for which a volume is made: from the decision to the running pod."""

from collections.abc import Iterator

import pytest
from tests.plugins.volumes.simulated_controllers import (
    CONFIG,
    bind_claim,
    failures,
    forget_selection,
    provision,
    selected_node,
)
from tests.plugins.volumes.storage import claim, storage_class, user, volume

from mooring.testing import Simulation, node


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation(config=CONFIG) as simulation:
        yield simulation


def test_selects_the_node_for_a_new_volume_and_binds_the_pod_when_it_is_there(
    sim: Simulation,
) -> None:
    sim.apply(storage_class(zones=["east"]), claim("data"))
    sim.apply(node("a", zone="west"), node("b", zone="east"))
    sim.schedule(user("db", "data"))
    assert selected_node(sim, "data") == "b"
    sim.advance(10)
    assert sim.node_of("db") == ""
    provision(sim, "data")
    sim.advance(1)
    assert sim.node_of("db") == "b"


def test_makes_ephemeral_volumes_too(sim: Simulation) -> None:
    web = user("web", ephemeral=["cache"])
    sim.apply(storage_class(), node("a"))
    sim.schedule(web)
    waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
    assert f'{waiting} "web-cache"' in sim.why("web")
    sim.apply(claim("web-cache", owner=web))
    sim.advance(20)
    assert selected_node(sim, "web-cache") == "a"
    provision(sim, "web-cache")
    sim.advance(1)
    assert sim.node_of("web") == "a"


def test_sends_pods_that_share_a_claim_to_the_node_that_is_selected(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("shared"), *(node(name) for name in "abcdef"))
    sim.apply(*(user(f"web-{number}", "shared") for number in range(4)))
    sim.settle()
    where = selected_node(sim, "shared")
    sim.advance(1)
    provision(sim, "shared")
    sim.advance(60)
    assert set(sim.placements().values()) == {where}


def test_gives_up_after_the_time_out_and_tries_again(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    sim.advance(29)
    assert failures(sim) == []
    sim.advance(1)
    text = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert failures(sim) == [text]
    sim.advance(5)
    provision(sim, "data")
    sim.advance(20)
    assert sim.node_of("db") == "a"


def test_tries_again_when_the_driver_takes_the_node_off_the_claim(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    assert selected_node(sim, "data") == "a"
    forget_selection(sim, "data")
    sim.advance(1)
    text = 'running PreBind plugin "VolumeBinding": binding volumes: selectedNode annotation'
    assert failures(sim) == [f'{text} reset for PVC "data"']
    sim.advance(20)
    assert selected_node(sim, "data") == "a"
    provision(sim, "data")
    sim.advance(1)
    assert sim.node_of("db") == "a"


def test_tries_again_when_the_driver_selects_another_node(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    sim.apply(claim("data", selected="elsewhere"))
    sim.advance(1)
    assert failures(sim)[0].endswith('binding volumes: provisioning failed for PVC "data"')


def test_stops_waiting_when_the_claim_goes(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    sim.delete(claim("data"))
    sim.advance(1)
    missing = 'persistentvolumeclaims "default/data" not found'
    assert failures(sim)[0].endswith(f"failed to check provisioning pvc: {missing}")


def test_stops_waiting_for_a_pod_that_is_deleted(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    db = user("db", "data")
    sim.schedule(db)
    sim.delete(db)
    sim.advance(1)
    assert sim.scheduler.cache.pod_count == 0
    sim.apply(node("a"))
    provision(sim, "data")
    sim.schedule(user("next", "data"))
    assert sim.node_of("next") == "a"


def test_stops_waiting_when_the_node_goes(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    sim.delete(node("a"))
    sim.advance(1)
    missing = 'failed to get node "a": node "a" not found'
    assert failures(sim)[0].endswith(f"binding volumes: {missing}")


def test_does_not_bind_to_a_volume_that_the_node_cannot_reach(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    sim.apply(volume("made", on="elsewhere"))
    bind_claim(sim, "data", "made")
    sim.advance(1)
    problem = 'pv "made" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
    assert failures(sim)[0].endswith(f"binding volumes: {problem}")


def test_waits_for_news_of_a_volume_that_the_claim_names_already(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    bind_claim(sim, "data", "late")
    sim.advance(3)
    assert sim.node_of("db") == ""
    sim.apply(volume("late"))
    sim.advance(1)
    assert sim.node_of("db") == "a"
