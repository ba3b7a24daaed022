"""What is remembered between pods: results by plugin and cache key, and columns by class.

A class is what the plugins look at: pods are of one class if every plugin has equal cache keys for
them. A Job's index, a StatefulSet's pod name or any other label makes no class of its own as long
as no plugin looks at it. Results are shared by all classes that have a plugin's key in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from mooring.api import core
from mooring.api.meta import NO_RESOURCES
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Mark, Nodes
from mooring.decision.changes import Changes, StaleColumns
from mooring.decision.columns import Columns
from mooring.decision.plugins import DecisionPlugins, kept_scope
from mooring.decision.prefilter import PreFilterOutcome, run_pre_filter
from mooring.decision.results import Results, Shape
from mooring.errors import PluginError
from mooring.framework import plugin as contract
from mooring.framework.scope import Scope, everything_of
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts

MOST_BYTES: Final = 64 * 2**20
"""What classes and results may take, about; the least recently used go first."""
MOST_NEW: Final = 256
"""Classes of which only one pod was seen: most of those never see another."""
_BYTES_OF_CLASS: Final = 10  # per row
_BYTES_OF_RESULTS: Final = 4

MOST_TEMPLATES: Final = 1_000  # specs by which keys are found at once
MOST_ALIKE: Final = 16  # of them with one outline
MOST_LABELS: Final = 64  # sets of labels by which the class of a pod with one spec is found

FEW: Final = 16  # up to this many changed rows, kept refusals are changed one by one
_MOST_STATUSES: Final = 64  # statuses that no node has any more are not worth looking for

_LEFT_OUT: Final = "left out"  # the key of a plugin that does not apply
_UNCACHED: Final = "asked for each pod"
_FAILED: Final = "its key could not be had"


class PodClass:
    """A class of pods, and what is kept for it."""

    __slots__ = (
        "_plugins",
        "_refusals",
        "columns",
        "left_out",
        "outcome",
        "previous",
        "results",
        "state",
        "uncached_pre_filters",
        "used_at",
        "uses",
    )

    def __init__(
        self,
        plugins: DecisionPlugins,
        results: dict[str, Results],
        left_out: frozenset[str],
    ) -> None:
        self._plugins = plugins
        self.results: dict[str, Results] = results
        self.left_out: frozenset[str] = left_out
        self.uses: int = 0  # pods of this class
        self.used_at: int = 0  # by the count of all pods
        self.columns: Columns | None = None
        self.previous: CycleState | None = None  # of the last pod of this class
        self._refusals: tuple[Mark, Verdicts] | None = None  # of all nodes, at that moment
        self.uncached_pre_filters: list[contract.PreFilter] = [
            one for one in plugins.pre_filters if one.name not in results.keys() | left_out
        ]
        # What every pod of the class starts with, as far as it is kept.
        self.state: CycleState = CycleState()
        self.state.skip_filter.update(left_out)
        self.state.skip_score.update(left_out)
        self.outcome: PreFilterOutcome = run_pre_filter(
            plugins, self.state, None, None, results, kept_only=True
        )

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterOutcome:
        """PreFilter for one pod of the class."""
        is_plain = self.outcome.status.ok and self.outcome.only is None
        if self.uncached_pre_filters and not is_plain:
            # The order of the plugins matters for what is said: go through all of them.
            state.skip_filter.update(self.left_out)
            state.skip_score.update(self.left_out)
            return run_pre_filter(self._plugins, state, pod, nodes, self.results)
        state.begin_like(self.state)
        if not self.uncached_pre_filters:
            return self.outcome
        outcome = run_pre_filter(
            self._plugins, state, pod, nodes, self.results, only=self.uncached_pre_filters
        )
        if outcome.ended_by:
            self._forget_later(state, outcome.ended_by)
        return outcome

    def _forget_later(self, state: CycleState, ended_by: str) -> None:
        """A plugin ended PreFilter, and those after it in order would not have been asked."""
        names = [one.name for one in self._plugins.pre_filters]
        for name in names[names.index(ended_by) + 1 :]:
            results = self.results.get(name)
            if results is not None:
                for key in results.state:
                    del state[key]

    def refusals(self, columns: Columns, state: CycleState, nodes: Nodes) -> Verdicts | None:
        """The first refusal of every node; None if some filter has to be asked for this very pod.

        A large Job that does not fit is refused at the cost of its first pod.
        """
        if not columns.are_filters_kept(state):
            return None
        verdicts = self._refusals_followed(columns, nodes)
        if verdicts is None:
            verdicts = columns.refusals(nodes)
        self._refusals = (nodes.mark, verdicts)
        return verdicts

    def _refusals_followed(self, columns: Columns, nodes: Nodes) -> Verdicts | None:
        if self._refusals is None:
            return None
        since, verdicts = self._refusals
        try:
            changed = Changes(nodes).since(since)
        except StaleColumns:
            return None
        if not changed.rows:
            return verdicts
        if len(changed.rows) > FEW or len(verdicts.statuses) > _MOST_STATUSES:
            return None
        verdicts = verdicts.copy()  # the one before may be in use
        for row in changed.rows:
            verdicts.set(row, columns.refusal(row))
        return verdicts


class _Template:
    """Pods with one spec: the keys that follow from it, and the others by labels."""

    __slots__ = ("entries", "example", "keys", "spec")

    def __init__(self, spec: core.PodSpec, example: Pod, keys: tuple[Hashable, ...]) -> None:
        self.spec = spec
        self.example = example
        self.keys = keys
        self.entries: dict[Hashable, _Entry] = {}


class _Entry:
    """Pods with one spec and the same labels: their keys and their class, at some moment."""

    __slots__ = ("keys", "known", "moment", "versions")

    def __init__(self, size: int) -> None:
        self.moment: Hashable = None
        self.versions: list[Hashable] = [None] * size  # of what the keys were made of
        self.keys: list[Hashable] = [None] * size
        self.known: PodClass | None = None


class ClassMemory:
    """The classes that one profile has met lately."""

    def __init__(
        self, plugins: DecisionPlugins, objects: Objects, most_bytes: int = MOST_BYTES
    ) -> None:
        self._plugins = plugins
        self._objects = objects
        self._most_bytes = most_bytes
        self._shape = Shape()
        self._results: dict[Hashable, Results] = {}
        self._classes: dict[Hashable, PodClass] = {}
        self._new: int = 0  # classes that may have only one pod so far
        self._pods: int = 0
        self._templates: dict[Hashable, list[_Template]] = {}
        self._template_count: int = 0  # at least
        self._latest: _Template | None = None
        self._epoch: int = -1
        keyed = [one for one in plugins.all if _has_key(one)]
        self._keyed_by_spec = [one for one in keyed if one.key_from_spec]
        self._keyed = [one for one in keyed if not one.key_from_spec]

    def __len__(self) -> int:
        return len(self._classes)

    # --- which class ---------------------------------------------------------------------------

    def class_of(self, pod: Pod, nodes: Nodes) -> PodClass:
        """The class of a pod; made if it is new."""
        if self._epoch != nodes.epoch:
            self._epoch = nodes.epoch
            self._forget_all()
        namespace, labels, annotations, controller, spec = everything_of(pod)
        template = self._template(spec, pod)
        moment = (self._objects.changes, nodes.structure)
        what = (labels, annotations, namespace, controller)
        entry = template.entries.get(what)
        if entry is None:
            if len(template.entries) > MOST_LABELS:
                template.entries.clear()
            entry = template.entries[what] = _Entry(len(self._keyed))
        if entry.moment != moment:
            self._look_again(template, entry, pod, nodes)
            entry.moment = moment
        found = entry.known
        assert found is not None
        self._pods += 1
        found.uses += 1
        found.used_at = self._pods
        return found

    def _template(self, spec: core.PodSpec, pod: Pod) -> _Template:
        """What is known of pods with this spec."""
        latest = self._latest
        if latest is not None and latest.spec == spec:
            pod.weigh_as(latest.example)
            return latest  # most pods are like the one before
        # To compare with a few is cheaper than to hash all of a spec.
        outline = _outline(spec)
        alike = self._templates.get(outline, [])
        for template in alike:
            if template.spec == spec:
                pod.weigh_as(template.example)
                self._latest = template
                return template
        keys = tuple([self._key(plugin, pod) for plugin in self._keyed_by_spec])
        template = self._latest = _Template(spec, pod, keys)
        self._template_count += 1
        if self._template_count > MOST_TEMPLATES:
            self._template_count = 1
            self._templates.clear()
        self._templates[outline] = [*alike[1 - MOST_ALIKE :], template]
        return template

    def _look_again(self, template: _Template, entry: _Entry, pod: Pod, nodes: Nodes) -> None:
        """Find the class by those keys that may be others by now."""
        for place, plugin in enumerate(self._keyed):
            version = plugin.key_version()
            if version is None or version != entry.versions[place]:
                entry.keys[place] = self._key(plugin, pod)
                entry.versions[place] = version
                entry.known = None
        if entry.known is None:
            keys = (*template.keys, *entry.keys)
            found = self._classes.get(keys)
            if found is None:
                self._make_room(len(nodes))
                found = self._classes[keys] = self._made(keys, pod, nodes)
            entry.known = found

    def _key(self, plugin: contract.Base, pod: Pod) -> Hashable:
        try:
            return self._plugins.caller.guard.call(plugin, "CacheKey", self._key_of, plugin, pod)
        except PluginError:
            return _FAILED

    def _key_of(self, plugin: contract.Base, pod: Pod) -> Hashable:
        if not plugin.applies_to(pod):
            return _LEFT_OUT
        scope = kept_scope(plugin, pod)
        if scope is None and not _has_tables(plugin):
            return _UNCACHED
        key: Hashable = (scope, plugin.cache_key(pod))
        if plugin.reads and not vouches_for_reads(plugin):
            key = (key, *[self._objects.version(kind) for kind in plugin.reads])
        hash(key)
        return key

    def _made(self, key: tuple[Hashable, ...], pod: Pod, nodes: Nodes) -> PodClass:
        results: dict[str, Results] = {}
        left_out: list[str] = []
        keyed = (*self._keyed_by_spec, *self._keyed)
        for plugin, own in zip(keyed, key, strict=True):
            if own is _LEFT_OUT:
                left_out.append(plugin.name)
            elif own is not _UNCACHED and own is not _FAILED:
                scope = kept_scope(plugin, pod)
                if scope is not None:
                    results[plugin.name] = self._results_of(plugin, scope, own, pod, nodes)
        return PodClass(self._plugins, results, frozenset(left_out))

    def _results_of(
        self, plugin: contract.Base, scope: Scope, own: Hashable, pod: Pod, nodes: Nodes
    ) -> Results:
        key = (plugin.name, own)
        found = self._results.get(key)
        if found is None:
            caller = self._plugins.caller
            found = Results(plugin, caller, self._shape, sees_pods=scope is Scope.NODE)
            if plugin.name in self._plugins.pre_filter_names:
                found.run_pre_filter(pod, nodes)
            self._results[key] = found
        return found

    # --- its columns ---------------------------------------------------------------------------

    def columns(self, known: PodClass, state: CycleState, pod: Pod, nodes: Nodes) -> Columns:
        """The columns of a class, up to date for this pod. Raises PluginFault."""
        if known.columns is not None:
            try:
                known.columns.follow(state, pod, nodes)
            except StaleColumns:
                known.columns = None
            else:
                return known.columns
        changes = Changes(nodes)
        for results in known.results.values():
            self._bring_up_to_date(results, pod, changes)
            known.state.absorb(results.state)
            if results.skips_score:
                known.state.skip_score.add(results.plugin.name)
        state.absorb(known.state)
        columns = Columns(self._plugins, known.results, known.left_out, nodes, self._shape)
        columns.follow(state, pod, nodes)
        known.columns = columns
        return columns

    def _bring_up_to_date(self, results: Results, pod: Pod, changes: Changes) -> None:
        if results.mark is not None:
            try:
                results.follow(pod, changes)
            except StaleColumns:
                results.mark = None  # it is too long ago: ask about every node
            else:
                return
        plugins, name, nodes = self._plugins, results.plugin.name, changes.nodes
        skips_filter = isinstance(results.pre_filter, Status) and results.pre_filter.skipped
        if name in plugins.filter_names and not skips_filter:
            results.make_verdicts(pod, nodes)
        if name in plugins.pre_scorer_names:
            results.run_pre_score(pod, nodes)
        if name in plugins.scorer_names and not results.skips_score:
            results.make_scores(pod, nodes)
        results.mark = changes.now

    # --- room ----------------------------------------------------------------------------------

    def forget(self, known: PodClass, plugin: str) -> None:
        """A plugin failed for this class: what was kept of it is good for nothing."""
        broken = known.results.get(plugin)
        self._keep(
            one
            for one in self._classes.values()
            if one is not known and (broken is None or one.results.get(plugin) is not broken)
        )

    def _forget_all(self) -> None:
        """Rows came, went or moved."""
        self._forget_templates()
        self._classes.clear()
        self._results.clear()

    def _forget_templates(self) -> None:
        self._latest = None
        self._templates.clear()

    def _make_room(self, rows: int) -> None:
        """Before a class is made: drop those that are least likely to see another pod."""
        self._new += 1
        if self._new > MOST_NEW:
            self._new = MOST_NEW // 2
            recent = self._pods - self._new
            self._keep(
                one for one in self._classes.values() if one.uses > 1 or one.used_at > recent
            )
        classes, results = len(self._classes), len(self._results)
        if rows * (_BYTES_OF_CLASS * classes + _BYTES_OF_RESULTS * results) > self._most_bytes:
            by_use = sorted(self._classes.values(), key=lambda one: one.used_at)
            self._keep(by_use[(classes + 1) // 2 :])

    def _keep(self, classes: Iterable[PodClass]) -> None:
        """Forget all other classes, and results that no class uses any more."""
        kept = set(classes)
        used = {results for one in kept for results in one.results.values()}
        self._classes = {key: one for key, one in self._classes.items() if one in kept}
        self._results = {key: one for key, one in self._results.items() if one in used}
        self._forget_templates()


def vouches_for_reads(plugin: contract.Base) -> bool:
    """Whether a plugin's own key says all that matters of the objects it reads."""
    return plugin.key_from_spec or type(plugin).key_version is not contract.Base.key_version


def _has_tables(plugin: contract.Base) -> bool:
    return isinstance(plugin, contract.DomainFilter | contract.DomainScore)


def _has_key(plugin: contract.Base) -> bool:
    """Whether a class depends on what this plugin looks at."""
    own = type(plugin)
    return (
        plugin.scope is not None
        or own.scope_of is not contract.Base.scope_of
        or own.applies_to is not contract.Base.applies_to
        or _has_tables(plugin)
    )


def _outline(spec: core.PodSpec) -> Hashable:
    """Something cheap that tells most specs apart."""
    asked = spec.containers[0].resources.requests if spec.containers else NO_RESOURCES
    return (
        spec.priority,
        *[amount.nanos for amount in asked.values()],
        # A pod with an affinity may have one of its own.
        hash(spec.affinity) if spec.affinity is not None else 0,
    )
