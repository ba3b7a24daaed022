"""From a claim that waits to a pod that runs: the whole life, with tests that play the cluster.

The volume controller and the storage driver are played by the functions `complete_promises` and
`provision`.
"""

from collections.abc import Iterator

import pytest
from msgspec import structs
from tests.plugins.volumes.storage import BOUND, SELECTED, claim, storage_class, user, volume

from mooring.api.core import PersistentVolume, PersistentVolumeClaim
from mooring.api.frozen import FrozenDict
from mooring.api.meta import Object
from mooring.errors import ApiError
from mooring.framework import OK, CycleState, Permit, Pod, Status
from mooring.testing import Simulation, node

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: VolumeBinding
        args: {bindTimeoutSeconds: 30}
"""


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation(config=CONFIG) as simulation:
        yield simulation


def stored_claim(sim: Simulation, name: str) -> PersistentVolumeClaim:
    found = sim.scheduler.cache.objects.get(PersistentVolumeClaim, name, "default")
    assert found is not None
    return found


def stored_volume(sim: Simulation, name: str) -> PersistentVolume:
    found = sim.scheduler.cache.objects.get(PersistentVolume, name)
    assert found is not None
    return found


def selected_node(sim: Simulation, name: str) -> str | None:
    return stored_claim(sim, name).metadata.annotations.get(SELECTED)


def bind_claim(sim: Simulation, name: str, volume_name: str) -> None:
    known = stored_claim(sim, name)
    annotations = FrozenDict({**known.metadata.annotations, **BOUND})
    sim.apply(
        structs.replace(
            known,
            metadata=structs.replace(known.metadata, annotations=annotations),
            spec=structs.replace(known.spec, volume_name=volume_name),
        )
    )


def complete_promises(sim: Simulation) -> None:
    """The volume controller: a claim that a volume names gets that volume."""
    for known in sim.scheduler.cache.objects.list(PersistentVolume):
        named = known.spec.claim_ref
        if named is not None and named.uid:
            bind_claim(sim, named.name, known.name)


def provision(sim: Simulation, name: str) -> None:
    """The driver: makes a volume where the claim wants it, and binds the two."""
    where = selected_node(sim, name)
    made = f"made-for-{name}"
    sim.apply(volume(made, on=where, promised_to=name, uid=stored_claim(sim, name).uid))
    bind_claim(sim, name, made)


def forget_selection(sim: Simulation, name: str) -> None:
    """The driver could not make a volume, and says so by taking the node off the claim."""
    known = stored_claim(sim, name)
    kept = {key: text for key, text in known.metadata.annotations.items() if key != SELECTED}
    metadata = structs.replace(known.metadata, annotations=FrozenDict(kept))
    sim.apply(structs.replace(known, metadata=metadata))


def failures(sim: Simulation) -> list[str]:
    return [event.note for event in sim.events if event.reason == "FailedScheduling"]


# --- volumes that exist ---------------------------------------------------------------------------


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
    complete_promises(sim)
    sim.advance(1)
    assert sim.node_of("db") == "b"


def test_announces_the_node_while_the_claims_are_being_bound(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.schedule(user("db", "data"))
    assert sim.pod("db").status.nominated_node_name == "a"


def test_completes_what_people_had_promised_by_name(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), node("a"))
    sim.apply(volume("theirs", size="9Gi", promised_to="data"), volume("smaller"))
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
    complete_promises(sim)
    sim.advance(1)
    assert sim.placements() == {"one": "a", "two": ""}
    sim.apply(volume("more", on="a"))
    sim.advance(20)
    complete_promises(sim)
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
    complete_promises(sim)
    provision(sim, "more")
    sim.advance(1)
    assert sim.node_of("db") == "a"


# --- volumes to be made ---------------------------------------------------------------------------


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


def test_fails_when_a_promise_is_taken_back(sim: Simulation) -> None:
    sim.apply(storage_class(), claim("data"), volume("disk"), node("a"))
    sim.schedule(user("db", "data"))
    known = stored_volume(sim, "disk")
    sim.apply(structs.replace(known, spec=structs.replace(known.spec, claim_ref=None)))
    sim.advance(1)
    assert failures(sim)[0].endswith('binding volumes: ClaimRef got reset for pv "disk"')


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
