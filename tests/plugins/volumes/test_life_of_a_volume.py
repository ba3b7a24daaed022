"""Claims that get a volume that exists: from the decision to the running pod."""

from collections.abc import Iterator

import pytest
from msgspec import structs
from tests.plugins.volumes.simulated_controllers import (
    CONFIG,
    bind_claim,
    complete_bindings,
    failures,
    provision,
    selected_node,
    stored_claim,
    stored_volume,
)
from tests.plugins.volumes.storage import claim, storage_class, user, volume

from mooring.api.meta import Object
from mooring.errors import ApiError
from mooring.framework import OK, CycleState, Permit, Pod, Status
from mooring.testing import Simulation, node


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation(config=CONFIG) as simulation:
        yield simulation


def test_promises_a_free_volume_to_the_claim_and_waits_until_both_are_bound(
    sim: Simulation,
) -> None:
    local = storage_class(provisioner="kubernetes.io/no-provisioner")
    sim.apply(local, claim("data"), volume("disk", on="b"), node("a"), node("b"))
    sim.schedule(user("db", "data"))
    disk = stored_volume(sim, "disk")
    assert disk.spec.claim_ref is not None
    assert disk.spec.claim_ref.name == "data"
    assert disk.spec.claim_ref.uid == stored_claim(sim, "data").uid
    assert disk.metadata.annotations["pv.kubernetes.io/bound-by-controller"] == "yes"
    sim.advance(3)
    assert sim.node_of("db") == ""
    complete_bindings(sim)
    sim.advance(1)
    assert sim.node_of("db") == "b"


def test_announces_the_node_while_the_claims_are_being_bound(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    assert sim.pod("db").status.nominated_node_name == "a"


def test_completes_what_people_had_promised_by_name(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.apply(volume("theirs", size="9Gi", prebound_to="data"), volume("smaller"))
    sim.schedule(user("db", "data"))
    theirs = stored_volume(sim, "theirs")
    assert theirs.spec.claim_ref is not None
    assert theirs.spec.claim_ref.uid == stored_claim(sim, "data").uid
    assert "pv.kubernetes.io/bound-by-controller" not in theirs.metadata.annotations
    assert stored_volume(sim, "smaller").spec.claim_ref is None


def test_gives_one_volume_to_one_of_two_pods(sim: Simulation) -> None:
    local = storage_class(provisioner="kubernetes.io/no-provisioner")
    sim.apply(local, claim("first"), claim("second"), volume("disk", on="a"), node("a"))
    sim.apply(user("one", "first"), user("two", "second"))
    sim.settle()
    winner = stored_volume(sim, "disk").spec.claim_ref
    assert winner is not None
    assert winner.name == "first"
    text = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."
    assert sim.why("two").startswith(text)
    complete_bindings(sim)
    sim.advance(1)
    assert sim.placements() == {"one": "a", "two": ""}
    sim.apply(volume("more", on="a"))
    sim.advance(20)
    complete_bindings(sim)
    sim.advance(1)
    assert sim.placements() == {"one": "a", "two": "a"}


class NoWeb(Permit):
    """Turns away the pods whose name starts with web."""

    name = "NoWeb"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return Status.unschedulable("no web today") if pod.name.startswith("web") else OK


def test_leaves_the_volume_to_others_when_the_pod_is_turned_away() -> None:
    enabled = "    plugins: {multiPoint: {enabled: [{name: NoWeb}]}}\n"
    with Simulation(config=CONFIG + enabled, plugins=[NoWeb]) as sim:
        local = storage_class(provisioner="kubernetes.io/no-provisioner")
        sim.apply(local, claim("first"), claim("second"), volume("disk"), node("a"))
        sim.schedule(user("web", "first"))
        assert "no web today" in sim.why("web")
        assert stored_volume(sim, "disk").spec.claim_ref is None
        sim.schedule(user("db", "second"))
        winner = stored_volume(sim, "disk").spec.claim_ref
        assert winner is not None
        assert winner.name == "second"


def test_tries_again_when_the_server_refuses_a_write(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(value: Object) -> None:
        raise ApiError("the object has been modified")

    sim.apply(storage_class(), claim("data"), claim("more"), volume("disk"), node("a"))
    with monkeypatch.context() as patch:
        patch.setattr(sim.cluster, "update", refuse)
        sim.schedule(user("db", "data", "more"))
    text = 'running PreBind plugin "VolumeBinding": the object has been modified'
    assert failures(sim) == [text]
    assert selected_node(sim, "more") is None
    sim.advance(20)
    complete_bindings(sim)
    provision(sim, "more")
    sim.advance(1)
    assert sim.node_of("db") == "a"


def test_fails_when_a_promise_is_taken_back(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), volume("disk"), node("a"))
    sim.schedule(user("db", "data"))
    known = stored_volume(sim, "disk")
    sim.apply(structs.replace(known, spec=structs.replace(known.spec, claim_ref=None)))
    sim.advance(1)
    assert failures(sim)[0].endswith('binding volumes: ClaimRef got reset for pv "disk"')


@pytest.mark.parametrize(
    ("what", "missing"),
    [
        ("volume", 'persistentvolumes "disk" not found'),
        ("claim", 'persistentvolumeclaims "default/data" not found'),
    ],
)
def test_stops_waiting_when_the_volume_or_the_claim_goes(
    sim: Simulation, what: str, missing: str
) -> None:
    sim.apply(storage_class(), claim("data"), volume("disk"), node("a"))
    sim.schedule(user("db", "data"))
    sim.delete(stored_volume(sim, "disk") if what == "volume" else stored_claim(sim, "data"))
    sim.advance(1)
    assert failures(sim)[0].endswith(f"binding volumes: failed to check binding: {missing}")


def test_does_not_wait_for_claims_that_are_bound(sim: Simulation) -> None:
    sim.apply(claim("data", bound_to="disk"), volume("disk", on="b"), node("a"), node("b"))
    sim.schedule(user("db", "data"))
    assert sim.node_of("db") == "b"
    assert sim.pod("db").status.nominated_node_name == ""


def test_starts_when_an_immediate_claim_gets_bound(sim: Simulation) -> None:
    sim.apply(storage_class("now", mode="Immediate"), claim("data", storage_class="now"))
    sim.apply(node("a"))
    sim.schedule(user("db", "data"))
    assert "pod has unbound immediate PersistentVolumeClaims" in sim.why("db")
    sim.apply(volume("disk", storage_class="now"))
    bind_claim(sim, "data", "disk")
    sim.advance(20)
    assert sim.node_of("db") == "a"
