"""Evaluation of one pod on a frozen cluster: every node's verdict and score; nothing is written.

It runs the scheduler's own code, and keeps everything: the verdict of every node, the score of
every plugin, and every candidate of a preemption.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from msgspec import structs

from mooring import config as cfg
from mooring.api import core
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.decision.evaluation import Evaluation
from mooring.decision.evaluator import PodEvaluator
from mooring.errors import ConfigError, Problem
from mooring.framework.plugin import Base
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.lens.private import PrivateCluster, sorted_by_name
from mooring.lens.snapshot import ClusterState
from mooring.preemption.candidates import PreemptionReport
from mooring.queue.nominator import NominatedPods
from mooring.runtime.profile import Profile, ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry
from mooring.runtime.runner import PostFilterOutcome, Runner
from mooring.scheduler import diagnosis as diagnoses
from mooring.scheduler.cycle import NO_NODES
from mooring.simulator.claims import ClaimTrial, WriteRecorder, status_of
from mooring.simulator.scenario import BadLine, Scenario, read_scenarios

Result = dict[str, Any]
_HEADER = {"apiVersion": cfg.API_VERSION, "kind": cfg.KIND}


class Evaluator:
    """Evaluates scenarios; profiles are kept, plugins are created for each scenario."""

    def __init__(
        self,
        config: cfg.KubeSchedulerConfiguration | None = None,
        plugins: Iterable[type[Base]] = (),
        registry: Registry | None = None,
    ) -> None:
        self._registry = registry or Registry.discover(plugins)
        config = config or cfg.default_configuration()
        if config.extenders:
            # Without extenders the result would differ from the scheduler's.
            raise ConfigError([Problem("extenders", "an evaluation cannot call extenders")])
        self._plans = {plan.scheduler_name: plan for plan in plan_profiles(config, self._registry)}
        self._fragments: dict[str, ProfilePlan] = {}

    def lines(self, lines: Iterable[bytes | str], first_line: int = 1) -> Iterator[Result]:
        """One result per scenario line; a scenario that fails has the error in its place."""
        for scenario in read_scenarios(lines, first_line):
            if isinstance(scenario, BadLine):
                yield {"id": scenario.id, "line": scenario.line, "error": scenario.problem}
                continue
            try:
                yield {"id": scenario.id, **self.trial(scenario).run()}
            except ConfigError as error:
                problems = "; ".join(map(str, error.problems))
                yield {"id": scenario.id, "error": f"profile: {problems}"}

    def waiting_pods(self, cluster: ClusterState) -> Iterator[Result]:
        """One result for every pod of a snapshot that has no node; its id is namespace/name."""
        trials: dict[str, Trial] = {}  # by schedulerName
        for index, pod in enumerate(cluster.pods):
            if pod.spec.node_name or Pod(pod).is_finished:
                continue
            name, nominated = pod.spec.scheduler_name, pod.status.nominated_node_name
            before, after = cluster.pods[:index], cluster.pods[index + 1 :]
            others = cluster.pods if not nominated else before + after
            scenario = Scenario(pod, pod.key, cluster=structs.replace(cluster, pods=others))
            try:
                if nominated:  # its own claim does not stand in its way
                    trial = self.trial(scenario)
                elif name in trials:
                    trial = trials[name].for_pod(pod)
                else:
                    trial = trials[name] = self.trial(scenario)
                yield {"id": pod.key, **trial.run()}
            except ConfigError as error:
                yield {"id": pod.key, "error": "; ".join(map(str, error.problems))}

    def trial(self, scenario: Scenario) -> Trial:
        """The scenario's cluster, with the plugins of its profile."""
        return Trial(self._plan_for(scenario), scenario)

    def _plan_for(self, scenario: Scenario) -> ProfilePlan:
        if scenario.profile is None:
            name = scenario.pod.spec.scheduler_name
            if name not in self._plans:
                known = ", ".join(sorted(self._plans))
                problem = f'no profile for schedulerName "{name}"; there are: {known}'
                raise ConfigError([Problem("pod.spec.schedulerName", problem)])
            return self._plans[name]
        key = json.dumps(scenario.profile, sort_keys=True)
        plan = self._fragments.get(key)
        if plan is None:
            profile = {"schedulerName": cfg.DEFAULT_SCHEDULER_NAME, **scenario.profile}
            text = json.dumps({**_HEADER, "profiles": [profile]})
            plan = plan_profiles(cfg.load_text(text, "profile"), self._registry)[0]
            self._fragments[key] = plan
        return plan


