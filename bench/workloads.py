"""What is scheduled in the benchmarks in process.

Pods as controllers make them come from `bench.manifests`, full clusters and volumes from
`bench.shapes`; `bench.versus` uses both as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import structs

import mooring.framework as fw
from bench import manifests
from bench.shapes import BIND_COMPLETED, SHAPES, Shape
from mooring.api import KINDS, codec, core
from mooring.api.frozen import FrozenDict
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.simulator import Simulation
from mooring.testing import node, pod
from mooring.testing.builders import HOSTNAME, ZONE

ZONES = 10
CLASSES = 100


def node_name(number: int) -> str:
    return f"node-{number:05}"


def cluster(count: int, first: int = 0) -> list[fw.Node]:
    """Identical nodes of 32 cores and 64 GiB over ten zones, numbered from `first`."""
    return [
        node(node_name(i), cpu=32, memory="64Gi", zone=f"zone-{i % ZONES}")
        for i in range(first, first + count)
    ]


def basic(i: int) -> fw.Pod:
    """A pod that asks for cpu and memory and nothing else."""
    return pod(f"basic-{i}", cpu="100m", memory="200Mi")


def node_affinity(i: int) -> fw.Pod:
    """A pod that may run in two of the ten zones."""
    zones = {"key": "topology.kubernetes.io/zone", "operator": "In"}
    term = {"matchExpressions": [{**zones, "values": ["zone-1", "zone-2"]}]}
    required = {"nodeSelectorTerms": [term]}
    rules = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod(f"zonal-{i}", cpu="100m", memory="200Mi", affinity=rules)


def spread(i: int) -> fw.Pod:
    """A pod that must be spread over the zones."""
    return pod(f"spread-{i}", cpu="100m", memory="200Mi", labels={"app": "s"}, spread={"zone": 1})


def preferred_spread(i: int) -> fw.Pod:
    """A pod that should be spread over the zones if that is possible."""
    selector = {"matchLabels": {"app": "w"}}
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    spec = {"topologySpreadConstraints": [{**rule, "labelSelector": selector}]}
    return pod(f"even-{i}", cpu="100m", memory="200Mi", labels={"app": "w"}, spec=spec)


def _term(topology: str, app: str) -> dict[str, Any]:
    return {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": app}}}


def affinity(i: int) -> fw.Pod:
    """A pod that must be in a zone with others of its kind."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(ZONE, "a")]}
    rules = {"podAffinity": required}
    return pod(f"affine-{i}", cpu="100m", memory="200Mi", labels={"app": "a"}, affinity=rules)


def anti_affinity(i: int) -> fw.Pod:
    """A pod that wants a node without others of its kind, ten kinds in turn."""
    app = f"x{i % 10}"
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(HOSTNAME, app)]}
    rules = {"podAntiAffinity": required}
    return pod(f"anti-{i}", cpu="100m", memory="200Mi", labels={"app": app}, affinity=rules)


def preferred_affinity(i: int) -> fw.Pod:
    """A pod that would like to be on a node with others of its kind."""
    wish = {"weight": 1, "podAffinityTerm": _term(HOSTNAME, "p")}
    rules = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    return pod(f"wish-{i}", cpu="100m", memory="200Mi", labels={"app": "p"}, affinity=rules)


def preferred_anti_affinity(i: int) -> fw.Pod:
    """A pod that would rather be on a node without others of its kind."""
    wish = {"weight": 1, "podAffinityTerm": _term(HOSTNAME, "q")}
    rules = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    return pod(f"shy-{i}", cpu="100m", memory="200Mi", labels={"app": "q"}, affinity=rules)


def mixed(i: int) -> fw.Pod:
    """Six kinds in turn."""
    kinds = (basic, spread, affinity, anti_affinity, preferred_affinity, node_affinity)
    return kinds[i % len(kinds)](i)


