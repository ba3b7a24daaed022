"""Which pods are of one class: the cache keys of the plugins, found again as cheaply as possible.

Most pods have the spec of a pod before, and many its labels too. So keys are remembered by spec,
those that depend on more by labels, annotations, namespace and controller as well; they are asked
for again when nodes, objects or features of pods have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from mooring.api import core
from mooring.cache.internals import epoch_of, structure_of
from mooring.cache.objects import Objects
from mooring.framework import NODE_AND_PODS, Nodes, Pod
from mooring.framework._internal import (
    Base,
    depends_on_for,
    everything_of,
    has_key_from_spec,
    has_key_version,
    has_tables,
    key_version_of,
    may_depend_on,
    may_have_own_key,
    vouches_for_reads,
)
from mooring.runtime import Guard, PluginError, picks_pods

T = TypeVar("T")

MOST_TEMPLATES: Final = 1_000  # specs by which keys are found at once
MOST_ALIKE: Final = 16  # of them with one outline
MOST_LABELS: Final = 64  # sets of labels by which the keys of a pod with one spec are found

LEFT_OUT: Final = "left out"  # the key of a plugin that does not apply
UNCACHED: Final = "asked for each pod"
FAILED: Final = "its key could not be had"
# The first part of any other key, a tuple: what is kept for it.
TABLES: Final = 0  # tables by topology domain
BY_NODE: Final = 1  # results that follow the nodes' objects
BY_NODE_AND_PODS: Final = 2  # and their pods


class KeyedPlugin:
    """A plugin, and how its part of the key of a pod's class is found."""

    def __init__(self, plugin: Base, objects: Objects) -> None:
        self.plugin: Base = plugin
        self.name: str = plugin.name
        self.version: Callable[[], Hashable] = key_version_of(plugin)
        self._objects = objects
        self._reads = () if vouches_for_reads(plugin) else plugin.reads
        self._applies = plugin.applies_to if picks_pods(plugin) else None
        self._depends_on = depends_on_for(plugin)
        self._has_tables = has_tables(plugin)
        # Whether a class depends on what this plugin looks at.
        self.counts: bool = (
            may_depend_on(type(plugin)) or self._applies is not None or self._has_tables
        )

    def key(self, pod: Pod) -> Hashable:
        """Pods with equal keys share what is kept of this plugin."""
        if self._applies is not None and not self._applies(pod):
            return LEFT_OUT
        ask, plugin = self._depends_on, self.plugin
        depends_on = plugin.depends_on if ask is None else ask(pod)
        if depends_on is NODE_AND_PODS:
            kind = BY_NODE_AND_PODS
        elif depends_on is not None:
            kind = BY_NODE
        elif self._has_tables:
            kind = TABLES
        else:
            return UNCACHED
        key: tuple[Hashable, ...] = (kind, plugin.cache_key(pod))
        if self._reads:
            key = (*key, *[self._objects.version(read) for read in self._reads])
        return key

    def hashable_key(self, pod: Pod) -> Hashable:
        """As `key`; raises what the plugin raises, also if its key cannot be hashed."""
        key = self.key(pod)
        hash(key)
        return key


class _Template(Generic[T]):
    """Pods with one spec: the keys that follow from it, and the entries by labels."""

    def __init__(self, spec: core.PodSpec, example: Pod) -> None:
        self.spec: core.PodSpec = spec
        self.example: Pod = example
        self.keys: tuple[Hashable, ...] = ()
        self.own: list[int] = []  # places of keys that each pod is asked for
        self.versions: tuple[Hashable, ...] | None = None  # of what the keys were made of
        self.moment: Hashable = None
        self.begin(())

    def begin(self, keys: tuple[Hashable, ...]) -> None:
        """With other keys nothing that was known is of use."""
        self.keys = keys
        self.entries: dict[Hashable, KeyEntry[T]] = {}
        self.classes: dict[Hashable, T] = {}  # by the other keys
        self.latest_labels: Hashable = None
        self.latest: KeyEntry[T] | None = None

    def entry(self, labels: Hashable, size: int, keys: tuple[Hashable, ...]) -> KeyEntry[T]:
        """That of pods with these labels, and with these keys by spec."""
        found = self.entries.get(labels)
        if found is None:
            if len(self.entries) > MOST_LABELS:
                self.entries.clear()
            found = self.entries[labels] = KeyEntry(self, size, keys)
        self.latest_labels, self.latest = labels, found
        return found


class KeyEntry(Generic[T]):
    """Pods with one spec and the same labels: their keys, and the class that goes with them."""

    __slots__ = ("_by_spec", "_template", "found", "moment", "others", "versions")

    def __init__(self, template: _Template[T], size: int, by_spec: tuple[Hashable, ...]) -> None:
        self._template = template
        self._by_spec = by_spec
        self.others: list[Hashable] = [None] * size
        self.versions: list[Hashable] = [None] * size  # of what the others were made of
        self.moment: Hashable = None
        self.found: T | None = None  # None: it is not known

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """One for each of `ClassKeys.plugins`."""
        return (*self._by_spec, *self.others)

    def look_up(self) -> None:
        """The keys are others than before: perhaps those of other labels."""
        self.found = self._template.classes.get((self._by_spec, *self.others))

    def remember(self, found: T) -> None:
        """What belongs to pods with these keys."""
        classes = self._template.classes
        if len(classes) > MOST_LABELS:
            classes.clear()
        self.found = classes[self._by_spec, *self.others] = found


