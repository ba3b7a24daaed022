"""The verbs: create, replace, delete, bind and evict objects, as a kube-apiserver does.

Everything is synchronous and works on plain dictionaries, so each call is atomic. `rest.py` calls
this for requests, the built-in controllers call it directly. Failures are raised as the errors of
`mooring.client.errors`.

A value that is given to `create` or `replace` belongs to the server from then on: it is defaulted
in place and returned.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

import msgspec

from mooring.api.meta import format_time
from mooring.client.errors import StatusError
from mooring.cluster.apiserver import metadata, pods
from mooring.cluster.apiserver.admission import (
    admit_new,
    admit_update,
    check_namespace,
    topology_labels,
)
from mooring.cluster.apiserver.customresources.catalogue import CustomResources
from mooring.cluster.apiserver.customresources.definitions import begin_deletion
from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.customresources.strategy import check_creatable
from mooring.cluster.apiserver.errors import (
    already_exists,
    invalid,
    not_found,
    other_namespace,
    precondition_failed,
)
from mooring.cluster.apiserver.events import from_storage, to_storage
from mooring.cluster.apiserver.evictions import evict
from mooring.cluster.apiserver.limit_ranges import check_limits
from mooring.cluster.apiserver.namespaces import NamespaceTermination
from mooring.cluster.apiserver.options import WriteOptions
from mooring.cluster.apiserver.patching.managed_fields import tracked
from mooring.cluster.apiserver.quotas import QuotaCharge, check_quota, is_short_lived
from mooring.cluster.apiserver.registry import kind_of
from mooring.cluster.apiserver.resources import (
    CLAIMS,
    DEFINITIONS,
    NAMESPACES,
    PODS,
    SERVICES,
    Resource,
)
from mooring.cluster.apiserver.scale import replicas_of, scale_of, with_replicas
from mooring.cluster.apiserver.store import Item, Object, Store
from mooring.cluster.apiserver.strategies import (
    check_basis,
    check_preconditions,
    count_generation,
    mark,
    prepare_new,
    prepare_status,
    prepare_update,
    remaining_finalizers,
    set_defaults,
    validate_create,
    validate_update,
)

_TRIES: Final = 8  # of generated names that are taken


_NO_OPTIONS: Final = WriteOptions()


class Verbs:
    """The writes and single reads of one cluster."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self.store: Store = store
        self._clock = clock
        self._rng = rng or random.Random()
        self.custom: CustomResources = CustomResources(store)
        self._namespaces = NamespaceTermination(store, self.custom)
        self._second = (0, "")  # the last second that was formatted, and its text

    def now(self) -> str:
        """The current time, as objects contain it."""
        second = int(self._clock())
        if second != self._second[0]:
            self._second = (second, format_time(second))
        return self._second[1]

    # --- reading -------------------------------------------------------------------------------

    def get(
        self, resource: Resource, namespace: str, name: str, *, subresource: str = ""
    ) -> Object:
        """A copy of an object, or its Scale; raises NotFound."""
        value = _read(resource, self._item(resource, namespace, name))
        if subresource == "scale":
            return scale_of(resource, value)
        return from_storage(resource, value)

    def _item(self, resource: Resource, namespace: str, name: str) -> Item:
        item = self.store.get(resource, namespace, name)
        if item is None:
            raise not_found(resource, name)
        return item

    # --- creating ------------------------------------------------------------------------------

    def create(
        self,
        resource: Resource,
        value: Object,
        *,
        namespace: str = "",
        options: WriteOptions = _NO_OPTIONS,
    ) -> Object:
        value = to_storage(resource, value)
        meta = value.setdefault("metadata", {})
        self._set_namespace(resource, meta, namespace)
        prefix = meta.get("generateName", "") if not meta.get("name") else ""
        if prefix:
            meta["name"] = self._free_name(resource, meta.get("namespace", ""), prefix)
        metadata.fill(meta, options.uid or metadata.new_uid(self._rng), self.now())
        if resource.namespaced:
            check_namespace(self.store, resource, meta)
        if meta.pop("resourceVersion", ""):
            raise StatusError(
                "resourceVersion should not be set on objects to be created", code=500
            )
        if isinstance(resource, CustomResource):
            check_creatable(resource, meta.get("name", ""))
        set_defaults(resource, value)
        admit_new(self.store, resource, value)
        prepare_new(resource, value)
        prepare_status(resource, value, self.now())
        self._track(resource, None, value, "", options)
        if problems := validate_create(resource, value):
            raise invalid(resource, meta.get("name", ""), problems)
        check_limits(self.store, resource, value)
        charge = check_quota(self.store, resource, value, self._clock())
        if self.store.get(resource, meta.get("namespace", ""), meta["name"]) is not None:
            raise already_exists(resource, meta["name"])
        stored = _stored(resource, value)
        if not options.dry_run:
            if charge is not None:
                charge.apply()
            self.store.put(resource, stored)
        return from_storage(resource, value)

    def _set_namespace(self, resource: Resource, meta: Object, namespace: str) -> None:
        if not resource.namespaced:
            meta.pop("namespace", None)
        elif namespace and meta.get("namespace", namespace) != namespace:
            raise other_namespace()
        elif namespace:
            meta["namespace"] = namespace

    def _free_name(self, resource: Resource, namespace: str, prefix: str) -> str:
        for _ in range(_TRIES):
            name = metadata.generated_name(prefix, self._rng)
            if self.store.get(resource, namespace, name) is None:
                break
        return name

    # --- changing ------------------------------------------------------------------------------

    def replace(
        self,
        resource: Resource,
        value: Object,
        *,
        namespace: str,
        name: str,
        subresource: str = "",
        options: WriteOptions = _NO_OPTIONS,
    ) -> Object:
        """Replace an object or a subresource of it."""
        item = self.store.get(resource, namespace, name)
        if subresource == "scale":
            return self._update_scale(resource, value, namespace, name, options)
        value = to_storage(resource, value)
        meta = value.setdefault("metadata", {})
        if item is None:
            if subresource or not kind_of(resource).creates_on_update:
                raise not_found(resource, name)
            if uid := meta.get("uid", ""):
                why = f"UID in precondition: {uid}, UID in object meta: "
                raise precondition_failed(resource, namespace, name, why)
            meta.pop("resourceVersion", None)  # kube-apiserver ignores it where it creates
            meta["name"] = name
            value = from_storage(resource, value)
            return self.create(resource, value, namespace=namespace, options=options)
        check_basis(resource, item, meta)
        old = _read(resource, item)
        self._set_namespace(resource, meta, namespace)
        metadata.carry_over(meta, old["metadata"])
        if subresource != "status" or resource.key == NAMESPACES.key or resource.is_custom:
            set_defaults(resource, value)
        if subresource != "status":
            admit_update(resource, value, old)
        if subresource == "resize":
            value["spec"] = pods.resized(value["spec"], old["spec"])
        elif subresource == "ephemeralcontainers":
            value["spec"] = pods.with_ephemeral_containers(value["spec"], old["spec"])
        prepare_update(resource, value, old, subresource)
        prepare_status(resource, value, self.now(), old)
        count_generation(resource, value, old, subresource)
        self._track(resource, old, value, subresource, options)
        if problems := validate_update(resource, value, old, subresource):
            raise invalid(resource, name, problems)
        charge = self._admit_change(resource, value, old, subresource)
        if charge is not None and not options.dry_run:
            charge.apply()
        return from_storage(resource, self._write(resource, item, value, old, options.dry_run))

    def _admit_change(
        self, resource: Resource, value: Object, old: Object, subresource: str
    ) -> QuotaCharge | None:
        """Check a change of requests and limits, or of what else a quota counts."""
        if resource.key == PODS.key:
            if subresource == "resize":
                check_limits(self.store, resource, value)
            elif subresource or is_short_lived(value["spec"]) == is_short_lived(old["spec"]):
                return None
        elif subresource or resource.key not in (CLAIMS.key, SERVICES.key):
            return None
        else:
            check_limits(self.store, resource, value)
        return check_quota(self.store, resource, value, self._clock(), old)

    def modify(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        change: Callable[[Object], Object | None],
        *,
        subresource: str = "",
    ) -> Object:
        """Read an object, let `change` alter the copy or return another one, and write that."""
        value = self.get(resource, namespace, name, subresource=subresource)
        changed = change(value)
        value = value if changed is None else changed
        return self.replace(
            resource, value, namespace=namespace, name=name, subresource=subresource
        )

    def _track(
        self,
        resource: Resource,
        old: Object | None,
        new: Object,
        subresource: str,
        options: WriteOptions,
    ) -> None:
        if not options.is_apply:  # an apply has written its managedFields
            part = subresource or options.part
            schema = resource.served.merge_schema if isinstance(resource, CustomResource) else None
            tracked(old, new, options.manager, part, self.now(), agent=options.agent, schema=schema)
        metadata.tidy(new["metadata"])

    def _write(
        self, resource: Resource, item: Item, value: Object, old: Object, dry_run: bool
    ) -> Object:
        """Write what has changed; removing the last finalizer removes an object under deletion."""
        if value == old or dry_run:
            return value
        meta = value["metadata"]
        is_finished = "deletionTimestamp" in meta and not meta.get("finalizers")
        if resource.key == NAMESPACES.key:
            is_finished = is_finished and not value.get("spec", {}).get("finalizers")
        if is_finished and not meta.get("deletionGracePeriodSeconds"):
            self._remove(resource, item)
            return value
        self.store.put(resource, _stored(resource, value))
        return value

    def _update_scale(
        self, resource: Resource, scale: Object, namespace: str, name: str, options: WriteOptions
    ) -> Object:
        item = self._item(resource, namespace, name)
        meta = scale.get("metadata", {})
        value = _read(resource, item)
        if meta.get("resourceVersion"):
            value["metadata"]["resourceVersion"] = meta["resourceVersion"]
        if meta.get("uid"):
            value["metadata"]["uid"] = meta["uid"]
        value = with_replicas(resource, value, replicas_of(resource, scale, name))
        options = msgspec.structs.replace(options, part="scale")
        changed = self.replace(resource, value, namespace=namespace, name=name, options=options)
        return scale_of(resource, changed)

    # --- deleting ------------------------------------------------------------------------------

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        version: str = "",
        grace: int | None = None,
        propagation: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Delete an object, at once or after its grace period or its finalizers; its last state.

        `uid` and `version` are preconditions; `propagation` is Foreground, Orphan or Background;
        the first two leave a finalizer to the garbage collector.
        """
        item = self._item(resource, namespace, name)
        check_preconditions(resource, item, uid, version)
        value = _read(resource, item)
        meta = value["metadata"]
        if resource.key == DEFINITIONS.key:
            return self._delete_definition(value, dry_run)
        if resource.key == NAMESPACES.key:
            self._namespaces.check_deletable(name)
            if "deletionTimestamp" not in meta:
                return self._terminate_namespace(value, dry_run)
            if value.get("spec", {}).get("finalizers"):
                return value
        if grace is not None and grace < 0:
            grace = 1
        is_marked = False
        if resource.key == PODS.key:
            marked = pods.begin_deletion(value, grace, self._clock())
            if marked is None:
                return value
            is_marked = marked
        finalizers = remaining_finalizers(meta.get("finalizers", []), propagation)
        if finalizers and not is_marked:
            mark(meta, self.now())
        meta["finalizers"] = finalizers
        metadata.tidy(meta)
        if (is_marked or finalizers) and not dry_run and value != _read(resource, item):
            item = self.store.put(resource, _stored(resource, value))
        if finalizers or meta.get("deletionGracePeriodSeconds") or dry_run:
            return from_storage(resource, value)
        return from_storage(resource, _read(resource, self._remove(resource, item)))

    def _remove(self, resource: Resource, item: Item) -> Item:
        last = self.store.remove(resource, item.namespace, item.name)
        if resource.namespaced and self._namespaces.has_emptied(item.namespace):
            self._finish_namespace(item.namespace)
        elif self._namespaces.has_lost_its_pods(resource, item.namespace):
            self._delete_content(item.namespace, self._namespaces.remaining(item.namespace))
        return last or item

    def _delete_definition(self, value: Object, dry_run: bool) -> Object:
        """Its objects are deleted next, then the definition."""
        if "deletionTimestamp" not in value["metadata"]:
            begin_deletion(value, self.now())
            if not dry_run:
                self.store.put(DEFINITIONS, value)
        return value

    # --- namespaces ----------------------------------------------------------------------------

    def _terminate_namespace(self, value: Object, dry_run: bool) -> Object:
        """Delete the content of a namespace, which is removed after the last object."""
        value["metadata"]["deletionTimestamp"] = self.now()
        value.setdefault("status", {})["phase"] = "Terminating"
        if dry_run:
            return value
        name = value["metadata"]["name"]
        marked = self.store.put(NAMESPACES, value).decoded()
        content = self._namespaces.begin_termination(name)
        self._delete_content(name, content)
        if not content:
            self._finish_namespace(name)
        return marked

    def _delete_content(self, name: str, content: list[tuple[Resource, Item]]) -> None:
        """Delete objects of a terminating namespace; its status says what is left of them."""
        for resource, item in content:
            if self.store.get(resource, name, item.name) is not None:
                self.delete(resource, name, item.name)

        def report(value: Object) -> None:
            value["status"]["conditions"] = self._namespaces.conditions(name, self.now())

        if content and self.store.get(NAMESPACES, "", name) is not None:
            self.modify(NAMESPACES, "", name, report, subresource="status")

    def _finish_namespace(self, name: str) -> None:
        def finalize(value: Object) -> None:
            value.get("spec", {}).pop("finalizers", None)

        if self.store.get(NAMESPACES, "", name) is not None:
            self.modify(NAMESPACES, "", name, finalize, subresource="finalize")

    # --- pods ----------------------------------------------------------------------------------

    def bind(self, namespace: str, name: str, binding: Object, *, dry_run: bool = False) -> None:
        """Bind a pod to the node of a Binding."""
        pods.check_binding(name, binding)
        value = self._item(PODS, namespace, name).decoded()
        added = topology_labels(self.store, binding["target"]["name"])
        pods.bind(value, binding, added, self.now())
        if not dry_run:
            self.store.put(PODS, value)

    def evict(self, namespace: str, name: str, eviction: Object, *, dry_run: bool = False) -> None:
        """Delete a pod, unless its disruption budget forbids it."""
        evict(self, namespace, name, eviction, dry_run)


# --- objects as they are stored -----------------------------------------------------------------


def _read(resource: Resource, item: Item) -> Object:
    """A copy of a stored object that may be changed."""
    return resource.read(item) if isinstance(resource, CustomResource) else item.decoded()


def _stored(resource: Resource, value: Object) -> Object:
    return resource.to_stored(value) if isinstance(resource, CustomResource) else value
