"""The limits of attachable volumes per driver and node, from the CSINodes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.api.storage import CSINode, StorageClass, VolumeAttachment
from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.internals import all_names, count_features, on_rows_of
from mooring.framework._internal import InternalPlugin, is_assigned_or_nominated
from mooring.plugins._attachable_volumes import (
    Attachable,
    attached_to,
    inline_driver,
    is_attachable,
    volumes_of,
)
from mooring.plugins._claim_edits import claim_facts, end_users
from mooring.plugins._csi_nodes import CSINodes, limits_of
from mooring.plugins._volume_claims import PVC_ADDED, Unusable, has_volumes, uses_claim


class VolumesToAttach(msgspec.Struct, frozen=True):
    """The volumes of the pod to place; in-tree volumes count only on nodes with a CSINode."""

    with_csi_node: frozenset[Attachable] | fw.Status  # on nodes with a CSINode
    without_csi_node: fw.Status  # no limits there; only what is wrong with the pod


class Attachments(msgspec.Struct, frozen=True):
    """How many VolumeAttachments there are per node, by row."""

    names: tuple[str, ...]
    version: int
    counts: fw.IntArray


TO_ATTACH: fw.StateKey[VolumesToAttach] = fw.StateKey("NodeVolumeLimits/volumes to attach")


class NodeVolumeLimits(InternalPlugin, fw.PreFilter, fw.Filter):
    """Refuse nodes where the pod's volumes would exceed the limit of their driver."""

    name = "NodeVolumeLimits"
    key_from_spec = True
    answers_what_ifs = True  # by the pods of the node alone
    reads = (PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, VolumeAttachment)
    wakes_on = (
        fw.ClusterEvent("storage.k8s.io/CSINode", fw.Action.ADD),
        fw.ClusterEvent("storage.k8s.io/CSINode", fw.Action.UPDATE),
        fw.Event.POD_DELETED,
        PVC_ADDED,
        fw.ClusterEvent("storage.k8s.io/VolumeAttachment", fw.Action.DELETE),
    )

    FULL = fw.Status.unschedulable("node(s) exceed max volume count")

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self._csi_nodes = CSINodes()
        self._attachments: Attachments | None = None

    def applies_to(self, pod: fw.Pod) -> bool:
        return has_volumes(pod)

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Status:
        if not any(map(is_attachable, pod.spec.volumes)):
            return fw.SKIP
        state[TO_ATTACH] = self._volumes_to_attach(pod)
        return fw.OK

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        to_attach = state.get(TO_ATTACH) or self._volumes_to_attach(pod)
        csi_node = self.handle.objects.get(CSINode, node.name)
        if csi_node is None:
            return to_attach.without_csi_node
        if isinstance(to_attach.with_csi_node, fw.Status):
            return to_attach.with_csi_node
        limits = limits_of(csi_node)
        if not to_attach.with_csi_node or not limits:
            return fw.OK
        objects = self.handle.objects
        attached = frozenset(it for pod in node.pods for it in volumes_of(pod, objects, True))
        total = Counter(volume.driver for volume in attached)
        total.update(volume.driver for volume in attached_to(node.name, objects) - attached)
        new = Counter(volume.driver for volume in to_attach.with_csi_node - attached)
        for driver, count in new.items():
            if driver in limits and total[driver] + count > limits[driver]:
                return self.FULL
        return fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        verdicts = fw.Verdicts.passing(nodes)
        to_attach = state.get(TO_ATTACH) or self._volumes_to_attach(pod)
        csi_nodes, objects = self._csi_nodes, self.handle.objects
        if not to_attach.without_csi_node.ok:
            verdicts.reject(~csi_nodes.exist(nodes, objects), to_attach.without_csi_node)
        if isinstance(to_attach.with_csi_node, fw.Status):
            return verdicts.reject(csi_nodes.exist(nodes, objects), to_attach.with_csi_node)
        tight = np.zeros(len(nodes), dtype=np.bool_)
        at_most: fw.IntArray | None = None  # attached volumes, as if no two pods shared any
        for driver, count in Counter(volume.driver for volume in to_attach.with_csi_node).items():
            limit = csi_nodes.limits(driver, nodes, objects)
            if limit is not None:
                at_most = self._attached_at_most(nodes) if at_most is None else at_most
                tight |= at_most + count > limit
        for place in np.flatnonzero(tight).tolist():
            verdicts.set(place, self.filter(state, pod, nodes[place]))
        return verdicts

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        yield from claim_facts(pod, self.handle.objects)
        for node in islice(nodes, 1):
            for driver, limit, _ in self._full(state, pod, node):
                yield fw.Fact(text=f"{driver} attaches at most {limit} volumes to a node")

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        if node is None:
            return
        for driver, _, users in self._full(state, pod, node):
            yield from end_users(f"fewer volumes of {driver} on {node.name}", users[:1])

    def hint(
        self, event: fw.ClusterEvent, pod: fw.Pod, old: object | None, new: object | None
    ) -> bool:
        if isinstance(new, CSINode) and isinstance(old, CSINode):
            before = limits_of(old)
            return any(limit > before.get(name, 0) for name, limit in limits_of(new).items())
        if isinstance(new, PersistentVolumeClaim):
            return uses_claim(pod, new)
        if isinstance(old, fw.Pod):
            attaches = any(map(is_attachable, old.spec.volumes))
            return attaches and is_assigned_or_nominated(old)
        if isinstance(old, VolumeAttachment):
            return any(
                volume.persistent_volume_claim is not None
                or inline_driver(volume) == old.spec.attacher
                for volume in pod.spec.volumes
            )
        return True

    def _full(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node
    ) -> Iterator[tuple[str, int, list[fw.Pod]]]:
        """The drivers of the pod's volumes with a limit here, that limit, and their users here."""
        to_attach = (state.get(TO_ATTACH) or self._volumes_to_attach(pod)).with_csi_node
        objects = self.handle.objects
        csi_node = objects.get(CSINode, node.name)
        if csi_node is None or isinstance(to_attach, fw.Status):
            return
        limits = limits_of(csi_node)
        for driver in sorted({volume.driver for volume in to_attach} & limits.keys()):
            users = [
                other
                for other in node.pods
                if any(volume.driver == driver for volume in volumes_of(other, objects, True))
            ]
            users.sort(key=lambda other: (other.priority, other.key))
            yield driver, limits[driver], users

    def _volumes_to_attach(self, pod: fw.Pod) -> VolumesToAttach:
        def ask(has_csi_node: bool) -> frozenset[Attachable] | fw.Status:
            try:
                return frozenset(volumes_of(pod, objects, has_csi_node, is_new=True))
            except Unusable as unusable:
                return unusable.status

        objects = self.handle.objects
        without_csi_node = ask(False)
        return VolumesToAttach(
            ask(True), without_csi_node if isinstance(without_csi_node, fw.Status) else fw.OK
        )

    # --- columns, kept until something changes ---------------------------------------------------

    def _attached_at_most(self, nodes: fw.Nodes) -> fw.IntArray:
        features = count_features(nodes, "attachable volumes", numbered_volumes)
        total = np.zeros(len(nodes), dtype=np.int64)
        for number in features.distinct:
            total += features.per_node(number)
        return total + self._attachments_of(nodes)

    def _attachments_of(self, nodes: fw.Nodes) -> fw.IntArray:
        version = self.handle.objects.version(VolumeAttachment)
        known, names = self._attachments, all_names(nodes)
        if known is None or known.names is not names or known.version != version:
            listed = self.handle.objects.list(VolumeAttachment)
            counts = Counter(attachment.spec.node_name for attachment in listed)
            column = np.fromiter((counts[name] for name in names), np.int64, len(names))
            known = self._attachments = Attachments(names, version, column)
        return on_rows_of(nodes, known.counts)


def numbered_volumes(pod: fw.Pod) -> Iterable[int]:
    """A number per attachable volume: the pods of all numbers together are the volumes."""
    return range(sum(map(is_attachable, pod.spec.volumes)))
