"""One imagined run: a snapshot, what is done to it, and a scheduler that places what has no node.

The scheduler is that of production, on virtual time, and decides by class. The same snapshot, run
and seed give the same outcome. `what_if`, `compare` and `sweeps` are made of such runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import structs

from mooring import config as cfg
from mooring.api import core
from mooring.cache.pods import Pod
from mooring.errors import ConfigError, Problem
from mooring.framework.plugin import Base
from mooring.lens.snapshot import ClusterState, Snapshot
from mooring.lens.writing import without_plain_volumes
from mooring.runtime.registry import Registry
from mooring.simulator.changes import BudgetBreach, ClusterChanges, changed, follows_node, recreated
from mooring.simulator.claim_templates import released
from mooring.simulator.cluster import LocalCluster
from mooring.simulator.measures import ResourceUse, measured
from mooring.simulator.simulation import Simulation
from mooring.simulator.waiting import Reasons, Waiting
from mooring.simulator.watching import Watched, watch
from mooring.simulator.workloads import unscheduled

_LONGEST: Final = 120  # virtual seconds for backoff and preemption
_PREEMPTIONS: Final = 10  # rounds in which victims look for another node

OnBound = Callable[[int, int], None]
"""Called with the pods bound so far, and those that are to be bound; 0: not known."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What to imagine. `config` is a text; empty, it is that of the snapshot, or the default."""

    config: str = ""
    config_name: str = ""  # the file it was read from
    plugins: tuple[str, ...] = ()  # module:Class
    paths: tuple[str, ...] = ()  # where modules of plugins are looked for
    seed: int = 0
    changes: ClusterChanges = ClusterChanges()
    reschedule: bool = False  # pods that have a node are placed anew, too
    watched: dict[str, tuple[str, ...]] = {}  # pod -> nodes whose scores are wanted


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to; pods are "namespace/name"."""

    placements: dict[str, str]  # pod -> node; "" if it waits
    waiting: dict[str, Waiting]
    measures: tuple[ResourceUse, ...]
    evicted: tuple[str, ...] = ()
    unmanaged: tuple[str, ...] = ()
    budgets: tuple[BudgetBreach, ...] = ()
    added_nodes: tuple[str, ...] = ()
    preempted: tuple[str, ...] = ()  # victims, in order
    bound: int = 0  # decisions that ended with a binding
    notes: tuple[str, ...] = ()
    watched: dict[str, Watched] = {}


class ImaginedCluster(LocalCluster):
    """A cluster in memory that remembers victims, and says how far the scheduler is."""

    def __init__(self, on_bound: OnBound | None = None) -> None:
        super().__init__()
        self.victims: list[core.Pod] = []
        self.to_place: int = 0  # pods; 0: not known
        self._on_bound = on_bound

    async def delete_pod(self, pod: Pod) -> None:
        self.victims.append(pod.api)
        await super().delete_pod(pod)

    async def bind(self, binding: core.Binding) -> None:
        await super().bind(binding)
        if self._on_bound is not None and len(self.bindings) % 100 == 0:
            self._on_bound(len(self.bindings), self.to_place)


def configuration(
    snapshot: Snapshot, text: str, name: str = ""
) -> tuple[cfg.KubeSchedulerConfiguration, tuple[str, ...]]:
    """The configuration of a run, without extenders, and what has to be said about it."""
    if text:
        config = cfg.load_text(text, name or "configuration")
    elif snapshot.config is not None:
        config = cfg.load_text(json.dumps(snapshot.config), "configuration of the snapshot")
    else:
        return cfg.default_configuration(), ()
    if not config.extenders:
        return config, ()
    urls = ", ".join(extender.url_prefix for extender in config.extenders)
    note = f"extenders are not called: {urls}"
    return structs.replace(config, extenders=()), (note,)


def plugin_classes(paths: Iterable[str]) -> tuple[type[Base], ...]:
    """The classes of `module:Class`."""
    registry, problems, found = Registry.discover(), [], []
    for path in paths:
        try:
            found.append(registry.get(registry.add_path(path)))
        except LookupError as error:
            problems.append(Problem(f"--plugin {path}", str(error.args[0])))
    if problems:
        raise ConfigError(problems)
    return tuple(found)


def simulation(
    snapshot: Snapshot, run: Run, on_bound: OnBound | None = None
) -> tuple[Simulation, ImaginedCluster, tuple[str, ...]]:
    """A scheduler on an empty cluster, with the configuration of a run."""
    sys.path[:0] = [path for path in run.paths if path not in sys.path]
    config, notes = configuration(snapshot, run.config, run.config_name)
    cluster = ImaginedCluster(on_bound)
    sim = Simulation(
        config=config,
        plugins=plugin_classes(run.plugins),
        seed=run.seed,
        keep_attempts=False,
        cluster=cluster,
    )
    return sim, cluster, notes


def imagine(snapshot: Snapshot, run: Run, on_bound: OnBound | None = None) -> RunOutcome:
    """Carry a run out. ConfigError if it asks for what cannot be."""
    after = changed(snapshot.cluster, run.changes)
    sim, cluster, notes = simulation(snapshot, run, on_bound)
    with sim:
        watched = watch(sim.scheduler, run.watched)
        load(sim, after.cluster, reschedule=run.reschedule)
        cluster.to_place = sum(not pod.spec.node_name for pod in cluster.pods())
        finish(sim)
        victims = _settle_victims(sim, cluster)
        pods = [pod for pod in _known_pods(sim) if not pod.is_finished]
        return RunOutcome(
            placements={pod.key: pod.node_name for pod in pods},
            waiting=_waiting(sim, pods),
            measures=measured(sim.scheduler.cache.nodes, pods),
            evicted=after.evicted,
            unmanaged=after.unmanaged,
            budgets=after.budgets,
            added_nodes=after.added,
            preempted=tuple(victim.key for victim in victims),
            bound=len(cluster.bindings),
            notes=notes,
            watched=watched,
        )


def load(sim: Simulation, cluster: ClusterState, *, reschedule: bool = False) -> None:
    """Put the objects of a snapshot into a simulation; pods without a node in order of creation."""
    moving = {
        pod.uid
        for pod in cluster.pods
        if reschedule and pod.spec.node_name and not follows_node(pod)
    }
    cluster = released(cluster, moving)
    sim.apply(*cluster.nodes, *cluster.other_objects())
    stay: list[core.Pod] = []
    come: list[core.Pod] = []
    for pod in cluster.pods:
        if pod.uid in moving:
            come.append(_with_claims_of(pod, unscheduled(pod)))
        else:
            (stay if pod.spec.node_name else come).append(pod)
    come = [structs.replace(pod, spec=without_plain_volumes(pod.spec)) for pod in come]
    come.sort(key=lambda pod: pod.metadata.creation_timestamp or "9")
    sim.apply(*stay)
    sim.apply(*come)


def _with_claims_of(pod: core.Pod, again: core.Pod) -> core.Pod:
    """The pod keeps the claims that were made for it."""
    claims = pod.status.resource_claim_statuses
    status = structs.replace(again.status, resource_claim_statuses=claims)
    return structs.replace(again, status=status) if claims else again


def finish(sim: Simulation) -> None:
    """Let time pass until no pod is about to be tried."""
    sim.settle()
    for _ in range(_LONGEST):
        waiting = sim.scheduler.queue.pending()
        if not (waiting["active"] or waiting["backoff"]):
            return
        sim.advance(1.0)


def _settle_victims(sim: Simulation, cluster: ImaginedCluster) -> list[core.Pod]:
    """Controllers make their victims again; those may find another node, or evict others."""
    all_victims: list[core.Pod] = []
    for _ in range(_PREEMPTIONS):
        victims, cluster.victims = cluster.victims, []
        all_victims += victims
        again = [
            recreated(pod)
            for pod in victims
            if pod.metadata.controller is not None and not follows_node(pod)
        ]
        if not again:
            break
        sim.apply(*again)
        finish(sim)
    return all_victims + cluster.victims


def _known_pods(sim: Simulation) -> Iterator[Pod]:
    """All pods; those with a node as the scheduler knows them, for their requests are counted."""
    cache = sim.scheduler.cache
    return (cache.get_pod(pod.uid) or Pod(pod) for pod in sim.cluster.pods())


def _waiting(sim: Simulation, pods: Iterable[Pod]) -> dict[str, Waiting]:
    reasons = Reasons(sim.scheduler)
    found = {}
    for pod in pods:
        if not pod.node_name:
            said = [c.message for c in pod.api.status.conditions if c.type == "PodScheduled"]
            found[pod.key] = reasons.why(pod, said[0] if said else "")
    return found


def search_paths(*files: str) -> tuple[str, ...]:
    """Where the modules of plugins are looked for: the current folder, and beside the files."""
    return tuple(dict.fromkeys([str(Path.cwd()), *(str(Path(f).resolve().parent) for f in files)]))
