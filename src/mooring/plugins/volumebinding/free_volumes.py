"""The volumes that claims can be bound to, kept sorted by what claims and nodes ask for.

A cluster of local disks has as many volumes as nodes, or more, and each pod takes one. So they are
followed one by one, and a claim finds out in one lookup per node whether there is one for it.
"""

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

import mooring.framework as fw
from mooring.api.placement import NodeSelector
from mooring.api.quantity import Quantity
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.internals import label_column
from mooring.cache.labels import LabelColumn
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import required_nodes
from mooring.plugins._volume_claims import class_of_volume
from mooring.plugins.volumebinding.assume_cache import AssumeCache
from mooring.plugins.volumebinding.reach import alternatives_of, is_reachable, reachable

AVAILABLE: Final = "Available"
FILESYSTEM: Final = "Filesystem"

Entry = tuple[int, str, PersistentVolume]
"""Capacity, name, volume: by these they are sorted, the smallest first."""


class VolumeKind(NamedTuple):
    """What a claim and a volume have to agree about, or the volume has to offer."""

    mode: str
    attributes_class: str
    access_modes: frozenset[str]

    def suits(self, claim: PersistentVolumeClaim) -> bool:
        spec = claim.spec
        return (
            self.mode == (spec.volume_mode or FILESYSTEM)
            and self.attributes_class == (spec.volume_attributes_class_name or "")
            and self.access_modes.issuperset(spec.access_modes)
        )


class Site:
    """Volumes that can be reached from the same nodes."""

    def __init__(self, required: NodeSelector | None) -> None:
        self.required: NodeSelector | None = required  # None: of all nodes
        self.entries: list[Entry] = []

    @property
    def largest(self) -> int:
        """Its capacity; -1 if there is none."""
        return self.entries[-1][0] if self.entries else -1

    def from_capacity(self, least: int) -> Iterator[Entry]:
        """Those of at least this capacity."""
        for place in range(bisect.bisect_left(self.entries, (least,)), len(self.entries)):
            yield self.entries[place]


