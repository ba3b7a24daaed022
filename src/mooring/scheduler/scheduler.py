"""Wiring, start and stop, and the loop, which makes one attempt after the other (`attempts.py`).

One thread owns all state and decides. The loop never waits for bindings, status patches or Events;
they run as tasks of one group that ends with the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final

from mooring import config as cfg
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.decision.evaluator import PodEvaluator
from mooring.decision.plugins import DecisionPlugins
from mooring.errors import ConfigError, InternalError, Problem
from mooring.extender.calling.chain import Extenders
from mooring.framework import plugin as contract
from mooring.framework.handle import Client, Clock, Recorder
from mooring.framework.status import OK, Status
from mooring.observe.metrics import Metrics
from mooring.queue.options import QueueOptions
from mooring.queue.queue import SchedulingQueue
from mooring.runtime.commit import Committer
from mooring.runtime.guard import DEFAULT_BUDGET, STALL_LIMIT, Guard
from mooring.runtime.handle import ProfileHandle
from mooring.runtime.profile import Profile, ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry
from mooring.runtime.runner import Runner
from mooring.runtime.sorting import GuardedSort
from mooring.runtime.waiting import WaitingPods
from mooring.scheduler import score_log
from mooring.scheduler.attempts import Attempt, Attempts, OnAttempt
from mooring.scheduler.binding import Binder, BindingPlugins
from mooring.scheduler.cluster import CONGESTED
from mooring.scheduler.conflicts import Conflict
from mooring.scheduler.cycle import Cycle, Rotation
from mooring.scheduler.doublecheck import DoubleCheck
from mooring.scheduler.evict import Evictor
from mooring.scheduler.extender_binds import ExtenderBinds, NodeOf
from mooring.scheduler.failure import FailureHandler
from mooring.scheduler.handlers import Handlers
from mooring.scheduler.held import HeldPods
from mooring.scheduler.ledger import AttemptLedger
from mooring.scheduler.overruns import Overruns, Policy
from mooring.scheduler.profiles import ProfileRuntime, asked_for_every_pod, registrations
from mooring.scheduler.recheck import Recheck
from mooring.scheduler.task_pool import TaskPool
from mooring.scheduler.trials import Trials

log = logging.getLogger(__name__)

MAX_IN_UNSCHEDULABLE: Final = 300.0  # seconds; then a refused pod is tried again
_FLUSH_BACKOFF_EVERY: Final = 1.0  # seconds, on whole seconds
_FLUSH_UNSCHEDULABLE_EVERY: Final = 30.0
_CHECK_BINDS_EVERY: Final = 5.0
_TURN: Final = 8  # decisions until others on the loop get a turn
_LONGEST_TURN: Final = 0.005  # seconds, and one decision
_REST: Final = 0.1  # seconds for others on the loop after a decision that took too long


class Scheduler:
    """A complete scheduler; the cluster is passed in as `client`, `recorder` and `handlers`.

    `client` writes to the cluster, `recorder` records Events, `clock` and `rng` give time and
    random numbers, `extenders` are those of the configuration; with `node_of` their binds are
    checked. Pass changes of the cluster to `handlers`, then `await run()`. With a `check_share`,
    that share of the decisions by class is evaluated again in full and compared. `feature_gates`
    are those to enable. A `ledger`, which may be set before the first attempt, is told of each.
    """

    def __init__(
        self,
        config: cfg.KubeSchedulerConfiguration | None = None,
        *,
        client: Client,
        recorder: Recorder,
        clock: Clock,
        rng: random.Random | None = None,
        plugins: Iterable[type[contract.Base]] = (),
        metrics: Metrics | None = None,
        plugin_budget: float = DEFAULT_BUDGET,
        max_in_unschedulable: float = MAX_IN_UNSCHEDULABLE,
        on_attempt: OnAttempt | None = None,
        extenders: Extenders | None = None,
        node_of: NodeOf | None = None,
        check_share: float = 0.0,
        feature_gates: frozenset[str] = frozenset(),
    ) -> None:
        config = cfg.default_configuration() if config is None else config
        self.config = config
        self.metrics: Metrics = metrics or Metrics()
        self.metrics.before_scrape(self._measure)
        self.cache: Cache = Cache()
        self.waiting: WaitingPods = WaitingPods()
        self.guard: Guard = Guard(self.metrics, budget=plugin_budget)
        self._at_work = BindingPlugins()
        self._client = client
        self._clock = clock
        self._random = rng or random.Random()
        if score_log.is_on():
            on_attempt = self._logging_scores(on_attempt)
        self._extenders = extenders or None
        self._extender_binds: ExtenderBinds | None = None
        if self._extenders is not None and node_of is not None:
            self._extender_binds = ExtenderBinds(
                self.cache,
                clock,
                node_of,
                lambda assignment, status: self._attempts.refuse_bound(assignment, status),
            )
        check = None
        if check_share:
            # With its own random numbers: a check must not change decisions.
            check = DoubleCheck(check_share, random.Random(), self.metrics)
        self._make_cycle = partial(
            Cycle,
            rotation=Rotation(),
            extenders=self._extenders,
            rng=self._random,
            check=check,
            is_observed=on_attempt is not None,
        )
        if config.extenders and extenders is None:
            # Without its extenders, the scheduler would decide wrongly.
            text = "this scheduler was started without a way to call extenders"
            raise ConfigError([Problem("extenders", text)])
        self._tasks: TaskPool | None = None
        self._ready = asyncio.Event()
        self._stopping = False
        self._holds: set[str] = set()
        self._rests_after = math.inf  # seconds of a turn

        handles: dict[str, ProfileHandle] = {}
        profiles: dict[str, Profile] = {}
        self.plans: list[ProfilePlan] = plan_profiles(
            config, Registry.discover(plugins), feature_gates
        )
        for plan in self.plans:
            name = plan.scheduler_name
            handles[name] = ProfileHandle(
                name,
                cache=self.cache,
                clock=clock,
                rng=self._random,
                client=client,
                recorder=recorder,
                waiting=self.waiting,
            )
            profiles[name] = plan.build(handles[name])
        slow = asked_for_every_pod(profiles.values())
        if slow:
            log.info(
                "asked about every node for every pod, because they declare no depends_on",
                extra={"plugins": ", ".join(slow)},
            )
        self.runtimes: dict[str, ProfileRuntime] = {}  # by schedulerName
        self.queue: SchedulingQueue = self._make_queue(profiles, max_in_unschedulable)
        self.held: HeldPods = HeldPods(
            profiles, self.queue, self.waiting, recorder, lambda: bool(self._holds)
        )
        self.handlers: Handlers = Handlers(
            self.cache,
            self.queue,
            self.waiting,
            self._at_work,
            lambda pod: pod.scheduler_name in self.runtimes,
            self._conflict,
            self.metrics.event_handling_duration,
        )
        for name, profile in profiles.items():
            self.runtimes[name] = self._make_runtime(profile, handles[name])
        self._failures = FailureHandler(
            cache=self.cache,
            queue=self.queue,
            handlers=self.handlers,
            client=client,
            recorder=recorder,
            clock=clock,
            spawn=self._spawn,
            makes_room_at_once=lambda uid: self._evictor.makes_room_at_once(uid),
        )
        self._evictor = Evictor(
            cache=self.cache,
            queue=self.queue,
            waiting=self.waiting,
            at_work=self._at_work,
            client=client,
            recorder=recorder,
            clock=clock,
            metrics=self.metrics,
            spawn=self._spawn,
        )
        self.overruns: Overruns = Overruns(
            guard=self.guard,
            queue=self.queue,
            recorder=recorder,
            metrics=self.metrics,
            runtimes=self.runtimes,
            fail=lambda runtime, queued, status: self._attempts.fail_trial(runtime, queued, status),
            without=self._without_plugins,
        )
        self._attempts = Attempts(
            self.runtimes,
            cache=self.cache,
            queue=self.queue,
            handlers=self.handlers,
            guard=self.guard,
            overruns=self.overruns,
            evictor=self._evictor,
            failures=self._failures,
            extender_binds=self._extender_binds,
            waits_for_extenders=self._extenders is not None,
            recorder=recorder,
            clock=clock,
            rng=self._random,
            metrics=self.metrics,
            on_attempt=on_attempt,
            spawn=self._spawn,
            is_ending=lambda: self._tasks is None or self._tasks.are_ending,
        )

    # --- wiring --------------------------------------------------------------------------------

    def _make_queue(
        self, profiles: dict[str, Profile], max_in_unschedulable: float
    ) -> SchedulingQueue:
        first = next(iter(profiles.values()))
        return SchedulingQueue(
            now=self._clock.now,
            sort=GuardedSort(first.at(contract.QueueSort)[0], self.guard),
            gate=self._gate,
            shut=lambda: self._evictor.shut(),  # it is made later
            registrations={
                name: registrations(profile, self.guard, has_extenders=self._extenders is not None)
                for name, profile in profiles.items()
            },
            options=QueueOptions(
                initial_backoff=float(self.config.pod_initial_backoff_seconds),
                max_backoff=float(self.config.pod_max_backoff_seconds),
                max_in_unschedulable=max_in_unschedulable,
            ),
            metrics=self.metrics,
            on_ready=self._ready.set,
            on_gated=lambda pod, status: self.held.gated(pod, status),
        )

    def try_in_copies(self, policies: Mapping[str, Policy]) -> None:
        """Allow trials in forked copies; only for a process that mooring owns."""
        self.overruns.enable(Trials(self.guard, self.cache), policies)
        self._rests_after = STALL_LIMIT

    def _without_plugins(self, runtime: ProfileRuntime, names: frozenset[str]) -> ProfileRuntime:
        return self._make_runtime(runtime.profile.without(names), runtime.handle, is_own=False)

    def _make_runtime(
        self, profile: Profile, handle: ProfileHandle, *, is_own: bool = True
    ) -> ProfileRuntime:
        """With `is_own`, it is the runtime behind the handle of its plugins."""
        runner = Runner(profile, self.guard)
        plugins = DecisionPlugins(profile, self.guard)
        nominator, is_ours = self.queue.nominator, self.handlers.is_ours
        evaluator = PodEvaluator(plugins, nominator, self.cache.objects, is_ours=is_ours)
        if is_own:
            handle.attach(nominator, evaluator.what_if, self.queue.activate)
        committer = Committer(profile, self.guard)
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self.config.percentage_of_nodes_to_score
        binder = Binder(
            committer,
            cache=self.cache,
            queue=self.queue,
            waiting=self.waiting,
            at_work=self._at_work,
            client=self._client,
            recheck=Recheck(profile, evaluator, self.cache),
            extenders=self._extenders,
            on_conflict=self._conflict,
            on_waiting=self.held.held_at_permit,
            on_permitted=lambda assignment: self._attempts.permitted(assignment),
        )
        cycle = self._make_cycle(evaluator, runner, percentage)
        return ProfileRuntime(profile, handle, runner, evaluator, committer, cycle, binder)

    def _logging_scores(self, then: OnAttempt | None) -> OnAttempt:
        def told(attempt: Attempt) -> None:
            plugins = self.runtimes[attempt.pod.scheduler_name].profile.plugins
            score_log.log_scores(attempt.pod, attempt.decision, plugins)
            if then is not None:
                then(attempt)

        return told

    def _gate(self, pod: Pod, first: str) -> Status:
        runtime = self.runtimes.get(pod.scheduler_name)
        if runtime is None:
            return OK
        status = self._evictor.gate(pod)
        return runtime.runner.pre_enqueue(pod, first) if status.ok else status

    # --- running -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until `stop`; returns when all bindings in progress have ended."""
        try:
            async with TaskPool() as self._tasks:
                chores = [
                    self._tasks.create_task(self._flush_backoff()),
                    self._tasks.create_task(self._flush_unschedulable()),
                ]
                if self._extender_binds is not None:
                    chores.append(self._tasks.create_task(self._check_binds(self._extender_binds)))
                await self._loop()
                for chore in chores:
                    chore.cancel()
                self._tasks.drain()
        finally:
            self._tasks = None
            self.overruns.close()
            for runtime in self.runtimes.values():
                runtime.profile.close()

    def stop(self) -> None:
        """Pop no further pod; pods that wait at Permit return to the queue."""
        self._stopping = True
        self._ready.set()
        for waiting in self.waiting:
            waiting.reject("", "the scheduler is stopping")

    def hold(self, why: str) -> None:
        """Decide nothing until `release(why)`; bindings in progress continue."""
        self._holds.add(why)

    def release(self, why: str) -> None:
        """Remove one hold; scheduling continues when none is left."""
        self._holds.discard(why)
        self._ready.set()

    def now(self) -> float:
        """The time of its clock, in seconds since 1970."""
        return self._clock.now()

    @property
    def ledger(self) -> AttemptLedger | None:
        return self._attempts.ledger

    @ledger.setter
    def ledger(self, ledger: AttemptLedger | None) -> None:
        self._attempts.ledger = ledger

    @property
    def holds(self) -> frozenset[str]:
        """Why no pod is decided at the moment; empty while scheduling."""
        return frozenset(self._holds)

    async def _loop(self) -> None:
        loop, schedule_one = asyncio.get_running_loop(), self._attempts.schedule_one
        decided, until = 0, loop.time() + _LONGEST_TURN
        while not self._stopping:
            if not self._holds and await schedule_one():
                decided += 1
                # A preemption takes as long as a hundred decisions, and its evictions should start.
                late = loop.time() - until
                if decided >= _TURN or late >= 0:
                    # Bindings, watches and timers get a turn. Renewing the lease needs several
                    # turns, so after a long decision there must be time for more than one.
                    await asyncio.sleep(_REST if late > self._rests_after else 0)
                    decided, until = 0, loop.time() + _LONGEST_TURN
            else:
                # No pod can have become ready since: no event is handled between pop and here.
                self._ready.clear()
                await self._ready.wait()

    async def _flush_backoff(self) -> None:
        while True:
            now = self._clock.now()
            await self._sleep(_FLUSH_BACKOFF_EVERY - now % _FLUSH_BACKOFF_EVERY)
            self.queue.flush_backoff()
            self.held.catch_up()
            self._failures.report_put_off()
            if self.overruns.is_active:
                self.overruns.expire()

    async def _flush_unschedulable(self) -> None:
        while True:
            await self._sleep(_FLUSH_UNSCHEDULABLE_EVERY)
            self.queue.flush_unschedulable()

    async def _check_binds(self, binds: ExtenderBinds) -> None:
        while True:
            await self._sleep(_CHECK_BINDS_EVERY)
            await binds.check()

    async def _sleep(self, seconds: float) -> None:
        """Sleep; if a plugin cancels the task, only the sleep ends."""
        try:
            await self._clock.sleep(seconds)
        except asyncio.CancelledError:
            if self._stopping or self._tasks is None or self._tasks.are_ending:
                raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self._tasks is None:
            work.close()
            raise InternalError("scheduling needs a running scheduler: await run()")
        self._tasks.submit(work)

    # --- metrics -------------------------------------------------------------------------------

    def _measure(self) -> None:
        sizes = self.metrics.cache_size
        sizes.labels("nodes").set(len(self.cache.table))
        sizes.labels("pods").set(self.cache.pod_count)
        sizes.labels("assumed_pods").set(self.cache.assumed_count)

    def _conflict(self, kind: Conflict) -> None:
        # Conflicts from before this process led are not counted; a pause under load is no absence.
        if self._holds <= {CONGESTED}:
            self.metrics.conflicts.labels(kind.value).add()
