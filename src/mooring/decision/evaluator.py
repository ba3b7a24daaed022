"""Evaluates the pods of one profile, with what is remembered of earlier pods."""

from __future__ import annotations

from collections.abc import Callable

from mooring.cache.objects import Objects
from mooring.decision.evaluation import Evaluation
from mooring.decision.memory import ClassMemory
from mooring.decision.plugins import DecisionPlugins
from mooring.decision.whatif import InternalNominator, WhatIfs
from mooring.framework import CycleState, Nodes, Pod


class PodEvaluator:
    """Begins evaluations; with `objects`, it has a memory."""

    def __init__(
        self,
        plugins: DecisionPlugins,
        nominator: InternalNominator,
        objects: Objects | None = None,
        *,
        is_ours: Callable[[Pod], bool] = lambda pod: True,
    ) -> None:
        self.plugins: DecisionPlugins = plugins
        self.memory: ClassMemory | None = None
        if objects is not None:
            self.memory = ClassMemory(plugins, objects)
        keys_of = None if self.memory is None else self.memory.keys_of
        self.what_if: WhatIfs = WhatIfs(plugins, nominator, is_ours, keys_of)

    def begin(
        self,
        state: CycleState,
        pod: Pod,
        nodes: Nodes,
        *,
        among: Nodes | None = None,
        use_memory: bool = True,
    ) -> Evaluation:
        """PreFilter for one pod; `evaluation.outcome` says what came of it.

        With `among`, no other nodes than these are looked at afterwards.
        """
        memory = self.memory if use_memory and among is None else None
        within = nodes if among is None else among
        return Evaluation(self.plugins, self.what_if, state, pod, nodes, within, memory)
