"""Dynamic provisioning: where the storage class and the free capacity allow a new volume."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.meta import LabelSelector, LabelSelectorRequirement
from mooring.api.quantity import Quantity
from mooring.api.selectors import Selector, SelectorError
from mooring.api.storage import CSIDriver, CSIStorageCapacity, StorageClass, TopologySelectorTerm
from mooring.api.volumes import PersistentVolumeClaim
from mooring.cache.objects import Objects
from mooring.plugins._node_requirements import meeting_all
from mooring.plugins._volume_claims import requested_storage
from mooring.plugins.volumebinding.reasons import NONE, Reason


class Provision(msgspec.Struct, frozen=True):
    """The conditions on a node for a new volume; None: no condition."""

    is_possible: bool
    # One of each must match; topologies with capacity left are those that a driver reported.
    allowed_topologies: tuple[Selector, ...] | None = None
    with_capacity: tuple[Selector, ...] | None = None

    def refusal(self, labels: Mapping[str, str]) -> Reason:
        if not self.is_possible or not _any_matches(self.allowed_topologies, labels):
            return Reason.BIND_CONFLICT
        return NONE if _any_matches(self.with_capacity, labels) else Reason.NOT_ENOUGH_SPACE

    def refusals(self, nodes: fw.Nodes) -> fw.IntArray:
        if not self.is_possible:
            return np.full(len(nodes), int(Reason.BIND_CONFLICT), dtype=np.int64)
        found = np.zeros(len(nodes), dtype=np.int64)
        if self.with_capacity is not None:
            found[~_matching_any(nodes, self.with_capacity)] = Reason.NOT_ENOUGH_SPACE
        if self.allowed_topologies is not None:
            found[~_matching_any(nodes, self.allowed_topologies)] = Reason.BIND_CONFLICT
        return found


IMPOSSIBLE = Provision(is_possible=False)


def provision_for(
    claim: PersistentVolumeClaim, storage_class: StorageClass, objects: Objects
) -> Provision:
    """What a node needs for a new volume of this claim."""
    if storage_class.provisioner in ("", "kubernetes.io/no-provisioner"):
        return IMPOSSIBLE
    allowed = storage_class.allowed_topologies
    return Provision(
        is_possible=True,
        allowed_topologies=tuple(_allowed_topologies(allowed)) if allowed else None,
        with_capacity=_topologies_with_capacity(claim, storage_class, objects),
    )


def volume_limit(capacity: CSIStorageCapacity) -> Quantity | None:
    """The largest volume that can still be provisioned."""
    if capacity.maximum_volume_size is not None:
        return capacity.maximum_volume_size
    return capacity.capacity


def capacity_class(capacity: CSIStorageCapacity) -> str:
    return capacity.storage_class_name


def _allowed_topologies(terms: Iterable[TopologySelectorTerm]) -> Iterable[Selector]:
    """The terms that can match: neither empty nor invalid."""
    for term in terms:
        tests = tuple(
            LabelSelectorRequirement(key=test.key, operator="In", values=test.values)
            for test in term.match_label_expressions
        )
        selector = _parsed(LabelSelector(match_expressions=tests))
        if tests and selector is not None:
            yield selector


def _topologies_with_capacity(
    claim: PersistentVolumeClaim, storage_class: StorageClass, objects: Objects
) -> tuple[Selector, ...] | None:
    """The topologies with capacity for the claim; None if the driver does not report capacity."""
    if "storage" not in claim.spec.resources.requests:
        return None
    driver = objects.get(CSIDriver, storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity:
        return None
    size = requested_storage(claim).value
    found = []
    for capacity in objects.select(CSIStorageCapacity, capacity_class, storage_class.name):
        limit = volume_limit(capacity)
        if limit is not None and limit.value >= size:
            selector = _parsed(capacity.node_topology)
            if selector is not None:
                found.append(selector)
    return tuple(found)


def _parsed(selector: LabelSelector | None) -> Selector | None:
    try:
        return Selector.from_label_selector(selector)
    except SelectorError:
        return None


def _any_matches(selectors: tuple[Selector, ...] | None, labels: Mapping[str, str]) -> bool:
    return selectors is None or any(selector.matches(labels) for selector in selectors)


def _matching_any(nodes: fw.Nodes, selectors: tuple[Selector, ...]) -> fw.BoolArray:
    found = np.zeros(len(nodes), dtype=np.bool_)
    for selector in selectors:
        if not selector.matches_nothing:
            found |= meeting_all(nodes, selector.requirements)
    return found
