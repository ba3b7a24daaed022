"""Explanations of the pods of a snapshot, with the configuration in force.

`mooring explain` calls it; so does whatever has a snapshot. What the answer does not know is said
in its notes: plugins that are not installed here, extenders, sampled nodes, kinds not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec import structs

from mooring import config as cfg
from mooring.api import core
from mooring.cache.pods import Pod
from mooring.client.paths import group_of, resource_of
from mooring.decision.evaluation import Evaluation
from mooring.errors import ConfigError, Problem
from mooring.framework.explaining import listed
from mooring.framework.plugin import Base, PostFilter
from mooring.lens import explanation as told
from mooring.lens.columns import Matrix, matrix_of
from mooring.lens.configurations import Configurations
from mooring.lens.explanation import Explanation
from mooring.lens.inspect import unbound
from mooring.lens.private import PrivateCluster
from mooring.lens.remedies import remedies_for
from mooring.lens.snapshot import Snapshot
from mooring.runtime.profile import ProfilePlan
from mooring.runtime.registry import Registry
from mooring.scheduler.sampling import nodes_to_find

_ADAPTIVE: int = 0  # percentageOfNodesToScore of a kube-scheduler that names none


class Explainer:
    """Explains pods of one snapshot; a private copy is made for each profile that is asked for."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: cfg.KubeSchedulerConfiguration | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._notes: list[str] = list(snapshot.notes)
        registry = registry or Registry.discover()
        config = config or _config_of(snapshot)
        config, unknown = without_unknown_plugins(config, registry)
        if unknown:
            verb = "is" if len(unknown) == 1 else "are"
            names = listed(sorted(unknown))
            self._notes.append(f"{names} {verb} not installed here (--plugin): left out")
        if config.extenders:
            urls = listed(extender.url_prefix for extender in config.extenders)
            self._notes.append(f"extenders are not asked: {urls}")
        self._is_partial = bool(unknown or config.extenders)
        self._configurations = Configurations(config, registry)
        self._plans = self._configurations.plans
        self._copies: dict[str, PrivateCluster] = {}
        self._queue = {queued.uid: queued for queued in snapshot.queue or ()}

    def explain(
        self, pod: core.Pod, *, ask: Sequence[str] = (), remedies: bool = True
    ) -> Explanation:
        """One pod of the snapshot; `ask` are nodes to say more about."""
        notes = [*self._notes, *_of_its_life(pod)]
        plan = self._plan_of(pod, notes)
        private = self._copy(plan)
        view = Pod(pod)
        known = set(private.nodes.names)
        wrong = [name for name in ask if name not in known]
        if wrong:
            raise ConfigError([Problem("--node", f"no node {listed(wrong)} in the cluster")])
        queue = self._queue.get(view.uid)
        found = private.inspector.explain(view, ask=ask, queue=queue)
        tried = 0
        if remedies and not found.node and not found.choice and found.kind != told.ERROR:
            search = remedies_for(private, view)
            notes += dict.fromkeys(search.problems)
            found = structs.replace(found, remedies=search.remedies)
            tried = search.tried
        elif remedies and found.kind == told.GATED:
            found = structs.replace(found, remedies=remedies_for(private, view).remedies)
        missing = list(self._missing(private, found, view))
        notes += [*found.notes, *missing, *self._sampling(plan, found)]
        is_partial = self._is_partial or bool(missing) or plan.scheduler_name != view.scheduler_name
        return structs.replace(
            found,
            notes=tuple(dict.fromkeys(notes)),
            tried=tried,
            exactness="partial" if is_partial else "exact" if self._snapshot.is_past else "now",
        )

    def evaluation_of(self, pod: core.Pod) -> Evaluation:
        """The whole evaluation of a pod that is on no node."""
        view = Pod(pod)
        private = self._copy(self._plan_of(pod, []))
        with private.cache.without_pod(view):
            return private.evaluate(unbound(view))

    def matrix_of(self, pod: core.Pod) -> Matrix:
        """What each plugin says of each node, as if the pod had none."""
        view = Pod(pod)
        private = self._copy(self._plan_of(pod, []))
        with private.cache.without_pod(view):
            return matrix_of(private.evaluate(unbound(view)))

    def cluster_of(self, scheduler_name: str = "") -> PrivateCluster:
        """The copy for the pods of one profile, by default the first; only to be read."""
        plan = self._plans.get(scheduler_name) or next(iter(self._plans.values()))
        return self._copy(plan)

    def _plan_of(self, pod: core.Pod, notes: list[str]) -> ProfilePlan:
        name = pod.spec.scheduler_name or cfg.DEFAULT_SCHEDULER_NAME
        plan = self._plans.get(name)
        if plan is None:
            plan = next(iter(self._plans.values()))
            notes.append(
                f'no profile for schedulerName "{name}": explained by that of'
                f' "{plan.scheduler_name}"; --config says what its scheduler runs'
            )
        return plan

    def _copy(self, plan: ProfilePlan) -> PrivateCluster:
        name = plan.scheduler_name
        if name not in self._copies:
            at = self._snapshot.at or None
            self._copies[name] = PrivateCluster(
                plan, self._snapshot.cluster, at, configurations=self._configurations
            )
        return self._copies[name]

    def _missing(self, private: PrivateCluster, found: Explanation, pod: Pod) -> Iterable[str]:
        """Kinds that could not be read, if a plugin that this answer comes from reads them."""
        problems = {one.resource: one.problem for one in self._snapshot.missing}
        if not problems:
            return
        asked = self._asked(private, found, pod)
        readers: dict[str, list[str]] = {}
        for plugin in asked:
            for kind in plugin.reads:
                group = group_of(kind)
                name = f"{resource_of(kind)}.{group}" if group else resource_of(kind)
                if name in problems:
                    readers.setdefault(name, []).append(plugin.name)
        for name, plugins in readers.items():
            yield f"{name} could not be read, so {listed(plugins)} may be wrong: {problems[name]}"

    @staticmethod
    def _asked(private: PrivateCluster, found: Explanation, pod: Pod) -> list[Base]:
        """The plugins that had something to say about the pod."""
        with private.cache.without_pod(pod):
            evaluation = private.evaluate(unbound(pod))
            if found.choice is not None:
                evaluation.scores()
        state, plugins = evaluation.state, private.evaluator.plugins
        names = {one.name for one in plugins.filters} - state.skip_filter
        names |= {one.name for one in plugins.pre_filters} - state.skip_filter
        if found.choice is not None:
            names |= {one.name for one in plugins.scorers} - state.skip_score
        every = private.profile.plugins.values()
        is_last = found.preemption is not None
        return [p for p in every if p.name in names or (is_last and isinstance(p, PostFilter))]

    def _sampling(self, plan: ProfilePlan, found: Explanation) -> Iterable[str]:
        """A scheduler that stops at enough feasible nodes may not have seen the best."""
        percentage = plan.percentage_of_nodes_to_score
        enough = nodes_to_find(found.nodes, _ADAPTIVE if percentage is None else percentage)
        if found.choice is None or enough is None or found.feasible <= enough:
            return
        who = "kube-scheduler" if percentage is None else "its scheduler"
        yield (
            f"{who} looks for {enough:,} feasible nodes and no more here, of {found.feasible:,}:"
            " it may have chosen among others"
        )


