"""How many more pods fit: copies are scheduled until one does not fit, by the scheduler itself.

Nothing is evicted for them. At the end every node is asked why it refuses another pod, and for each
resource that is short somewhere, how many more would fit with one unit more of it on every node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
from msgspec import structs

from mooring.api import core
from mooring.api.meta import ResourceList
from mooring.api.quantity import Quantity, parse_quantity
from mooring.api.requests import EPHEMERAL_STORAGE, MEMORY
from mooring.api.resource import ResourceClaimTemplate
from mooring.cache.pods import Pod
from mooring.errors import ConfigError, Problem
from mooring.framework.plugin import QueueSort
from mooring.framework.status import Status
from mooring.lens.snapshot import Snapshot
from mooring.plugins.prioritysort import PrioritySort
from mooring.scheduler import diagnosis as diagnoses
from mooring.simulator.answers import CapacityAnswer, Gain, PodShape, told_by
from mooring.simulator.imagine import OnBound, Run, finish, load, simulation
from mooring.simulator.simulation import Simulation
from mooring.simulator.waiting import Refused, groups, resource_of, verdicts_on
from mooring.simulator.workloads import copied

_FIRST_BATCH: Final = 64  # pods that are put into the queue at once
_LARGEST_BATCH: Final = 2048
_UNITS: Final = {MEMORY: "1Gi", EPHEMERAL_STORAGE: "1Gi"}  # of others: 1


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that are to fit: `shapes` in the proportions of `mix`, `most` of them at most.

    `templates` of claims that they name are added to those of the snapshot.
    """

    shapes: tuple[core.Pod, ...]
    templates: tuple[ResourceClaimTemplate, ...] = ()
    mix: tuple[int, ...] = ()
    most: int | None = None
    gains: bool = True


def capacity(
    snapshot: Snapshot,
    demand: Demand,
    run: Run,
    *,
    name: str = "",
    on_bound: OnBound | None = None,
) -> CapacityAnswer:
    """How many of these pods fit beside what is there."""
    sim, _, notes = simulation(snapshot, run, on_bound)
    with sim:
        bound = [pod for pod in snapshot.cluster.pods if pod.spec.node_name]
        # Pods that wait already would take the room first, or never: they are not asked about.
        load(sim, structs.replace(snapshot.cluster, pods=tuple(bound)))
        sim.apply(*demand.templates)
        waiting = sum(
            1
            for pod in snapshot.cluster.pods
            if not pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed")
        )
        filling = Filling(sim, demand)
        filling.fill(demand.most)
        said = [*notes]
        if waiting:
            said.append(f"pods of the snapshot that wait are left out: {waiting:,}")
        return _answer(snapshot, filling, run, name, told_by(snapshot, *said))


class Filling:
    """Copies of the shapes on a cluster, in turn, until one does not fit."""

    def __init__(self, sim: Simulation, demand: Demand) -> None:
        self.sim: Simulation = sim
        self.demand: Demand = demand
        self.mix: tuple[int, ...] = demand.mix or (1,) * len(demand.shapes)
        self.placed: list[tuple[int, core.Pod]] = []  # shape and pod, in order
        self.refused: Pod | None = None
        self._shapes = tuple(_without_preemption(shape) for shape in demand.shapes)
        self._turn = [index for index, share in enumerate(self.mix) for _ in range(share)]
        self._made = 0
        self._check()
        runtime = next(iter(sim.scheduler.runtimes.values()))
        by_priority = isinstance(runtime.profile.at(QueueSort)[0], PrioritySort)
        alike = by_priority and len({shape.spec.priority for shape in self._shapes}) == 1
        # Pods of one batch are taken in the order of the queue, which may not be ours.
        self._largest = _LARGEST_BATCH if alike or len(self._shapes) == 1 else 1

    def _check(self) -> None:
        problems = []
        for shape in self._shapes:
            runtime = self.sim.scheduler.runtimes.get(shape.spec.scheduler_name)
            if runtime is None:
                known = ", ".join(self.sim.scheduler.runtimes)
                text = f"no profile for {shape.spec.scheduler_name}; there are: {known}"
                problems.append(Problem(f"{shape.metadata.name}: schedulerName", text))
                continue
            with _claimed(self.sim, Pod(shape)) as pod:
                gate = runtime.runner.pre_enqueue(pod)
            if not gate.ok:
                problems.append(Problem(shape.metadata.name, gate.message))
        if problems:
            raise ConfigError(problems)

    def fill(self, most: int | None) -> int:
        """Place pods until one does not fit, or `most` are placed; how many were."""
        before = len(self.placed)
        size = min(_FIRST_BATCH, self._largest)
        self.refused = None
        while self.refused is None:
            count = size if most is None else min(size, most - (len(self.placed) - before))
            if count <= 0:
                break
            self._place([self._next() for _ in range(count)])
            size = min(size * 2, self._largest)
        return len(self.placed) - before

    def try_more(self) -> int:
        """How many more fit now; they are taken away again."""
        made = self._made
        count = self.fill(None)
        if count:
            self.sim.delete(*(pod for _, pod in self.placed[-count:]))
            del self.placed[-count:]
        self._made = made
        return count

    def _next(self) -> tuple[int, core.Pod]:
        index = self._turn[self._made % len(self._turn)]
        shape = self._shapes[index]
        self._made += 1
        return index, copied(shape, f"{shape.metadata.name}-{self._made}")

    def _place(self, batch: list[tuple[int, core.Pod]]) -> None:
        sim = self.sim
        sim.apply(*(pod for _, pod in batch))
        sim.settle()
        keys = [pod.key for _, pod in batch]
        if not all(map(sim.node_of, keys)):
            finish(sim)  # an error is tried again
        for place, key in enumerate(keys):
            if not sim.node_of(key):
                self.refused = Pod(batch[place][1])
                # A later pod may have fitted: the first that does not fit is the end. Those that
                # wait go first, or they would be tried when others go.
                rest = sorted((pod for _, pod in batch[place:]), key=lambda p: sim.node_of(p.key))
                sim.delete(*rest)
                self._made -= len(batch) - place
                batch = batch[:place]
                break
        self.placed += batch