class ClassKeys(Generic[T]):
    """The keys of pods for one profile; `T` is what the caller keeps for those with equal ones."""

    def __init__(self, plugins: Sequence[Base], objects: Objects, guard: Guard) -> None:
        self._objects = objects
        self._guard = guard
        keyed = [one for one in (KeyedPlugin(each, objects) for each in plugins) if one.counts]
        self._by_spec = [one for one in keyed if has_key_from_spec(one.plugin)]
        self._others = [one for one in keyed if not has_key_from_spec(one.plugin)]
        self._with_own_keys = [
            (place, one.plugin)
            for place, one in enumerate(self._by_spec)
            if may_have_own_key(one.plugin)
        ]
        self._versioned = [one for one in self._by_spec if has_key_version(one.plugin)]
        self.plugins: tuple[KeyedPlugin, ...] = (*self._by_spec, *self._others)
        self._templates: dict[Hashable, list[_Template[T]]] = {}
        self._template_count: int = 0  # at least
        self._latest: _Template[T] | None = None
        self._epoch: int = -1

    def forget(self) -> None:
        self._latest = None
        self._templates.clear()

    def forget_if_rows_moved(self, nodes: Nodes) -> bool:
        """Whether rows came, went or moved since the last time: then nothing known is of use."""
        if self._epoch == epoch_of(nodes):
            return False
        self._epoch = epoch_of(nodes)
        self.forget()
        return True

    def entry(self, pod: Pod, nodes: Nodes) -> KeyEntry[T]:
        """That of a pod, with its keys of this moment."""
        everything = everything_of(pod)
        labels = everything[:-1]  # and all else but the spec
        template = self._template(everything[-1], pod)
        moment = (self._objects.changes, structure_of(nodes))
        if template.moment != moment:
            versions = tuple([one.version() for one in self._versioned])
            if template.versions != versions:
                template.begin(self._keys_by_spec(pod))
                template.own = self._own(pod)
                template.versions = versions
            template.moment = moment
        moment = template.moment
        by_spec = template.keys
        if template.own:
            by_spec = self._with_own(template, pod)
            labels = (*labels, by_spec)
        entry = template.latest
        if entry is None or template.latest_labels != labels:  # to compare is cheaper than to hash
            entry = template.entry(labels, len(self._others), by_spec)
        if entry.moment is not moment:
            for place, one in enumerate(self._others):
                version = one.version()
                if version is None or version != entry.versions[place]:
                    entry.others[place] = self._key(one, pod)
                    entry.versions[place] = version
                    entry.found = None
            if entry.found is None:
                entry.look_up()
            entry.moment = moment
        return entry

    def _template(self, spec: core.PodSpec, pod: Pod) -> _Template[T]:
        """What is known of pods with this spec."""
        latest = self._latest
        if latest is not None and latest.spec == spec:
            pod.share_footprint(latest.example)
            return latest  # most pods are like the one before
        # To compare with a few is cheaper than to hash all of a spec.
        outline = _outline(spec)
        alike = self._templates.get(outline, [])
        for template in alike:
            if template.spec == spec:
                pod.share_footprint(template.example)
                self._latest = template
                return template
        template = self._latest = _Template(spec, pod)
        self._template_count += 1
        if self._template_count > MOST_TEMPLATES:
            self._template_count = 1
            self._templates.clear()
        self._templates[outline] = [*alike[1 - MOST_ALIKE :], template]
        return template

    def _keys_by_spec(self, pod: Pod) -> tuple[Hashable, ...]:
        try:  # only plugins of this project have such keys: the guard is for when one fails
            return tuple([one.key(pod) for one in self._by_spec])
        except Exception:
            return tuple([self._key(one, pod) for one in self._by_spec])

    def _own(self, pod: Pod) -> list[int]:
        """The places of keys that may differ between pods with this spec."""
        return [place for place, plugin in self._with_own_keys if plugin.has_own_key(pod)]

    def _with_own(self, template: _Template[T], pod: Pod) -> tuple[Hashable, ...]:
        """The keys by spec of this very pod."""
        keys = list(template.keys)
        for place in template.own:
            keys[place] = self._key(self._by_spec[place], pod)
        return tuple(keys)

    def _key(self, keyed: KeyedPlugin, pod: Pod) -> Hashable:
        try:
            return self._guard.call(keyed.plugin, "CacheKey", keyed.hashable_key, pod)
        except PluginError:
            return FAILED


def _outline(spec: core.PodSpec) -> Hashable:
    """Something cheap that tells most specs apart."""
    asked = spec.containers[0].resources.requests.values() if spec.containers else ()
    return (
        spec.priority,
        *[amount.nanos for amount in asked],
        # A pod with an affinity may have one of its own.
        hash(spec.affinity) if spec.affinity is not None else 0,
    )
