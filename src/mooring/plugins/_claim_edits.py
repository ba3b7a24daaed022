"""What the volume plugins say of their refusals: claims, volumes, and the pods that use them."""

from collections.abc import Callable, Iterable, Iterator

from msgspec import structs

import mooring.framework as fw
from mooring.api.frozen import FrozenDict
from mooring.api.meta import ObjectMeta
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.objects import Objects
from mooring.framework._internal import Base
from mooring.framework.explaining import ObjectChange, listed
from mooring.plugins._volume_claims import BIND_COMPLETED, claim_name, is_bound


class ExplainsClaims(Base):
    """Refusals because of claims that are not bound, and of volumes that are elsewhere."""

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        yield from claim_facts(pod, self.handle.objects)
        yield from bound_volume_facts(pod, self.handle.objects)

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        return bind_claims(pod, self.handle.objects)


def claims_of(pod: fw.Pod, objects: Objects) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    """The names of a pod's claims, and the claims that exist."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name:
            yield name, objects.get(PersistentVolumeClaim, name, pod.namespace)


def claim_facts(pod: fw.Pod, objects: Objects) -> Iterator[fw.Fact]:
    """Claims that do not exist, or wait for a volume."""
    for name, claim in claims_of(pod, objects):
        key = f"{pod.namespace}/{name}"
        if claim is None:
            yield fw.Fact(text=f"claim {key} does not exist", waits_for="nothing")
        elif not is_bound(claim):
            yield fw.Fact(text=f"claim {key} is not bound", waits_for="others")


def bound_volume_facts(pod: fw.Pod, objects: Objects) -> Iterator[fw.Fact]:
    """Where the volumes of a pod are, as their labels and node affinity say."""
    for name, claim in claims_of(pod, objects):
        volume_name = claim.spec.volume_name if claim is not None else ""
        volume = objects.get(PersistentVolume, volume_name) if volume_name else None
        if volume is None:
            if volume_name:
                yield fw.Fact(text=f"volume {volume_name} of claim {name} does not exist")
            continue
        zones = [f"{k}={v}" for k, v in volume.metadata.labels.items() if "/zone" in k]
        affinity = volume.spec.node_affinity
        terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
        tests = [
            f"{test.key} {test.operator} {', '.join(test.values)}".strip()
            for term in terms
            for test in term.match_expressions
        ]
        where = " or ".join(tests or zones)
        if where:
            yield fw.Fact(text=f"volume {volume.name} of claim {name} needs {where}")


def bind_claims(pod: fw.Pod, objects: Objects) -> Iterator[fw.Edit]:
    """The claims that do not exist or have no volume get one that every node can reach."""
    waiting = {
        name: claim
        for name, claim in claims_of(pod, objects)
        if claim is None or not is_bound(claim)
    }
    if not waiting:
        return
    changes: list[ObjectChange] = []
    for name in waiting:
        volume = f"volume-for-{pod.namespace}-{name}"
        changes.append(
            ObjectChange(
                PersistentVolumeClaim, pod.namespace, name, _bound(pod.namespace, name, volume)
            )
        )
        changes.append(ObjectChange(PersistentVolume, "", volume, _volume(volume)))
    missing = any(claim is None for claim in waiting.values())
    word = "claim" if len(waiting) == 1 else "claims"
    names = listed(f"{pod.namespace}/{name}" for name in waiting)
    verb = ("is " if len(waiting) == 1 else "are ") + ("created and bound" if missing else "bound")
    yield fw.Edit(
        target="others", text=f"{word} {names} {verb}", changes=tuple(changes), family="claims"
    )


def end_users(text: str, pods: Iterable[fw.Pod]) -> Iterator[fw.Edit]:
    """The pods that hold what this one needs end."""
    found = list({pod.uid: pod for pod in pods}.values())
    if found:
        ends = "ends" if len(found) == 1 else "end"
        names = listed(pod.key for pod in found)
        yield fw.Edit.end_pods(f"{names} {ends}: {text}", found, family="volumes")


def _bound(
    namespace: str, name: str, volume: str
) -> Callable[[PersistentVolumeClaim | None], PersistentVolumeClaim]:
    def to(claim: PersistentVolumeClaim | None) -> PersistentVolumeClaim:
        if claim is None:
            meta = ObjectMeta(name=name, namespace=namespace)
            claim = PersistentVolumeClaim(metadata=meta)
        notes = FrozenDict({**claim.metadata.annotations, BIND_COMPLETED: "yes"})
        return structs.replace(
            claim,
            metadata=structs.replace(claim.metadata, annotations=notes),
            spec=structs.replace(claim.spec, volume_name=volume),
            status=structs.replace(claim.status, phase="Bound"),
        )

    return to


def _volume(name: str) -> Callable[[object], PersistentVolume]:
    return lambda before: PersistentVolume(metadata=ObjectMeta(name=name))
