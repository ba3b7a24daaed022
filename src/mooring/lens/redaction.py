"""A snapshot that can be mailed: equal strings stay equal, everything else about them is gone.

The law is `decide(redact(S)) == redact(decide(S))`: the same pods fit on the same nodes with the
same scores. So a string is replaced wherever it stands by the same pseudonym. A field is replaced
unless the table below says that its words are Kubernetes' own: a kind that is added later is
redacted before anybody thinks of it.
"""

from __future__ import annotations

import secrets
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from mooring.api import codec, core, placement
from mooring.api import resource as resource_api
from mooring.api.frozen import EMPTY, FrozenDict
from mooring.api.meta import (
    Condition,
    LabelSelectorRequirement,
    Object,
    OwnerReference,
    Value,
)
from mooring.api.policy import PodDisruptionBudgetStatus
from mooring.api.storage import TopologySelectorLabelRequirement
from mooring.api.volumes import ImageVolumeSource
from mooring.api.wellknown import HOSTNAME, ZONE
from mooring.config.defaults import DEFAULT_MULTIPOINT
from mooring.lens.device_words import DeviceWords
from mooring.lens.pseudonyms import Pseudonyms
from mooring.lens.snapshot import ClusterState, MissingKind, QueuedState, Snapshot
from mooring.lens.writing import stripped

NAMES: Final = "names"
LABELS: Final = "labels"
IMAGES: Final = "images"
PARTS: Final = (NAMES, LABELS, IMAGES)

V = TypeVar("V", bound=Value)
_Change = Callable[[Any], Any]

# Fields whose words are Kubernetes' own; those of times and of enumerations.
_KEPT_FIELDS_TEXT: Final = """
access_modes action allocation_mode api_version creation_timestamp declared_features
deletion_timestamp effect extended_resource_name fs_type kind last_heartbeat_time last_probe_time
last_transition_time max_unavailable min_available mode node_affinity_policy node_taints_policy
operator persistent_volume_reclaim_policy phase preemption_policy protocol pull_policy
reclaim_policy resize resource_name restart_policy scheduler_name start_time status time_added
type unhealthy_pod_eviction_policy volume_binding_mode volume_mode when_unsatisfiable
"""
_KEPT_FIELDS: Final = frozenset(_KEPT_FIELDS_TEXT.split())
_KEY_FIELDS: Final = frozenset({"topology_key", "match_label_keys", "mismatch_label_keys"})
_KEY_FIELDS_OF_DRIVERS: Final = "topology_keys"
_IMAGE_FIELDS: Final = {
    (core.Container, "image"),
    (core.ContainerImage, "names"),
    (ImageVolumeSource, "reference"),
}
# What selectors of devices read, and the method of DeviceWords that replaces it.
_DEVICE_FIELDS: Final = {
    "driver": "text",
    "string_value": "text",
    "string_values": "text",
    "version_value": "version",
    "version_values": "version",
    "match_attribute": "qualified",
    "distinct_attribute": "qualified",
    "expression": "expression",
}
_DEVICE_MAPS: Final = (resource_api.DeviceAttributes, resource_api.Capacities)
_CAPACITY_FIELDS: Final = {
    (resource_api.CapacityRequirements, "requests"),
    (resource_api.DeviceRequestAllocationResult, "consumed_capacity"),
}
_EMPTIED_FIELDS: Final = frozenset({"message", "reason", "description", "generate_name"})
_KEPT_REASONS: Final = frozenset(
    {"Unschedulable", "SchedulingGated", "PreemptionByScheduler", "Infeasible", "Deferred"}
)
# Labels whose values are names, so that redacting names alone leaves no trace of them.
_NAME_KEYS: Final = frozenset(
    {
        HOSTNAME,
        "kubernetes.io/metadata.name",
        "statefulset.kubernetes.io/pod-name",
        "metadata.name",
        "job-name",
        "batch.kubernetes.io/job-name",
    }
)
_KEPT_VALUES: Final = frozenset({"storage.alpha.kubernetes.io/migrated-plugins"})
_OWNERS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "Node", "Pod"}
    | {"ReplicaSet", "ReplicationController", "StatefulSet"}
)
_DEFAULT_PLUGINS: Final = frozenset(one.name for one in DEFAULT_MULTIPOINT)
_ZONE_KEYS: Final = (ZONE, "failure-domain.beta.kubernetes.io/zone")


