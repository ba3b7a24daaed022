"""The base class of the built-in controllers, and helpers for pods, statuses and conditions."""

from __future__ import annotations

import abc
import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import msgspec

from mooring.client.errors import ConflictError, NotFound, StatusError
from mooring.cluster.apiserver.metadata import LETTERS
from mooring.cluster.apiserver.resources import CLAIMS, PODS, Resource
from mooring.cluster.apiserver.store import Item, Object, StoreChange
from mooring.cluster.apiserver.verbs import Verbs
from mooring.cluster.component import ComponentContext
from mooring.cluster.controllers.reconcile_queue import FailedPodBackoff, Key, ReconcileQueue
from mooring.cluster.controllers.views import OwnerGraph, Pods, PodView
from mooring.cluster.event_writer import NORMAL, WARNING
from mooring.framework.handle import Clock

REVISION_HASH: Final = "controller-revision-hash"
STATUS_DELAY: Final = 0.1  # seconds; changes of many pods lead to one status update

_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_decode: Final = msgspec.json.Decoder().decode


@dataclass
class ControllerContext(ComponentContext):
    """What the controllers of one cluster share."""

    queue: ReconcileQueue = field(default_factory=ReconcileQueue)
    provision_any: bool = False  # volumes of any provisioner, not only of the simulated one
    pods: Pods = field(default_factory=Pods)
    owner_graph: OwnerGraph = field(default_factory=OwnerGraph)


class BuiltInController(abc.ABC):
    """Reconciles objects of one kind."""

    watches: ClassVar[tuple[Resource, ...]] = ()
    watches_custom: ClassVar[bool] = False  # custom resources, too
    name: ClassVar[str] = ""  # as Events give it

    def __init__(self, context: ControllerContext) -> None:
        self.verbs: Verbs = context.verbs
        self.clock: Clock = context.clock
        self.rng: random.Random = context.rng
        self.pods: Pods = context.pods
        self.owner_graph: OwnerGraph = context.owner_graph
        self._queue = context.queue
        self._event_writer = context.event_writer

    # --- the contract -------------------------------------------------------------

    @abc.abstractmethod
    def on_change(self, change: StoreChange) -> None:
        """Take note of a change of a watched resource; must not write."""

    @abc.abstractmethod
    def reconcile(self, key: Key) -> float | None: ...

    # --- helpers -----------------------------------------------------------------------

    def enqueue(self, key: Key, after: float = 0.0) -> None:
        self._queue.add(self, key, after)

    def enqueue_owner(self, kind: str, changed: PodView | None, before: PodView | None) -> None:
        """Enqueue the controller of a changed pod; at once if a pod may be missing."""
        for pod in (changed, before):
            owner = pod.metadata.controller if pod is not None else None
            if pod is not None and owner is not None and owner.kind == kind:
                is_less = changed is None or not changed.is_active
                self.enqueue((pod.metadata.namespace, owner.name), 0.0 if is_less else STATUS_DELAY)
                return

    def read(self, of: Resource, key: Key) -> Object | None:
        """A copy of an object, or None."""
        item = self.verbs.store.get(of, *key)
        return item.decoded() if item is not None else None

    def items(self, of: Resource, namespace: str = "") -> list[Item]:
        return self.verbs.store.list(of, namespace)

    def record_event(self, about: Object, reason: str, message: str, type_: str = NORMAL) -> None:
        self._event_writer.record_event(about, type_, reason, message, component=self.name)

    def write_status(self, of: Resource, value: Object, status: Mapping[str, Any]) -> None:
        """Write the status if it differs; None removes a field."""
        old: dict[str, Any] = value.get("status") or {}
        new = {**old, **status}
        new = {key: found for key, found in new.items() if found is not None}
        if new == old:
            return

        def change(current: Object) -> None:
            current["status"] = new

        meta = value["metadata"]
        self.verbs.modify(of, meta.get("namespace", ""), meta["name"], change, subresource="status")

    def create_pod(self, owner: Object, template: bytes, **meta: Any) -> Object | None:
        """Create a pod from a template, as `pod_of`; None if the name is taken.

        A refusal, such as that of a quota, is raised again after an Event.
        """
        pod = pod_of(owner, template, **meta)
        try:
            made = self.verbs.create(PODS, pod, namespace=pod["metadata"]["namespace"])
        except ConflictError as error:
            if error.reason != "AlreadyExists":
                raise
            return None
        except StatusError as error:
            self.record_event(owner, "FailedCreate", f"Error creating: {error}", WARNING)
            raise
        self.record_event(owner, "SuccessfulCreate", f"Created pod: {made['metadata']['name']}")
        return made

    def delete_pod(self, owner: Object, pod: PodView) -> None:
        meta = pod.metadata
        try:
            self.verbs.delete(PODS, meta.namespace, meta.name, uid=meta.uid)
        except (NotFound, ConflictError):
            return  # already deleted, or replaced by another pod of this name
        self.record_event(owner, "SuccessfulDelete", f"Deleted pod: {meta.name}")

    def available(self, pods: Sequence[PodView], seconds: float) -> tuple[int, float | None]:
        """The number of pods ready for `seconds`, and the time until there is another one."""
        if seconds <= 0:
            return sum(pod.is_ready for pod in pods), None
        count, next_in = 0, None
        for pod in pods:
            since = pod.ready_since
            if since is None:
                continue
            left = since + seconds - self.clock.now()
            if left <= 0:
                count += 1
            elif next_in is None or left < next_in:
                next_in = left
        return count, next_in

    def make_claim(self, namespace: str, name: str, template: Object, **meta: Any) -> Object | None:
        """Create a claim from a template and further metadata; None if the name is taken."""
        if self.verbs.store.get(CLAIMS, namespace, name) is not None:
            return None
        given = template.get("metadata") or {}
        copied = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
        value = {
            "metadata": {"name": name, **copied, **meta},
            "spec": _decode(_encode(template.get("spec") or {})),
        }
        return self.verbs.create(CLAIMS, value, namespace=namespace)


