"""DaemonSets: one pod per eligible node; the scheduler binds them."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from mooring.api import codec, core
from mooring.api.selectors import NODE_NAME_FIELD
from mooring.api.taints import NO_EXECUTE, find_untolerated
from mooring.cluster.apiserver.resources import NODES, PODS, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import (
    REVISION_HASH,
    ControllerContext,
    WorkloadController,
    encode_template,
    hash_of,
    int_or_percent,
    pod_of,
)
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.revisions import keep_revisions
from mooring.cluster.controllers.views import PodView
from mooring.cluster.kubelet.admission import may_run_on

DAEMONSETS: Final = known("daemonsets", "apps")

_BURST: Final = 100  # pods created or deleted per call
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class DaemonSetController(WorkloadController):
    """Creates pods whose affinity allows one node each."""

    watches: ClassVar[tuple[Resource, ...]] = (DAEMONSETS, PODS, NODES)
    name: ClassVar[str] = "daemonset-controller"
    of: ClassVar[Resource] = DAEMONSETS
    retry_after: ClassVar[tuple[float, float]] = (1.0, 900.0)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._nodes: dict[str, tuple[int, core.Node]] = {}  # decoded at a version
        self._targets: dict[str, str] = {}  # uid of an unbound pod -> its node

    def on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            if self.pods.latest is None and self.pods.before is not None:
                self._targets.pop(self.pods.before.metadata.uid, None)
        elif change.resource == NODES.key:
            if change.type == "DELETED":
                self._nodes.pop(change.new.name, None)
            for item in self.items(DAEMONSETS):
                self.enqueue(item.key)
            return
        super().on_change(change)

    def reconcile(self, key: Key) -> float | None:
        found = self.read(DAEMONSETS, key)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return None
        plain = encode_template(found["spec"]["template"])
        mark = hash_of(plain)
        template = encode_template(_tolerant(found["spec"]["template"]))
        keep_revisions(self, found, plain, mark, self.revision_hashes(found))
        wanted, allowed = self._eligible_nodes(found, template)
        by_node = self._by_node(found)
        budget = _BURST
        for name in [*by_node, *(name for name in wanted if name not in by_node)]:
            if budget <= 0:
                break
            budget -= self._manage_node(found, template, mark, name, by_node.get(name, []), allowed)
        if budget > 0:
            self._roll_out(found, mark, self._by_node(found), len(wanted))
        next_in = self._update_status(found, mark, self._by_node(found), wanted)
        return 0.0 if budget <= 0 else next_in

    # --- nodes ---------------------------------------------------------------------------------

    def _eligible_nodes(self, owner: Object, template: bytes) -> tuple[dict[str, None], set[str]]:
        """The nodes that should run a pod, and those where one may stay."""
        spec = codec.convert(pod_of(owner, template), core.Pod).spec
        wanted: dict[str, None] = {}
        allowed: set[str] = set()
        for item in self.items(NODES):
            known_at, node = self._nodes.get(item.name, (-1, None))
            if node is None or known_at != item.version:
                node = codec.decode(item.raw, core.Node)
                self._nodes[item.name] = (item.version, node)
            if spec.node_name not in ("", item.name):
                continue
            if not may_run_on(spec, item.name, node.metadata.labels):
                continue
            taints = node.spec.taints
            if find_untolerated(taints, spec.tolerations) is None:
                wanted[item.name] = None
                allowed.add(item.name)
            elif find_untolerated(taints, spec.tolerations, (NO_EXECUTE,)) is None:
                allowed.add(item.name)
        return wanted, allowed

    def _by_node(self, owner: Object) -> dict[str, list[PodView]]:
        found: dict[str, list[PodView]] = {}
        for pod in self.pods.of(owner["metadata"]["uid"]):
            if not (pod.is_terminating and pod.is_finished):
                found.setdefault(self._target(pod), []).append(pod)
        return found

    def _target(self, pod: PodView) -> str:
        """The node of a pod, or the one that its affinity names."""
        if pod.spec.node_name:
            return pod.spec.node_name
        known_target = self._targets.get(pod.metadata.uid)
        if known_target is None:
            item = self.verbs.store.get(PODS, *pod.key)
            known_target = _named(codec.decode(item.raw, core.Pod)) if item is not None else ""
            self._targets[pod.metadata.uid] = known_target
        return known_target

    # --- pods --------------------------------------------------------------------------------

    def _manage_node(
        self,
        owner: Object,
        template: bytes,
        mark: str,
        node: str,
        pods: list[PodView],
        allowed: set[str],
    ) -> int:
        """Create or delete pods of one node; how many."""
        unwanted = [pod for pod in pods if pod.is_finished and not self._is_too_soon(owner, pod)]
        living = [pod for pod in pods if not pod.is_finished]
        if node not in allowed:
            unwanted = pods
        elif len(living) > 1:  # the oldest stays
            living.sort(key=lambda pod: (not pod.spec.node_name, pod.metadata.creation_timestamp))
            unwanted += living[1:]
        unwanted = [pod for pod in unwanted if not pod.is_terminating]
        for pod in unwanted:
            self.delete_pod(owner, pod)
        if pods:  # a new pod is created when the old one is deleted
            return len(unwanted)
        labels = {REVISION_HASH: mark}
        pod_made = self.create_pod(owner, _bound_for(template, node), labels=labels)
        if pod_made is not None:
            self._targets[pod_made["metadata"]["uid"]] = node
        return 1

    def _is_too_soon(self, owner: Object, failed: PodView) -> bool:
        """Whether a failed pod has to stay for now, because of its backoff."""
        meta = owner["metadata"]
        key = (meta["uid"], self._target(failed))
        pause = self._backoff.left(key, failed.metadata.uid, self.clock.now())
        if pause > 0:
            self.enqueue((meta["namespace"], meta["name"]), pause)
        return pause > 0

    def _roll_out(
        self, owner: Object, mark: str, by_node: dict[str, list[PodView]], wanted: int
    ) -> None:
        """Delete pods of former templates, up to maxUnavailable at a time."""
        strategy = owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        most = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
        spare = max(int_or_percent(most, wanted, up=True), 1)
        pods = [pod for found in by_node.values() for pod in found if not pod.is_terminating]
        old = [pod for pod in pods if pod.metadata.labels.get(REVISION_HASH) != mark]
        spare -= wanted - sum(pod.is_ready for pod in pods)
        broken = [pod for pod in old if not pod.is_ready]
        working = [pod for pod in old if pod.is_ready]
        for pod in [*broken, *working[: max(spare, 0)]]:
            self.delete_pod(owner, pod)

    def _update_status(
        self, owner: Object, mark: str, by_node: dict[str, list[PodView]], wanted: dict[str, None]
    ) -> float | None:
        pods = [
            pod
            for name, found in by_node.items()
            if name in wanted
            for pod in found[:1]
            if not pod.is_finished
        ]
        available, next_in = self.available(pods, owner["spec"].get("minReadySeconds") or 0)
        updated = sum(pod.metadata.labels.get(REVISION_HASH) == mark for pod in pods)
        status: dict[str, Any] = {
            "currentNumberScheduled": len(pods),
            "numberMisscheduled": sum(name not in wanted for name in by_node),
            "desiredNumberScheduled": len(wanted),
            "numberReady": sum(pod.is_ready for pod in pods),
            "updatedNumberScheduled": updated or None,
            "numberAvailable": available or None,
            "numberUnavailable": (len(wanted) - available) or None,
            "observedGeneration": owner["metadata"].get("generation"),
        }
        self.write_status(DAEMONSETS, owner, status)
        return next_in


def _tolerant(template: Object) -> Object:
    """The template with the tolerations of every daemon pod."""
    spec = dict(template.get("spec") or {})
    wanted = list(_TOLERATED)
    if spec.get("hostNetwork"):
        wanted.append(_TOLERATED_ON_HOST_NETWORK)
    more = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *more]
    return {**template, "spec": spec}


def _bound_for(template: bytes, node: str) -> bytes:
    """The template for one node, by node affinity instead of the template's required terms."""
    copy: Object = msgspec.json.decode(template)
    affinity = copy["spec"].setdefault("affinity", {})
    field = {"key": NODE_NAME_FIELD, "operator": "In", "values": [node]}
    affinity.setdefault("nodeAffinity", {})["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [field]}]
    }
    return encode_template(copy)


def _named(pod: core.Pod) -> str:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None:
        return ""
    required = affinity.required_during_scheduling_ignored_during_execution
    for term in required.node_selector_terms if required is not None else ():
        for test in term.match_fields:
            if test.key == NODE_NAME_FIELD and test.values:
                return test.values[0]
    return ""
