"""The volume controller and the storage driver, in a simulation."""

from msgspec import structs
from tests.plugins.volumes.storage import BOUND, SELECTED, volume

from mooring.api.core import PersistentVolume, PersistentVolumeClaim
from mooring.api.frozen import FrozenDict
from mooring.testing import Simulation

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: VolumeBinding
        args: {bindTimeoutSeconds: 30}
"""


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


def complete_bindings(sim: Simulation) -> None:
    """The volume controller: a claim that a volume names gets that volume."""
    for known in sim.scheduler.cache.objects.list(PersistentVolume):
        named = known.spec.claim_ref
        if named is not None and named.uid:
            bind_claim(sim, named.name, known.name)


def provision(sim: Simulation, name: str) -> None:
    """The driver: makes a volume where the claim wants it, and binds the two."""
    where = selected_node(sim, name)
    made = f"made-for-{name}"
    sim.apply(volume(made, on=where, prebound_to=name, uid=stored_claim(sim, name).uid))
    bind_claim(sim, name, made)


def forget_selection(sim: Simulation, name: str) -> None:
    """The driver could not make a volume, and says so by taking the node off the claim."""
    known = stored_claim(sim, name)
    kept = {key: text for key, text in known.metadata.annotations.items() if key != SELECTED}
    metadata = structs.replace(known.metadata, annotations=FrozenDict(kept))
    sim.apply(structs.replace(known, metadata=metadata))


def failures(sim: Simulation) -> list[str]:
    return [event.note for event in sim.events if event.reason == "FailedScheduling"]