def redact(
    snapshot: Snapshot, parts: Collection[str] = PARTS, *, key: bytes | None = None
) -> Snapshot:
    """The snapshot with pseudonyms; with a `key`, those of other files under the same key."""
    return redactor_for(snapshot, parts, key=key).snapshot(snapshot)


def redactor_for(
    snapshot: Snapshot, parts: Collection[str] = PARTS, *, key: bytes | None = None
) -> Redactor:
    """What replaces the strings of this snapshot."""
    names: set[str] = set()
    spaces: set[str] = set()
    zones: set[str] = set()
    for value in snapshot.cluster.objects():
        meta = value.metadata
        names.add(meta.name)
        spaces.add(meta.namespace)
        for zone in _ZONE_KEYS:
            zones |= set(meta.labels.get(zone, "").split("__"))
    for slice_ in snapshot.cluster.resourceslices:  # whose pools are tried in this order
        names |= {slice_.spec.driver, slice_.spec.pool.name}
    # Ranks would make a name of one file differ from that of another.
    pseudonyms = Pseudonyms(
        key or secrets.token_bytes(32),
        ranked=() if key else (names | spaces) - {""},
        spaces=spaces,
        zones=zones,
    )
    for pod in snapshot.cluster.pods:
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                name = pod.metadata.name
                pseudonyms.join(f"{name}-{volume.name}", name, volume.name)
    for name in _implicit_classes(snapshot.cluster.pods):
        pseudonyms.keep(name)
    return Redactor(pseudonyms, parts, DeviceWords(pseudonyms, snapshot.cluster))


def _implicit_classes(pods: Iterable[core.Pod]) -> set[str]:
    """Device classes that pods ask for as a resource, and the names of resources stay."""
    asked = {
        resource
        for pod in pods
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for resource in container.resources.requests
    }
    prefix = resource_api.IMPLICIT_RESOURCE_PREFIX
    return {one.removeprefix(prefix) for one in asked if one.startswith(prefix)}