class _LabelledSites:
    """Sites that are the nodes with certain values of one label, as those of local disks are."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.sites: dict[str, list[Site]] = {}  # by value
        self._column: LabelColumn | None = None
        self._levels = 0  # how many there were
        self._ranks: fw.IntArray = np.zeros(0, dtype=np.int64)  # of the largest, by label code
        self._changed: set[str] = set()  # values, since the ranks are known

    def changed(self, values: Iterable[str]) -> None:
        self._changed.update(values)

    def ranks(self, nodes: fw.Nodes, levels: list[int]) -> fw.IntArray:
        """The place among `levels` of the largest capacity, by label code; -1: no volume."""
        column = label_column(nodes, self.key)
        is_current = self._column is column and len(self._ranks) == len(column.values)
        if not is_current or self._levels != len(levels):
            self._column, self._levels = column, len(levels)
            self._ranks = np.full(len(column.values), -1, dtype=np.int64)
            self._changed = set(self.sites)
        for value in self._changed:
            code = column.code(value)
            if code is not None:
                largest = max((site.largest for site in self.sites.get(value, ())), default=-1)
                self._ranks[code] = -1 if largest < 0 else bisect.bisect_left(levels, largest)
        self._changed.clear()
        return self._ranks


class VolumesOfKind:
    """The free volumes of one storage class and kind."""

    def __init__(self) -> None:
        self._sites: dict[NodeSelector | None, Site] = {}
        self._by_label: dict[str, _LabelledSites] = {}
        self._others: list[Site] = []
        self._levels: list[int] = []  # all capacities that there were

    def add(self, volume: PersistentVolume) -> None:
        required = required_nodes(volume)
        site = self._sites.get(required)
        if site is None:
            site = self._sites[required] = Site(required)
            self._place(site)
        capacity = capacity_of(volume).nanos
        bisect.insort(site.entries, (capacity, volume.name, volume))
        level = bisect.bisect_left(self._levels, capacity)
        if level == len(self._levels) or self._levels[level] != capacity:
            self._levels.insert(level, capacity)
        self._changed(site)

    def remove(self, volume: PersistentVolume) -> None:
        site = self._sites[required_nodes(volume)]
        key = (capacity_of(volume).nanos, volume.name)
        del site.entries[bisect.bisect_left(site.entries, key)]
        self._changed(site)

    def near(self, labels: Mapping[str, str]) -> Iterator[Site]:
        """The sites that can be reached from a node with these labels."""
        for labelled in self._by_label.values():
            if labelled.key in labels:
                yield from labelled.sites.get(labels[labelled.key], ())
        for site in self._others:
            if site.entries and is_reachable(site.required, labels):
                yield site

    def available(self, least: int, nodes: fw.Nodes) -> fw.BoolArray:
        """The nodes that can reach a volume of at least this capacity."""
        found = np.zeros(len(nodes), dtype=np.bool_)
        level = bisect.bisect_left(self._levels, least)
        for labelled in self._by_label.values():
            ranks = labelled.ranks(nodes, self._levels)
            found |= (ranks >= level)[nodes.label_codes(labelled.key)]
        for site in self._others:
            if site.largest >= least:
                found |= reachable(site.required, nodes)
        return found

    def all(self, least: int) -> Iterator[Entry]:
        """All of at least this capacity, in no particular order."""
        for site in self._sites.values():
            yield from site.from_capacity(least)

    def _place(self, site: Site) -> None:
        test = _only_test(site)
        if test is None:
            self._others.append(site)
            return
        key, values = test
        sites = self._by_label.setdefault(key, _LabelledSites(key)).sites
        for value in values:
            sites.setdefault(value, []).append(site)

    def _changed(self, site: Site) -> None:
        test = _only_test(site)
        if test is not None:
            self._by_label[test[0]].changed(test[1])


def _only_test(site: Site) -> tuple[str, frozenset[str]] | None:
    """The label and the values that a site requires, if it requires nothing else."""
    alternatives = () if site.required is None else alternatives_of(site.required)
    if len(alternatives) == 1 and len(alternatives[0]) == 1 and alternatives[0][0].operator == "In":
        return alternatives[0][0].key, alternatives[0][0].values
    return None


class FreeVolumes:
    """The free volumes by storage class and kind; follows the watch and what is assumed."""

    def __init__(
        self, volumes: AssumeCache[PersistentVolume], objects: Callable[[], Objects]
    ) -> None:
        self._volumes = volumes
        self._objects = objects
        self._known: dict[str, PersistentVolume] = {}  # by name, as it is kept
        self._by_class: dict[str, dict[VolumeKind, VolumesOfKind]] = {}
        self._unread: set[tuple[str, str]] | None = None

    def suiting(self, claim: PersistentVolumeClaim, class_name: str) -> tuple[VolumesOfKind, ...]:
        """Those of a class that suit a claim in all but capacity and labels."""
        self._follow()
        kinds = self._by_class.get(class_name, {})
        return tuple(volumes for kind, volumes in kinds.items() if kind.suits(claim))

    def _follow(self) -> None:
        if self._unread is None:
            self._unread = self._objects().unread(PersistentVolume)
        names = self._volumes.take_changed()
        names.update(name for _, name in self._unread)
        self._unread.clear()
        for name in names:
            self._put(name, self._volumes.get(name))

    def _put(self, name: str, volume: PersistentVolume | None) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            self._by_class[class_of_volume(known)][_kind_of(known)].remove(known)
        if volume is not None and _is_free(volume):
            self._known[name] = volume
            kinds = self._by_class.setdefault(class_of_volume(volume), {})
            kinds.setdefault(_kind_of(volume), VolumesOfKind()).add(volume)


def _is_free(volume: PersistentVolume) -> bool:
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == AVAILABLE
        and volume.metadata.deletion_timestamp is None
    )


def _kind_of(volume: PersistentVolume) -> VolumeKind:
    spec = volume.spec
    return VolumeKind(
        spec.volume_mode or FILESYSTEM,
        spec.volume_attributes_class_name or "",
        frozenset(spec.access_modes),
    )


def capacity_of(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get("storage", Quantity.ZERO)