def _of_its_life(pod: core.Pod) -> Iterable[str]:
    if pod.metadata.deletion_timestamp is not None:
        yield "the pod is being deleted: no scheduler tries it"
    elif pod.status.phase in ("Succeeded", "Failed"):
        yield f"the pod has ended ({pod.status.phase}): it holds nothing on its node"


def find_pod(snapshot: Snapshot, text: str, namespace: str = "") -> core.Pod:
    """The pod of that name: "name" or "namespace/name", as kubectl writes it or not."""
    space, _, name = text.removeprefix("pod/").removeprefix("pods/").rpartition("/")
    space = space or namespace
    named = [pod for pod in snapshot.cluster.pods if pod.metadata.name == name]
    found = [pod for pod in named if not space or pod.metadata.namespace == space]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        keys = listed(pod.key for pod in found)
        raise ConfigError([Problem(text, f"{len(found)} pods have this name: {keys}")])
    if not named:  # perhaps that of a Deployment or the like
        begin = f"{name}-"
        named = [pod for pod in snapshot.cluster.pods if pod.metadata.name.startswith(begin)]
    elsewhere = f"; there is {listed(pod.key for pod in named)}" if named else ""
    where = f" in namespace {space}" if space else ""
    raise ConfigError([Problem(text, f"no such pod{where}{elsewhere}")])


def without_unknown_plugins(
    config: cfg.KubeSchedulerConfiguration, registry: Registry
) -> tuple[cfg.KubeSchedulerConfiguration, frozenset[str]]:
    """The configuration without plugins that are not known here, and their names."""
    unknown: set[str] = set()

    def is_known(ref: cfg.PluginRef) -> bool:
        name = ref.name
        if ":" in name:
            with suppress(LookupError):  # it is unknown then
                name = registry.add_path(name)
        if name in registry.names:
            return True
        unknown.add(ref.name)
        return False

    profiles = []
    for profile in config.profiles:
        sets = {
            point: structs.replace(one, enabled=tuple(filter(is_known, one.enabled)))
            for point, one in profile.plugins.by_point().items()
        }
        kept = tuple(one for one in profile.plugin_config if one.name not in unknown)
        profiles.append(
            structs.replace(profile, plugins=cfg.Plugins.of_points(sets), plugin_config=kept)
        )
    return structs.replace(config, profiles=tuple(profiles)), frozenset(unknown)


def _config_of(snapshot: Snapshot) -> cfg.KubeSchedulerConfiguration:
    if snapshot.config is None:
        return cfg.default_configuration()
    return cfg.load_text(json.dumps(snapshot.config), "configuration of the snapshot")
