"""A journal decided again: with the same configuration, or with another.

With the configuration of the journal every attempt is decided on the cluster as it was, so a
placement that differs is a decision that can't be repeated. With another configuration, creations,
deletions and changes of nodes come as they came; where its own pods go, and which pods are evicted
for them, is decided anew. A pod that finds no node is tried again when pods leave or nodes change.

The same journal and configuration give the same answer, to the byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import structs

from mooring import config as cfg
from mooring.api import codec, core
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.errors import ConfigError, InternalError, Problem
from mooring.framework.plugin import Base
from mooring.framework.state import CycleState
from mooring.framework.status import OK
from mooring.lens.decider import Decider
from mooring.lens.journal import NOTHING, Decided, JournalLine
from mooring.lens.journal_reading import kind_of, read_object
from mooring.queue.nominator import NominatedPods
from mooring.runtime.commit import Committer
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry
from mooring.runtime.runner import at_once
from mooring.scheduler.cycle import Cycle, Decision, Rotation

VERSION: Final = 1
_MOST_AGAIN: Final = 100  # waiting pods that are tried again at a time


class ReplayDifference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An attempt that was decided otherwise; "" is no node."""

    seq: int
    pod: str
    recorded: str  # node
    replayed: str
    message: str = ""  # why there is none


class ReplayAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The schema of `mooring replay -o json`, version 1."""

    version: int = VERSION
    config: str  # "" for that of the journal
    attempts: int
    equal: int
    different: int
    skipped: int  # of schedulers that the configuration does not have
    placed: int  # pods
    waiting: tuple[str, ...]  # pods that have no node at the end, of another configuration
    evicted: int  # pods, by another configuration
    differences: tuple[ReplayDifference, ...]  # the first of them, see `different`
    notes: tuple[str, ...] = ()


class _ReplayClock:
    """The time of the attempt that is being decided."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        raise InternalError("a decision waits, and time stands still in a replay")


class _NoWrites:
    """Fulfils `framework.Client` and `framework.Recorder`: nothing is written."""

    async def bind(self, *args: object) -> None:
        raise InternalError("nothing is written in a replay")

    patch_pod_status = delete_pod = update = bind

    def soon(self, write: object) -> None:
        """A write in the background: there is none."""

    def event(self, *args: object, **kwargs: object) -> None:
        """An Event would be a write: there is none."""


