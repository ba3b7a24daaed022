"""The plugins of one profile on the cache of a private copy, and what calls them."""

from __future__ import annotations

import random
from typing import Any

from mooring.cache.cache import Cache
from mooring.decision.evaluator import PodEvaluator
from mooring.decision.plugins import DecisionPlugins
from mooring.framework.handle import Clock
from mooring.lens.inspect import Inspector
from mooring.observe.metrics import Metrics
from mooring.queue.nominator import NominatedPods
from mooring.runtime.guard import Guard
from mooring.runtime.handle import ProfileHandle
from mooring.runtime.profile import Profile, ProfilePlan
from mooring.runtime.runner import Runner
from mooring.runtime.waiting import WaitingPods


class Decider:
    """Decides on the pods of a cache as one profile would. `client` also records Events."""

    def __init__(
        self, plan: ProfilePlan, cache: Cache, nominator: NominatedPods, clock: Clock, client: Any
    ) -> None:
        handle = ProfileHandle(
            plan.scheduler_name,
            cache=cache,
            clock=clock,
            rng=random.Random(0),
            client=client,
            recorder=client,
            waiting=WaitingPods(),
        )
        self.profile: Profile = plan.build(handle)
        guard = Guard(Metrics())
        self.runner: Runner = Runner(self.profile, guard)
        self.evaluator: PodEvaluator = PodEvaluator(
            DecisionPlugins(self.profile, guard), nominator, cache.objects
        )
        handle.attach(nominator, self.evaluator.what_if, lambda keys: None)
        self.inspector: Inspector = Inspector(self.evaluator, self.runner, cache)
