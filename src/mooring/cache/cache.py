"""The cluster as the scheduler believes it to be.

A pod is in one of three states here, keyed by its uid:

            assume                       add (the watch shows it bound)
    (none) --------> ASSUMED ------------------------------------------> BOUND
                        |  forget                                         | remove
                        +--------> (none) <-------------------------------+

ASSUMED never ends by time: a bind that is slow is still a bind. Events may come twice, late or not
at all (a watch that was cut), so every operation accepts whatever state it finds. Pods may come
before their node and stay when it goes; `_of_missing_nodes` holds them, and no row counts them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from mooring.api import core
from mooring.api.frozen import EMPTY
from mooring.api.wellknown import GIVEN_TO_PODS
from mooring.cache.nodes import NodeTable
from mooring.cache.objects import Objects
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.errors import InternalError


class Cache:
    """Node rows, the pods on them, and which of those pods are only assumed."""

    def __init__(self) -> None:
        self.table: NodeTable = NodeTable()
        self.objects: Objects = Objects()
        self._pods: dict[str, Pod] = {}  # uid -> the pod on its node, bound or assumed
        self._assumed: set[str] = set()
        self._of_missing_nodes: dict[str, dict[str, Pod]] = {}  # node name -> uid -> pod
        self._touches = itertools.count(1)
        self._touched: dict[str, int] = {}  # node name -> number of its last change from outside
        # Whether pods are seen to get labels of their node: then they are assumed with them, and
        # need not be counted anew when the watch shows them bound.
        self._gives_labels = False

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.table)

    # --- nodes -----------------------------------------------------------------------------------

    def has_node(self, name: str) -> bool:
        return name in self.table.row_of

    def put_node(self, node: core.Node) -> core.Node | None:
        """Add or update a node; returns its former state."""
        name = node.metadata.name
        row = self.table.row_of.get(name)
        if row is None:
            self.add_nodes([node])
            return None
        old = self.table.api[row]
        self.table.replace(row, node)
        if _matters_to_pods(old, node):
            self._touched[name] = next(self._touches)
        return old

    def add_nodes(self, nodes: Sequence[core.Node]) -> None:
        """Add nodes that were unknown so far, no two of one name."""
        self.table.add_all(nodes)
        for node in nodes:
            name = node.metadata.name
            self._touched[name] = next(self._touches)
            for pod in self._of_missing_nodes.pop(name, {}).values():
                self.table.add_pod(self.table.row_of[name], pod)

    def remove_node(self, name: str) -> None:
        if name in self.table.row_of:
            self._touched.pop(name, None)
            pods = self.table.remove(name)
            if pods:
                self._of_missing_nodes[name] = {pod.uid: pod for pod in pods}

    # --- pods ------------------------------------------------------------------------------------

    def assume(self, pod: Pod, node_name: str) -> Pod:
        """Count the pod on its node before the cluster knows; returns the pod with its node set."""
        if pod.uid in self._pods:
            raise InternalError(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        labels = self._given_labels(node_name) if self._gives_labels else EMPTY
        assumed = pod.assumed_on(node_name, labels)
        self._place(assumed)
        self._assumed.add(pod.uid)
        return assumed

    def forget(self, pod: Pod) -> None:
        """Take an assumption back. A pod that the watch confirmed meanwhile stays."""
        if pod.uid in self._assumed:
            self._lift(pod.uid)

    def put_pod(self, pod: Pod) -> Pod | None:
        """A bound pod was seen, for the first time or again; returns what was known of it."""
        old = self._pods.get(pod.uid)
        if old is not None and not pod.is_finished and pod.has_same_footprint(old):
            # As it was assumed to be, or with nothing new but its status: nothing is to be counted.
            self._assumed.discard(pod.uid)
            self._pods[pod.uid] = pod
            row = self.table.row_of.get(pod.node_name)
            if row is None:
                self._of_missing_nodes[pod.node_name][pod.uid] = pod
            else:
                self.table.replace_pod(row, pod)
            return old
        if pod.uid in self._assumed:
            self._gives_labels = self._given_labels(pod.node_name).items() <= pod.labels.items()
        was_expected = old is not None and (
            pod.uid in self._assumed or old.api.spec == pod.api.spec
        )
        if old is not None:
            self._lift(pod.uid)
        if not pod.is_finished:
            self._place(pod)
            if not (was_expected and old is not None and old.node_name == pod.node_name):
                self.touch(pod.node_name)
        return old

    def add_pods(self, pods: list[Pod]) -> None:
        """Bound pods that were unknown so far, as `put_pod` for each of them."""
        located = []
        for pod in pods:
            self._pods[pod.uid] = pod
            row = self.table.row_of.get(pod.node_name)
            if row is None:
                self._of_missing_nodes.setdefault(pod.node_name, {})[pod.uid] = pod
            else:
                located.append((row, pod))
        self.table.add_pods(located)
        for name in {pod.node_name for pod in pods}:
            self.touch(name)

    def remove_pod(self, pod: Pod) -> Pod | None:
        """A pod is gone; returns what was known of it."""
        old = self._pods.get(pod.uid)
        if old is not None:
            self._lift(pod.uid)
        return old

    @contextmanager
    def without_pod(self, pod: Pod) -> Iterator[None]:
        """Inside, as if this pod were on no node; nothing else may be changed meanwhile."""
        known = self._pods.get(pod.uid)
        was_assumed = pod.uid in self._assumed
        if known is not None:
            self._lift(pod.uid)
        try:
            yield
        finally:
            if known is not None:
                self._place(known)
                if was_assumed:
                    self._assumed.add(pod.uid)

    def touch(self, node_name: str) -> None:
        """Another process has changed what is on this node."""
        if node_name in self.table.row_of:
            self._touched[node_name] = next(self._touches)

    def last_touch(self, node_name: str) -> int:
        """A number that changes whenever another process changes a node or the pods on it."""
        return self._touched.get(node_name, 0)

    def is_overcommitted(self, node_name: str) -> bool:
        """Whether the pods of a node ask for more than it has, in anything it offers."""
        node = self.nodes.get(node_name)
        if node is None:
            return False
        counted = self.table.resources.requested
        return any(node.requested(name) > node.allocatable(name) for name in counted)

    def is_assumed(self, uid: str) -> bool:
        return uid in self._assumed

    def get_pod(self, uid: str) -> Pod | None:
        return self._pods.get(uid)

    def pods(self) -> Iterator[Pod]:
        """Every pod that is on a node, known or not."""
        return iter(self._pods.values())

    def pod_uids(self) -> Iterator[str]:
        """Those of `pods`."""
        return iter(self._pods)

    def assumed_uids(self) -> frozenset[str]:
        return frozenset(self._assumed)

    def unknown_nodes(self) -> dict[str, tuple[Pod, ...]]:
        """The pods on nodes that are not known, or not any more, by the name of the node."""
        return {name: tuple(pods.values()) for name, pods in self._of_missing_nodes.items()}

    @property
    def assumed_count(self) -> int:
        return len(self._assumed)

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    # --- inside ----------------------------------------------------------------------------------

    def _given_labels(self, node_name: str) -> Mapping[str, str]:
        row = self.table.row_of.get(node_name)
        if row is None:
            return EMPTY
        labels = self.table.api[row].metadata.labels
        return {key: labels[key] for key in GIVEN_TO_PODS if key in labels}

    def _place(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        row = self.table.row_of.get(pod.node_name)
        if row is None:
            self._of_missing_nodes.setdefault(pod.node_name, {})[pod.uid] = pod
        else:
            self.table.add_pod(row, pod)

    def _lift(self, uid: str) -> None:
        pod = self._pods.pop(uid)
        self._assumed.discard(uid)
        row = self.table.row_of.get(pod.node_name)
        if row is not None:
            self.table.remove_pod(row, pod)
            return
        waiting = self._of_missing_nodes[pod.node_name]
        del waiting[uid]
        if not waiting:
            del self._of_missing_nodes[pod.node_name]


def _matters_to_pods(old: core.Node, new: core.Node) -> bool:
    """Whether a change may matter to a pod that was assumed on the node; a heartbeat does not."""
    return (
        old.spec != new.spec
        or old.metadata.labels != new.metadata.labels
        or old.status.allocatable != new.status.allocatable
    )
