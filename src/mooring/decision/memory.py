"""What is remembered between pods: results by plugin and cache key, and columns by class.

A class is what the plugins look at: pods are of one class if every plugin has equal cache keys for
them. A Job's index, a StatefulSet's pod name or any other label makes no class of its own as long
as no plugin looks at it. Results are shared by all classes that have a plugin's key in common.

Most keys that only one pod has had so far never see another: requests of its own, an affinity of
its own. So nothing is kept of a key before its second pod. The first one is of the class of pods
that are equal in all other keys, and the plugin is called for that very pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from mooring.cache.objects import Objects
from mooring.decision.columns import Columns as Columns
from mooring.decision.columns import ExtraScores as ExtraScores
from mooring.decision.keys import (
    BY_NODE_AND_PODS,
    LEFT_OUT,
    TABLES,
    UNCACHED,
    ClassKeys,
    KeyedPlugin,
)
from mooring.decision.plugins import DecisionPlugins, PreFilterOutcome, run_pre_filter
from mooring.decision.results import Changes, Mark, Results, Shape, StaleColumns
from mooring.framework import OK, CycleState, Nodes, Pod, PreFilter, Status, Verdicts

MOST_BYTES: Final = 64 * 2**20
"""What classes and results may take, about; the least recently used go first."""
MOST_KEYS: Final = 4_000
"""Keys of which it is remembered that a pod had them."""
_BYTES_OF_CLASS: Final = 10  # per row
_BYTES_OF_RESULTS: Final = 4

FEW: Final = 16  # up to this many changed rows, kept refusals are changed one by one
_MOST_STATUSES: Final = 64  # statuses that no node has any more are not worth looking for


class PodClass:
    """A class of pods, and what is kept for it."""

    def __init__(
        self,
        plugins: DecisionPlugins,
        results: dict[str, Results],
        left_out: frozenset[str],
        *,
        is_shared: bool,
    ) -> None:
        self._plugins = plugins
        self.is_shared: bool = is_shared  # by pods that have different keys
        self.results: dict[str, Results] = results
        self.left_out: frozenset[str] = left_out
        self.used_at: int = 0  # when the last pod came, by the count of all pods
        self.columns: Columns | None = None
        self.previous: CycleState | None = None  # of the last pod of this class
        self._refusals: tuple[Mark, Verdicts] | None = None  # of all nodes, at that moment
        self.uncached_pre_filters: list[PreFilter] = [
            one
            for one in plugins.pre_filters
            if one.name not in results and one.name not in left_out
        ]
        # What every pod of the class starts with, as far as it is kept.
        self.state: CycleState = CycleState()
        self.state.skip_filter.update(left_out)
        self.state.skip_score.update(left_out)
        # A plugin that broke is called again for the next pod.
        self.is_kept: bool = not any(one.has_failed for one in results.values())
        self.outcome: PreFilterOutcome = run_pre_filter(
            plugins, self.state, None, None, results, kept_only=True
        )
        self._is_plain = self.outcome.status is OK and self.outcome.only is None

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterOutcome:
        """PreFilter for one pod of the class."""
        if self.uncached_pre_filters and not self._is_plain:
            # The order of the plugins matters for what is said: go through all of them.
            state.skip_filter.update(self.left_out)
            state.skip_score.update(self.left_out)
            return run_pre_filter(self._plugins, state, pod, nodes, self.results)
        state.begin_like(self.state, self.previous)
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
        verdicts = self._refusals_followed(columns)
        if verdicts is None:
            verdicts = columns.refusals(nodes)
        self._refusals = (columns.changes.now, verdicts)
        return verdicts

    def _refusals_followed(self, columns: Columns) -> Verdicts | None:
        if self._refusals is None:
            return None
        since, verdicts = self._refusals
        try:
            changed = columns.changes.since(since)
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


class KnownKey:
    """A cache key that some pod has had for one plugin; results are found by it."""

    __slots__ = ("kind",)

    def __init__(self, kind: Hashable) -> None:
        self.kind: Hashable = kind  # of what is kept for it


class ClassMemory:
    """The classes that one profile has met lately."""

    def __init__(
        self, plugins: DecisionPlugins, objects: Objects, most_bytes: int = MOST_BYTES
    ) -> None:
        self._plugins = plugins
        self._most_bytes = most_bytes
        self._shape = Shape()
        self._keys: ClassKeys[PodClass] = ClassKeys(plugins.all, objects, plugins.caller.guard)
        self._known: list[dict[Hashable, KnownKey]] = [{} for _ in self._keys.plugins]
        self._results: dict[KnownKey, Results] = {}
        self._classes: dict[tuple[Hashable, ...], PodClass] = {}
        self._new_keys: int = 0  # since those of no class were forgotten
        self._pods: int = 0

    def __len__(self) -> int:
        return len(self._classes)

    # --- which class ---------------------------------------------------------------------------

    def class_of(self, pod: Pod, nodes: Nodes) -> PodClass:
        """The class of a pod; made if it is new."""
        if self._keys.forget_if_rows_moved(nodes):
            self._classes.clear()
            self._results.clear()
        entry = self._keys.entry(pod, nodes)
        found = entry.found
        if found is None:
            found = self._find(entry.keys, pod, nodes)
            if found.is_kept and not found.is_shared:
                entry.remember(found)
        self._pods += 1
        found.used_at = self._pods
        return found

    def _find(self, keys: tuple[Hashable, ...], pod: Pod, nodes: Nodes) -> PodClass:
        found_parts: list[Hashable] = []
        new = 0
        for known, key in zip(self._known, keys, strict=True):
            part: Hashable = key
            if isinstance(key, tuple):
                part = known.get(key)
                if part is None:
                    known[key] = KnownKey(key[0])
                    part = UNCACHED  # for this pod
                    new += 1
            found_parts.append(part)
        parts = tuple(found_parts)
        found = self._classes.get(parts)
        if found is None:
            self._make_room(len(nodes))
            found = self._made(parts, pod, nodes, is_shared=new > 0)
            if found.is_kept:
                self._classes[parts] = found
        self._new_keys += new
        if self._new_keys > MOST_KEYS:
            self._forget_keys()
        return found

    def _made(
        self, parts: tuple[Hashable, ...], pod: Pod, nodes: Nodes, *, is_shared: bool
    ) -> PodClass:
        results: dict[str, Results] = {}
        left_out: list[str] = []
        for one, part in zip(self._keys.plugins, parts, strict=True):
            if part is LEFT_OUT:
                left_out.append(one.name)
            elif isinstance(part, KnownKey) and part.kind != TABLES:
                results[one.name] = self._results_of(one, part, pod, nodes)
        return PodClass(self._plugins, results, frozenset(left_out), is_shared=is_shared)

    def _results_of(self, keyed: KeyedPlugin, key: KnownKey, pod: Pod, nodes: Nodes) -> Results:
        found = self._results.get(key)
        if found is None:
            sees_pods = key.kind == BY_NODE_AND_PODS
            found = Results(keyed.plugin, self._plugins.caller, self._shape, sees_pods=sees_pods)
            if keyed.name in self._plugins.pre_filter_names:
                found.run_pre_filter(pod, nodes)
            if not found.has_failed:
                self._results[key] = found
        return found

    def keys_of(self, pod: Pod, nodes: Nodes) -> dict[str, Hashable]:
        """The keys of a pod by plugin, where answers depend on no more than node, pods and key."""
        if self._keys.forget_if_rows_moved(nodes):
            self._classes.clear()
            self._results.clear()
        keys = self._keys.entry(pod, nodes).keys
        return {
            one.name: key
            for one, key in zip(self._keys.plugins, keys, strict=True)
            if isinstance(key, tuple) and key[0] != TABLES
        }

    # --- its columns ---------------------------------------------------------------------------

    def columns(self, known: PodClass, state: CycleState, pod: Pod, nodes: Nodes) -> Columns:
        """The columns of a class, up to date for this pod. Raises PluginFault, PluginError."""
        if known.columns is not None:
            try:
                known.columns.follow(state, pod, nodes)
            except StaleColumns:
                known.columns = None
            else:
                return known.columns
        changes = Changes(nodes)
        for results in known.results.values():
            if not results.is_current(changes.now):
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

    def _make_room(self, rows: int) -> None:
        """Before a class is made: drop the half that was not used for the longest time."""
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
        self._keys.forget()

    def _forget_keys(self) -> None:
        """Those that make no class: most belong to pods that were the only ones of their kind."""
        used = {part for parts in self._classes for part in parts}
        self._known = [
            {key: one for key, one in known.items() if one in used} for known in self._known
        ]
        self._new_keys = 0