def hundred_classes(i: int) -> fw.Pod:
    """A pod of one of a hundred classes that differ in requests and labels, in random order.

    Each hundred pods have all of them, so that all are known after the first hundred.
    """
    order = random.Random(i // CLASSES).sample(range(CLASSES), CLASSES)
    kind = order[i % CLASSES]
    cpu, memory = f"{50 + 10 * (kind % 10)}m", f"{100 + 20 * (kind // 10)}Mi"
    return pod(f"class-{i}", cpu=cpu, memory=memory, labels={"app": f"app-{kind}"})


def thousand_classes(i: int) -> fw.Pod:
    """A pod with one of a thousand app labels that no selector names, and one of 40 requests."""
    app = i % 1_000
    cpu, memory = f"{50 + 10 * (app % 8)}m", f"{100 + 20 * (app // 8 % 5)}Mi"
    return pod(f"app-{i}", cpu=cpu, memory=memory, labels={"app": f"app-{app}"})


def distinct_requests(i: int) -> fw.Pod:
    """A pod that asks for another amount of cpu and of memory than every other pod."""
    cpu, memory = manifests.distinct_requests(i)
    return pod(f"distinct-{i}", cpu=cpu, memory=memory)


def own_affinity(i: int) -> fw.Pod:
    """A pod with a preferred anti-affinity that only this pod has, to a label only it has."""
    app = f"own-{i}"
    wish = {"weight": 1, "podAffinityTerm": _term(HOSTNAME, app)}
    rules = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    return pod(app, cpu="100m", memory="200Mi", labels={"app": app}, affinity=rules)


def index_label_and_spread(i: int) -> fw.Pod:
    """A pod of `spread` with a label of its own that the spread does not select by."""
    labels = {"app": "t", manifests.POD_INDEX: str(i)}
    spec = {"topologySpreadConstraints": [manifests.zone_spread("t", "DoNotSchedule")]}
    return pod(f"indexed-{i}", cpu="100m", memory="200Mi", labels=labels, spec=spec)


def _made(manifest: Callable[[int], manifests.Object]) -> Callable[[int], fw.Pod]:
    """A workload of the pods that these manifests describe."""

    def make(i: int) -> fw.Pod:
        value = manifest(i)
        meta = {**value["metadata"], "namespace": "default", "uid": f"uid-{i}"}
        return fw.Pod(codec.convert({**value, "metadata": meta}, core.Pod))

    return make


class Shaped:
    """A workload of a shape: its pods, by number, and what has to be there before them."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._pod = _made(shape.pod)
        self.at_most: Callable[[int], int] = shape.at_most

    def __call__(self, i: int) -> fw.Pod:
        return self._pod(i)

    def prepare(self, sim: Simulation, nodes: int, pods: int) -> None:
        """Create what is there before the pods."""
        kinds = {kind.KIND: kind for kind in KINDS}
        for value in self._shape.before(nodes, pods, node_name):
            sim.apply(codec.convert(value, kinds[value["kind"]]))

    def settle(self, sim: Simulation) -> None:
        """Let the scheduler work; chosen volumes are bound as a volume controller would."""
        sim.settle()
        if self._shape.binds_claims:
            sim.apply(*_bound(sim, _chosen_volumes(sim)))
            sim.advance(1)  # the scheduler looks once a second


def _chosen_volumes(sim: Simulation) -> list[PersistentVolume]:
    volumes = sim.scheduler.cache.objects.list(PersistentVolume)
    return [it for it in volumes if it.spec.claim_ref is not None and it.status.phase != "Bound"]


def _bound(sim: Simulation, volumes: Iterable[PersistentVolume]) -> Iterable[Any]:
    objects = sim.scheduler.cache.objects
    for volume in volumes:
        reference = volume.spec.claim_ref
        assert reference is not None
        claim = objects.get(PersistentVolumeClaim, reference.name, reference.namespace)
        assert claim is not None
        annotations = FrozenDict({**claim.metadata.annotations, BIND_COMPLETED: "yes"})
        yield structs.replace(
            claim,
            metadata=structs.replace(claim.metadata, annotations=annotations),
            spec=structs.replace(claim.spec, volume_name=volume.name),
        )
        yield structs.replace(volume, status=structs.replace(volume.status, phase="Bound"))


def too_big(i: int) -> fw.Pod:
    """A pod that fits nowhere: every attempt ends in a full diagnosis."""
    return pod(f"big-{i}", cpu="64", memory="200Mi")


WORKLOADS: dict[str, Callable[[int], fw.Pod]] = {
    "basic": basic,
    "spread": spread,
    "preferred spread": preferred_spread,
    "affinity": affinity,
    "anti-affinity": anti_affinity,
    "preferred affinity": preferred_affinity,
    "preferred anti-affinity": preferred_anti_affinity,
    "node affinity": node_affinity,
    "mixed": mixed,
    "100 classes": hundred_classes,
    "unschedulable": too_big,
    "indexed job": _made(manifests.indexed_job),
    "statefulset": _made(manifests.statefulset),
    "statefulset anti-affinity": _made(manifests.statefulset_anti_affinity),
    "distinct requests": distinct_requests,
    "1000 classes": thousand_classes,
    "own affinity": own_affinity,
    "index label + spread": index_label_and_spread,
    "realistic mix": _made(manifests.realistic_mix),
    **{name.replace("-", " "): Shaped(shape) for name, shape in SHAPES.items()},
}