class Replay:
    """One pass over the lines of a journal; `config` is a text, or "" for that of the journal."""

    def __init__(
        self,
        config: str = "",
        name: str = "",
        plugins: Iterable[type[Base]] = (),
        *,
        most_differences: int = 1_000,
    ) -> None:
        self._config = config
        self._name = name
        self._plugins = tuple(plugins)
        self._is_other = bool(config)
        self._most = most_differences
        self._clock = _ReplayClock()
        self._plans: dict[str, ProfilePlan] = {}
        self._percentage: int | None = None
        self._own: dict[str, str] = {}  # node of each decided pod, by uid; "": it waits
        self._begin()
        self._is_room = False
        self._counts = {"attempts": 0, "equal": 0, "skipped": 0, "evicted": 0}
        self._differences: list[ReplayDifference] = []
        self._different = 0

    def run(
        self, lines: Iterable[JournalLine], on_attempt: Callable[[int], None] | None = None
    ) -> ReplayAnswer:
        """All of them."""
        for line in lines:
            if line.journal:
                if line.fresh:
                    self._begin()
                self._configure(line.config)
            elif line.decide is not None:
                self._again()
                self._attempt(line.decide, codec.decode(bytes(line.asked), core.Pod))
                if on_attempt is not None:
                    on_attempt(self._counts["attempts"])
            else:
                self._take(line)
        self._again()
        return ReplayAnswer(
            config=self._name,
            attempts=self._counts["attempts"],
            equal=self._counts["equal"],
            different=self._different,
            skipped=self._counts["skipped"],
            placed=sum(bool(node) for node in self._own.values()),
            waiting=tuple(sorted(pod.key for pod in self._waiting.values())),
            evicted=self._counts["evicted"],
            differences=tuple(self._differences),
            notes=self._notes(),
        )

    # --- the scheduler -------------------------------------------------------------------------

    def _begin(self) -> None:
        """A process began to write: what is there follows, and only own placements are kept."""
        self._cache = Cache()
        self._nominator = NominatedPods()
        self._cycles: dict[str, tuple[Cycle, Committer]] = {}
        self._waiting: dict[str, Pod] = {}

    def _configure(self, recorded: Any) -> None:
        if self._is_other:
            config = cfg.load_text(self._config, self._name or "configuration")
        elif recorded is not None:
            config = cfg.load_text(msgspec.json.encode(recorded).decode(), "the journal")
        else:
            config = cfg.default_configuration()
        if config.extenders:
            raise ConfigError([Problem("extenders", "a replay can't ask them")])
        plans = plan_profiles(config, Registry.discover(self._plugins))
        self._plans = {plan.scheduler_name: plan for plan in plans}
        self._percentage = config.percentage_of_nodes_to_score

    def _scheduler(self, name: str) -> tuple[Cycle, Committer] | None:
        found = self._cycles.get(name)
        if found is None:
            plan = self._plans.get(name)
            if plan is None:
                return None
            client: Any = _NoWrites()
            decider = Decider(plan, self._cache, self._nominator, self._clock, client)
            percentage = plan.percentage_of_nodes_to_score
            cycle = Cycle(
                decider.evaluator,
                decider.runner,
                self._percentage if percentage is None else percentage,
                Rotation(),
                None,
                random.Random(0),
            )
            found = self._cycles[name] = (
                cycle,
                Committer(decider.profile, decider.runner.guard),
            )
        return found

    def _decide(self, pod: Pod) -> Decision | None:
        found = self._scheduler(pod.scheduler_name)
        if found is None:
            return None
        cycle, committer = found
        state = CycleState()
        decision = at_once(cycle.decide(state, pod, self._cache.nodes))
        if decision.status is OK:
            # What plugins assume of volumes and devices, until the cluster shows it.
            committer.reserve(state, pod.assumed_on(decision.node_name), decision.node_name)
        return decision

    # --- lines ---------------------------------------------------------------------------------

    def _attempt(self, told: Decided, api: core.Pod) -> None:
        self._clock.at = told.at
        pod = Pod(api)
        own = self._own.get(pod.uid) if self._is_other else ""
        if own:  # it was placed by an attempt of this replay before
            if self._cache.get_pod(pod.uid) is None:
                self._cache.put_pod(Pod(_on(api, own)))
            return
        decision = self._decide(pod)
        if decision is None:
            self._counts["skipped"] += 1
            return
        self._counts["attempts"] += 1
        node = decision.node_name
        if node == told.node:
            self._counts["equal"] += 1
        else:
            self._different += 1
            if len(self._differences) < self._most:
                self._differences.append(
                    ReplayDifference(
                        seq=told.seq,
                        pod=pod.key,
                        recorded=told.node,
                        replayed=node,
                        message="" if node else decision.status.message,
                    )
                )
        self._own[pod.uid] = node
        if self._is_other:
            self._carry_out(pod, decision)

    def _carry_out(self, pod: Pod, decision: Decision) -> None:
        if decision.node_name:
            self._waiting.pop(pod.uid, None)
            self._nominator.delete(pod)
            self._cache.put_pod(Pod(_on(pod.api, decision.node_name)))
            return
        self._waiting[pod.uid] = pod
        after = decision.after
        if after is None or not after.nominate:
            return
        for victim in after.victims:
            if self._cache.remove_pod(victim) is not None:
                self._counts["evicted"] += 1
                self._is_room = True
        self._nominator.nominate(pod, after.nominate)

    def _again(self) -> None:
        """Try pods again that had no node, the most important first."""
        if not self._is_room or not self._waiting:
            return
        self._is_room = False
        some = sorted(self._waiting.values(), key=lambda pod: (-pod.priority, pod.key))
        for pod in some[:_MOST_AGAIN]:
            decision = self._decide(pod)
            if decision is not None and decision.node_name:
                self._own[pod.uid] = decision.node_name
                self._carry_out(pod, decision)

    def _take(self, line: JournalLine) -> None:
        cache = self._cache
        if line.node is not NOTHING:
            cache.put_node(codec.decode(bytes(line.node), core.Node))
            self._is_room = self._is_other
        elif line.no_node:
            cache.remove_node(line.no_node)
        elif line.pod is not NOTHING:
            self._take_pod(codec.decode(bytes(line.pod), core.Pod))
        elif line.no_pod:
            self._remove_pod(line.no_pod)
        elif line.object is not NOTHING:
            cache.objects.put(read_object(line.object))
        elif line.no_object is not None:
            kind, namespace, name = line.no_object
            self._remove_object(kind, namespace, name)
        elif line.nominated and not self._is_other:
            for pod in tuple(self._nominator.nominated_on(line.nominated)):
                self._nominator.delete(pod)
            for raw in line.pods:
                self._nominator.nominate(Pod(codec.decode(bytes(raw), core.Pod)), line.nominated)

    def _take_pod(self, api: core.Pod) -> None:
        pod = Pod(api)
        if self._is_other and pod.uid in self._own:
            node = self._own[pod.uid]
            if not node:  # it waits here
                self._waiting.setdefault(pod.uid, Pod(_on(api, "")))
                return
            pod = Pod(_on(api, node))
        self._cache.put_pod(pod)

    def _remove_pod(self, uid: str) -> None:
        self._is_room = self._is_other
        self._waiting.pop(uid, None)
        known = self._cache.get_pod(uid)
        if known is not None:
            self._cache.remove_pod(known)

    def _remove_object(self, kind: str, namespace: str, name: str) -> None:
        known = self._cache.objects.get(kind_of(kind), name, namespace)
        if known is not None:
            self._cache.objects.remove(known)

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self._percentage is not None:
            notes.append("percentageOfNodesToScore: where the scan began is not in the journal")
        if self._is_other and self._counts["evicted"]:
            notes.append("pods that were evicted in the record left all the same")
        return tuple(notes)


def _on(api: core.Pod, node: str) -> core.Pod:
    return structs.replace(api, spec=structs.replace(api.spec, node_name=node))