class Redactor:
    """Replaces strings in objects; one for a whole snapshot."""

    def __init__(
        self,
        pseudonyms: Pseudonyms,
        parts: Collection[str] = PARTS,
        devices: DeviceWords | None = None,
    ) -> None:
        self._pseudonyms = pseudonyms
        self._devices = devices or DeviceWords(pseudonyms, ClusterState())
        self._parts = frozenset(parts)
        self._name: _Change = pseudonyms.name if NAMES in parts else _same
        self._key: _Change = pseudonyms.key if LABELS in parts else _same
        self._label: _Change = pseudonyms.value if LABELS in parts else _same
        self._image: _Change = pseudonyms.image if IMAGES in parts else _same
        self._plans: dict[type[Any], list[tuple[str, _Change]]] = {}
        self._done: dict[Any, Any] = {}  # parts of specs: many pods have equal ones

    def snapshot(self, given: Snapshot) -> Snapshot:
        cluster = structs.replace(
            given.cluster,
            **{
                field: tuple(map(self.object, getattr(given.cluster, field)))
                for field in given.cluster.__struct_fields__
            },
        )
        queue = given.queue
        return structs.replace(
            given,
            cluster=cluster,
            config=self.config(given.config),
            queue=None if queue is None else tuple(map(self._queued, queue)),
            missing=tuple(MissingKind(one.resource, "could not be read") for one in given.missing),
            notes=(),
            redacted=True,
        )

    @property
    def keeps_device_words(self) -> bool:
        """Whether drivers, attributes and selectors of devices stay: one reads letter by letter."""
        return self._devices.stay

    def object(self, given: Object) -> Object:
        return self._struct(stripped(given))

    def name(self, text: str) -> str:
        """The pseudonym of the name of an object, or of `namespace/name`."""
        found: str = self._name(text)
        return found

    def message(self, text: str) -> str:
        """A sentence of the scheduler, with pseudonyms."""
        return self._pseudonyms.text(text) if self._parts & {NAMES, LABELS} else text

    def config(self, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """The profiles alone; addresses and files of other programs are left out."""
        if given is None:
            return None
        kept = ("apiVersion", "kind", "percentageOfNodesToScore", "podInitialBackoffSeconds")
        found = {key: given[key] for key in (*kept, "podMaxBackoffSeconds") if key in given}
        if "profiles" in given:
            found["profiles"] = [self._profile(profile) for profile in given["profiles"] or ()]
        return found

    # --- configuration -------------------------------------------------------------------------

    def _profile(self, profile: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(profile)
        if profile.get("pluginConfig"):
            found["pluginConfig"] = [
                {**one, "args": self._args(one.get("args"), one.get("name") in _DEFAULT_PLUGINS)}
                for one in profile["pluginConfig"]
            ]
        return found

    def _args(self, args: Any, is_known: bool, key: str = "") -> Any:
        if is_known and key == "addedAffinity" and args:
            return codec.to_builtins(self._struct(codec.convert(args, placement.NodeAffinity)))
        if is_known and key == "defaultConstraints":
            kind = placement.TopologySpreadConstraint
            return [codec.to_builtins(self._struct(codec.convert(one, kind))) for one in args or ()]
        if isinstance(args, dict):
            return {name: self._args(value, is_known, name) for name, value in args.items()}
        if isinstance(args, list):
            return [self._args(value, is_known, key) for value in args]
        # What is text besides, in a default plugin, is the names of resources and of modes.
        return args if is_known or not isinstance(args, str) else self._name(args)

    # --- objects -------------------------------------------------------------------------------

    def _struct(self, given: V) -> V:
        if isinstance(given, core.PodSpec | Object):
            return self._changed(given)
        found = self._done.get(given)
        if found is None:
            found = self._done[given] = self._changed(given)
        return typing.cast("V", found)

    def _changed(self, given: V) -> V:
        kind = type(given)
        special = _SPECIAL.get(kind)
        if special is not None:
            return typing.cast("V", special(self, given))
        plan = self._plans.get(kind)
        if plan is None:
            plan = self._plans[kind] = self._plan(kind)
        changes: dict[str, Any] = {}
        for field, change in plan:
            old = getattr(given, field)
            if old:
                new = change(old)
                if new != old:
                    changes[field] = new
        return structs.replace(given, **changes) if changes else given

    def _plan(self, kind: type[Any]) -> list[tuple[str, _Change]]:
        found = []
        for field, hint in typing.get_type_hints(kind).items():
            if field in kind.__struct_fields__:
                change = self._change(kind, field, hint)
                if change is not None:
                    found.append((field, change))
        return found

    def _change(self, kind: type[Any], field: str, hint: Any) -> _Change | None:
        """What to do with the values of a field; None: they stay."""
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in (typing.Union, types.UnionType):
            changes = [self._change(kind, field, one) for one in inner if one is not type(None)]
            return next((change for change in changes if change is not None), None)
        if origin is tuple:
            each = self._change(kind, field, inner[0])
            return None if each is None else lambda values: tuple(map(each, values))
        if hint is str:
            return self._of_text(kind, field)
        if hint in (FrozenDict, FrozenDict[str, str]):
            return self._labels
        if hint in _DEVICE_MAPS or (kind, field) in _CAPACITY_FIELDS:
            return self._device_map
        if hint is resource_api.Counters:
            return lambda given: type(given)({self._name(k): v for k, v in given.items()})
        if hint is resource_api.Json:
            return lambda given: resource_api.Json("null")
        if isinstance(hint, type) and issubclass(hint, Value):
            return self._struct
        return None

    def _of_text(self, kind: type[Any], field: str) -> _Change | None:
        if field in _KEPT_FIELDS:
            return None
        if field in _DEVICE_FIELDS and kind.__module__ == resource_api.__name__:
            change = getattr(self._devices, _DEVICE_FIELDS[field])
            return typing.cast("_Change", change) if NAMES in self._parts else _same
        if field in _EMPTIED_FIELDS:
            return lambda value: ""
        if (kind, field) in _IMAGE_FIELDS:
            return self._image
        if field in _KEY_FIELDS or field == _KEY_FIELDS_OF_DRIVERS:
            return self._key
        return self._name

    def _value_for(self, key: str) -> _Change:
        if key in _KEPT_VALUES:
            return _same
        return self._name if key in _NAME_KEYS else self._label

    def _labels(self, given: Mapping[str, str]) -> FrozenDict[str, str]:
        return FrozenDict(
            {self._key(key): self._value_for(key)(value) for key, value in given.items()}
        )

    def _requirement(self, given: Any) -> Any:
        change = self._value_for(given.key)
        values = tuple(map(change, given.values))
        return structs.replace(given, key=self._key(given.key), values=values)

    def _node_term(self, given: placement.NodeSelectorTerm) -> placement.NodeSelectorTerm:
        fields = tuple(
            structs.replace(one, key=self._key(one.key), values=tuple(map(self._name, one.values)))
            for one in given.match_fields
        )
        expressions = tuple(map(self._requirement, given.match_expressions))
        return structs.replace(given, match_expressions=expressions, match_fields=fields)

    def _taint(self, given: Any) -> Any:
        return structs.replace(given, key=self._key(given.key), value=self._label(given.value))

    def _owner(self, given: OwnerReference) -> OwnerReference:
        known = given.kind in _OWNERS
        return structs.replace(
            given,
            api_version=given.api_version if known else self._name(given.api_version),
            kind=given.kind if known else self._name(given.kind),
            name=self._name(given.name),
            uid=self._name(given.uid),
        )

    def _condition(self, given: Condition) -> Condition:
        says = given.type == "PodScheduled"
        return structs.replace(
            given,
            reason=given.reason if given.reason in _KEPT_REASONS else "",
            message=self.message(given.message) if says else "",
        )

    def _budget_status(self, given: PodDisruptionBudgetStatus) -> PodDisruptionBudgetStatus:
        disrupted = {self._name(pod): since for pod, since in given.disrupted_pods.items()}
        return structs.replace(given, disrupted_pods=FrozenDict(disrupted) or EMPTY, conditions=())

    def _device_map(self, given: FrozenDict[str, Any]) -> FrozenDict[str, Any]:
        """Attributes, capacities or amounts of them, by qualified name."""
        if NAMES not in self._parts:
            return given
        changed = {
            self._devices.qualified(name): self._struct(one) if isinstance(one, Value) else one
            for name, one in given.items()
        }
        return type(given)(changed)

    def _device_status(self, given: resource_api.AllocatedDeviceStatus) -> Any:
        """Conditions are found by the names that a device gives them."""
        conditions = tuple(
            structs.replace(one, type=self._name(one.type), reason="", message="")
            for one in given.conditions
        )
        driver = self._devices.text(given.driver) if NAMES in self._parts else given.driver
        pool, device = self._name(given.pool), self._name(given.device)
        return structs.replace(
            given, driver=driver, pool=pool, device=device, conditions=conditions
        )

    def _consumer(self, given: resource_api.ResourceClaimConsumerReference) -> Any:
        is_pod = (given.api_group, given.resource) == ("", "pods")
        return structs.replace(
            given,
            api_group=self._name(given.api_group),
            resource=given.resource if is_pod else self._name(given.resource),
            name=self._name(given.name),
            uid=self._name(given.uid),
        )

    def _queued(self, given: QueuedState) -> QueuedState:
        return structs.replace(
            given, uid=self._name(given.uid), message=self.message(given.message)
        )


def _same(value: Any) -> Any:
    return value


_SPECIAL: Final[dict[type[msgspec.Struct], Callable[[Redactor, Any], Any]]] = {
    placement.NodeSelectorRequirement: Redactor._requirement,
    LabelSelectorRequirement: Redactor._requirement,
    TopologySelectorLabelRequirement: Redactor._requirement,
    placement.NodeSelectorTerm: Redactor._node_term,
    placement.Taint: Redactor._taint,
    placement.Toleration: Redactor._taint,
    OwnerReference: Redactor._owner,
    Condition: Redactor._condition,
    PodDisruptionBudgetStatus: Redactor._budget_status,
    resource_api.DeviceTaint: Redactor._taint,
    resource_api.DeviceToleration: Redactor._taint,
    resource_api.AllocatedDeviceStatus: Redactor._device_status,
    resource_api.ResourceClaimConsumerReference: Redactor._consumer,
}