class Trial:
    """One scenario on its own cluster, with its own plugins."""

    def __init__(self, plan: ProfilePlan, scenario: Scenario) -> None:
        self._plan = plan
        self._scenario = scenario
        self.pod: Pod = Pod(scenario.pod)
        self.state: CycleState = CycleState(exhaustive=True)
        now = time.time()
        recorder: list[WriteRecorder] = []

        def record(cache: Cache) -> WriteRecorder:
            recorder.append(WriteRecorder(cache.objects, now))
            return recorder[0]

        private = PrivateCluster(plan, sorted_by_name(scenario.cluster), now, record)
        self.nominator: NominatedPods = private.nominator
        self.nodes: Nodes = private.nodes
        self.profile: Profile = private.profile
        self.runner: Runner = private.runner
        self.evaluator: PodEvaluator = private.evaluator
        objects = private.cache.objects
        self._claims = ClaimTrial(self.profile, recorder[0], scenario.in_flight, objects)

    def with_nodes(self, *, put: Iterable[core.Node] = (), remove: Collection[str] = ()) -> Trial:
        """The same pod on other nodes: some added or replaced, some removed."""
        cluster = self._scenario.cluster
        nodes = {node.metadata.name: node for node in (*cluster.nodes, *put)}
        kept = tuple(node for name, node in nodes.items() if name not in remove)
        changed = structs.replace(cluster, nodes=kept)
        return Trial(self._plan, structs.replace(self._scenario, cluster=changed))

    def for_pod(self, pod: core.Pod) -> Trial:
        """Another pod on the same nodes; plugins and cache are shared."""
        other = copy.copy(self)
        other.pod, other.state = Pod(pod), CycleState(exhaustive=True)
        return other

    def run(self) -> Result:
        """The result in the format of kube-scheduler's recordings (`expect`)."""
        gate = self.runner.pre_enqueue(self.pod)
        if not gate.ok:
            return {"outcome": "Gated", "preEnqueue": status_of(gate)}
        if not len(self.nodes):
            return {"outcome": "NoNodes", "fitError": NO_NODES.message}
        evaluation = self.evaluator.begin(self.state, self.pod, self.nodes)
        before = evaluation.outcome
        names = sorted(before.only) if before.status.ok and before.only is not None else None
        result: Result = {"preFilter": {**status_of(before.status), "nodeNames": names}}
        if before.status.ok:
            return {**result, **self._filter(evaluation)}
        if not before.status.rejected:
            return {"outcome": "Error", **result}
        return {"outcome": "Unschedulable", **result, **self._post_filter(evaluation)}

    def _filter(self, evaluation: Evaluation) -> Result:
        evaluation.filter()
        statuses = evaluation.filter_verdicts().each()
        is_broken = not evaluation.status.ok
        if is_broken:  # a plugin failed on some node: report node by node
            fits = self.evaluator.what_if.fits
            statuses = [fits(self.state, self.pod, node) for node in self.nodes]
        only = evaluation.outcome.only
        answers: Result = {}
        outcome = "Unschedulable"
        for name, status in zip(self.nodes.names, statuses, strict=True):
            answers[name] = _sorted_status(status)
            if only is not None and name not in only:
                answers[name]["prefiltered"] = True
            elif not (status.ok or status.rejected):
                outcome = "Error"
        if is_broken:
            return {"outcome": outcome, "filter": answers}
        if evaluation.count:
            return {"filter": answers, **self._score(evaluation)}
        return {"outcome": outcome, "filter": answers, **self._post_filter(evaluation)}

    def _score(self, evaluation: Evaluation) -> Result:
        names = [self.nodes.names[row] for row in evaluation.rows.tolist()]
        result: Result = {"feasible": sorted(names)}
        scores = evaluation.scores()
        if scores is None:
            return {**result, "outcome": "Error", "scoreError": evaluation.status.message}
        result["outcome"] = "Scheduled"
        totals = dict.fromkeys(names, 1)  # if no plugin scores, as in kube-scheduler
        if self.profile.weights:
            given = {table.plugin: table.scores.tolist() for table in scores.plugins}
            result["scores"] = {
                plugin: {"weight": weight, "nodes": dict(zip(names, given[plugin], strict=True))}
                if plugin in given
                else {"weight": weight, "skipped": True}
                for plugin, weight in self.profile.weights.items()
            }
            totals = dict(zip(names, scores.totals.tolist(), strict=True))
        most = max(totals.values())
        result["total"] = totals
        result["best"] = sorted(name for name, total in totals.items() if total == most)
        feasible = [self.nodes[row] for row in evaluation.rows.tolist()]
        return {**result, **self._claims.bind(self.state, self.pod, feasible, result["best"][0])}

    def _post_filter(self, evaluation: Evaluation) -> Result:
        verdicts = evaluation.verdicts()
        found = diagnoses.of_refusals(evaluation.outcome, verdicts)
        result: Result = {"fitError": found.message, "fitErrorFinal": found.message}
        freed = self._claims.free(self.state, self.pod, self.nodes, verdicts)
        after = self.runner.post_filter_alone(self.state, self.pod, self.nodes, verdicts)
        if after is not None:
            freed |= self._claims.writes_of_post_filter()
            result["fitErrorFinal"] = found.followed_by(after.status.message).message
            result["postFilter"] = {**_after(after), **freed}
        return result


def _sorted_status(status: Status) -> Result:
    return status_of(structs.replace(status, reasons=tuple(sorted(status.reasons))))


def _after(after: PostFilterOutcome) -> Result:
    """The result of PostFilter; victims are left out if several nodes are equally good."""
    result = status_of(after.status)
    found = (one for one in after.reports.values() if isinstance(one, PreemptionReport))
    report = next(found, PreemptionReport(nodes=0))
    best = report.best if after.status.ok else ()
    result["nominatedNodes"] = list(best)
    result["victims"] = result["deleted"] = None
    if len(best) <= 1:
        result["victims"] = sorted(victim.key for victim in after.victims)
        result["deleted"] = sorted(one.key for one in after.victims if not one.is_terminating)
    if after.nominate == "":
        result["clearNominatedNode"] = True
    result["candidates"] = {
        candidate.node_name: {
            "victims": [victim.key for victim in candidate.victims],
            "numPDBViolations": candidate.pdb_violations,
        }
        for candidate in report.candidates
    }
    if report.failures:
        result["dryRunFailures"] = {
            name: _sorted_status(status) for name, status in report.failures.items()
        }
    return result