def _without_preemption(shape: core.Pod) -> core.Pod:
    spec = structs.replace(shape.spec, preemption_policy="Never", node_name="")
    return structs.replace(shape, spec=spec, status=core.PodStatus(phase="Pending"))


def _answer(
    snapshot: Snapshot, filling: Filling, run: Run, name: str, notes: tuple[str, ...]
) -> CapacityAnswer:
    sim, demand = filling.sim, filling.demand
    counts = Counter(index for index, _ in filling.placed)
    nodes = Counter(sim.node_of(pod.key) for _, pod in filling.placed)
    total, refused = len(filling.placed), filling.refused
    found, message = _refusals(sim, refused) if refused is not None else ([], "")
    gains = _gains(filling, found) if refused is not None and demand.gains else ()
    return CapacityAnswer(
        snapshot=name,
        seed=run.seed,
        missing=snapshot.missing,
        notes=notes,
        total=total,
        nodes={node.metadata.name: nodes[node.metadata.name] for node in snapshot.cluster.nodes},
        bottlenecks=_bottlenecks(found),
        pods=tuple(
            PodShape(name=shape.metadata.name, share=filling.mix[index], count=counts[index])
            for index, shape in enumerate(demand.shapes)
        ),
        limited=refused is None,
        refused_pod=refused.name.rpartition("-")[0] if refused is not None else "",
        message=message,
        refused=tuple(found),
        gains=gains,
    )


def _refusals(sim: Simulation, pod: Pod) -> tuple[list[Refused], str]:
    """Why each node refuses another pod, and kube-scheduler's sentence."""
    runtime, nodes = sim.scheduler.runtimes[pod.scheduler_name], sim.scheduler.cache.nodes
    with _claimed(sim, pod) as claimed:
        verdicts = verdicts_on(runtime, claimed, nodes)
    if isinstance(verdicts, Status):
        all_nodes = Refused(plugin=verdicts.plugin, reasons=verdicts.reasons, nodes=len(nodes))
        return [all_nodes], diagnoses.of_pre_filter(verdicts, len(nodes)).message
    return groups(pod, nodes, verdicts), diagnoses.of_verdicts(verdicts).message


@contextmanager
def _claimed(sim: Simulation, pod: Pod) -> Iterator[Pod]:
    """Inside, the pod has the claims that templates make for it."""
    api, claims = sim.cluster.with_claims(pod.api)
    sim.apply(*claims)
    yield Pod(api) if claims else pod
    sim.delete(*claims)


def _bottlenecks(refused: Sequence[Refused]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for one in refused:
        counted[", ".join(resource_of(reason) or reason for reason in one.reasons)] += one.nodes
    return dict(counted.most_common())


def _gains(filling: Filling, refused: Sequence[Refused]) -> tuple[Gain, ...]:
    """What one unit more of each resource brings; of those that are short nowhere, nothing."""
    short = {resource_of(reason) for one in refused for reason in one.reasons} - {""}
    asked = dict.fromkeys(
        resource for shape in filling.demand.shapes for resource in Pod(shape).all_requests
    )
    found = []
    for resource in (*asked, *sorted(short - asked.keys())):
        unit = _UNITS.get(resource, "1")
        pods = _gain(filling, resource, parse_quantity(unit)) if resource in short else 0
        found.append(Gain(resource=resource, unit=unit, pods=pods))
    return tuple(found)


def _gain(filling: Filling, resource: str, unit: Quantity) -> int:
    sim = filling.sim
    nodes = sim.cluster.nodes()
    sim.apply(*(_with_more(node, resource, unit) for node in nodes))
    count = filling.try_more()
    sim.apply(*nodes)
    sim.settle()
    return count


def _with_more(node: core.Node, resource: str, unit: Quantity) -> core.Node:
    offered = node.status.allocatable
    more = ResourceList({**offered, resource: offered.get(resource, Quantity.ZERO) + unit})
    return structs.replace(node, status=structs.replace(node.status, allocatable=more))