class WorkloadController(BuiltInController):
    """Reconciles owners of pods: when they change, and when one of their pods does."""

    of: ClassVar[Resource]
    # Seconds before a failed pod is replaced: the first time, and at most.
    retry_after: ClassVar[tuple[float, float]] = (0.1, 10.0)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._backoff = FailedPodBackoff(*self.retry_after)

    def on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            self.enqueue_owner(self.of.kind, self.pods.latest, self.pods.before)
        elif change.type == "DELETED":
            self._backoff.forget(change.new.uid)
        else:
            self.enqueue(change.new.key)

    def revision_hashes(self, owner: Object) -> set[str]:
        """The revisions of the pods of a DaemonSet or StatefulSet."""
        pods = self.pods.of(owner["metadata"]["uid"])
        return {pod.metadata.labels.get(REVISION_HASH, "") for pod in pods}


def owner_reference(owner: Object) -> Object:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def encode_template(template: Object) -> bytes:
    """A template from which many copies are made; equal ones are encoded alike."""
    return _encode(template)


def pod_of(
    owner: Object,
    template: bytes,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """A pod for its owner, from a template and further metadata; without a name it is generated."""
    copy: Object = _decode(template)
    given = copy.get("metadata") or {}
    meta: dict[str, Any] = {"namespace": owner["metadata"]["namespace"]}
    if name:
        meta["name"] = name
    else:
        meta["generateName"] = f"{owner['metadata']['name']}-"
    for part, more in (("labels", labels), ("annotations", annotations)):
        if given.get(part) or more:
            meta[part] = {**(given.get(part) or {}), **(more or {})}
    if given.get("finalizers"):
        meta["finalizers"] = given["finalizers"]
    meta["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": copy.get("spec") or {}}


def hash_of(template: bytes, collisions: int = 0) -> str:
    """A hash of a template that fits into a label."""
    digest = hashlib.sha256(template + str(collisions).encode()).digest()
    return "".join(LETTERS[byte % len(LETTERS)] for byte in digest[:10])


def with_condition(
    known: Sequence[Object] | None,
    kind: str,
    status: str,
    reason: str,
    message: str,
    time: str,
    **times: str,
) -> list[Object]:
    """The conditions with one of them set; it keeps its times if nothing changed."""
    found = [one for one in known or () if one["type"] != kind]
    old = next((one for one in known or () if one["type"] == kind), None)
    said = {"type": kind, "status": status, "reason": reason, "message": message}
    if old is not None and all(old.get(key) == value for key, value in said.items()):
        return [*found, old]
    changed = old["lastTransitionTime"] if old and old["status"] == status else time
    return [*found, {**said, **times, "lastTransitionTime": changed}]


def replicas_of(owner: Object) -> int:
    """The replicas that a workload asks for."""
    found = owner["spec"].get("replicas")
    return 1 if found is None else int(found)


def int_or_percent(value: int | str | None, of: int, *, up: bool) -> int:
    """A number, or a percentage of `of`, rounded up or down."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%")) * of
    return -(-percent // 100) if up else percent // 100
