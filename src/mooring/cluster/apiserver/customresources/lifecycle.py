"""The life of a definition: names accepted, established, terminating, gone.

    created ─▶ NamesAccepted ─▶ Established ─▶ deletionTimestamp, Terminating
                                                 its objects are deleted; with the last one the
                                                 finalizer goes, and the definition with it

kube-apiserver has a controller for each step; here all of it happens with the write that causes it.
"""

from __future__ import annotations

from typing import Any, Final

from mooring.client.errors import NotFound
from mooring.cluster.apiserver.customresources.catalogue import CustomResources
from mooring.cluster.apiserver.customresources.definitions import (
    FINALIZER,
    condition_of,
    merged_conditions,
)
from mooring.cluster.apiserver.resources import DEFINITIONS
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.apiserver.verbs import Verbs

_CONFLICTS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}


class DefinitionLifecycle:
    """Keeps the status of all definitions of one server, and carries out their deletion."""

    def __init__(self, verbs: Verbs) -> None:
        self._verbs = verbs
        self._custom: CustomResources = verbs.custom
        verbs.store.listen(self._on_change)
        for item in verbs.store.list(DEFINITIONS):  # from before a restart
            self._reconcile(item.name)

    def _on_change(self, change: StoreChange) -> None:
        if change.resource == DEFINITIONS.key:
            if change.type != "DELETED":
                self._reconcile(change.new.name)
                return
            for item in self._verbs.store.list(DEFINITIONS):  # names may be free now
                self._reconcile(item.name)
        elif change.type == "DELETED":
            kind = self._custom.kind(change.resource)
            if kind is not None and kind.is_terminating:
                self._finish(change.resource)

    def _reconcile(self, name: str) -> None:
        item = self._verbs.store.get(DEFINITIONS, "", name)
        if item is None:
            return
        value = item.decoded()
        if "deletionTimestamp" in value["metadata"]:
            self._terminate(value)
            return
        status = value.get("status") or {}
        names, conditions = self._names(value)
        wanted = {**status, "acceptedNames": names}
        wanted["conditions"] = merged_conditions(
            status.get("conditions") or [], conditions, self._verbs.now()
        )
        if wanted != status:
            self._write_status(name, wanted)

    def _write_status(self, name: str, status: Object) -> None:
        def change(current: Object) -> None:
            current["status"] = status

        self._verbs.modify(DEFINITIONS, "", name, change, subresource="status")

    # --- names ---------------------------------------------------------------------------------

    def _names(self, value: Object) -> tuple[Object, list[Object]]:
        """The names that no other definition of the group has, and the conditions."""
        wanted: dict[str, Any] = value["spec"]["names"]
        status = value.get("status") or {}
        resources, kinds = self._taken(value)
        accepted: Object = {"plural": "", "kind": "", **(status.get("acceptedNames") or {})}
        refusal: Object | None = None
        for field, reason in _CONFLICTS.items():
            taken = kinds if field in ("kind", "listKind") else resources
            name = wanted.get(field)
            words = name if isinstance(name, list) else [name] if name else []
            conflict = next((word for word in words if word in taken), None)
            if conflict is None:
                if name:
                    accepted[field] = name
                else:
                    accepted.pop(field, None)
            else:
                message = f'"{conflict}" is already in use'
                refusal = condition_of("NamesAccepted", "False", reason, message)
        if wanted.get("categories"):
            accepted["categories"] = wanted["categories"]
        else:
            accepted.pop("categories", None)
        if refusal is not None:
            is_known = self._custom.kind(value["metadata"]["name"]) is not None
            if is_known:  # once established, it stays so
                return accepted, [refusal]
            accepted.pop("categories", None)
            why = "not all names are accepted"
            return accepted, [refusal, condition_of("Established", "False", "NotAccepted", why)]
        return accepted, [
            condition_of("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            condition_of(
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ]

    def _taken(self, value: Object) -> tuple[set[str], set[str]]:
        """The accepted names of the other definitions in the group: resources and kinds."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for item in self._verbs.store.items(DEFINITIONS):
            if item.name == value["metadata"]["name"]:
                continue
            other = item.decoded()
            if other["spec"].get("group") == value["spec"].get("group"):
                names = (other.get("status") or {}).get("acceptedNames") or {}
                resources |= {names.get("plural", ""), names.get("singular", "")}
                resources |= set(names.get("shortNames") or ())
                kinds |= {names.get("kind", ""), names.get("listKind", "")}
        return resources - {""}, kinds - {""}

    # --- deletion ------------------------------------------------------------------------------

    def _terminate(self, value: Object) -> None:
        """Delete the objects of a definition; once for each deletion."""
        meta, status = value["metadata"], value.get("status") or {}
        if FINALIZER not in (meta.get("finalizers") or ()):
            return
        name = meta["name"]
        conditions = status.get("conditions") or []
        if any(one.get("reason") == "InstanceDeletionInProgress" for one in conditions):
            if self._verbs.store.get(DEFINITIONS, "", name) is not None:
                self._finish(name)
            return
        said = "CustomResource deletion is in progress"
        condition = condition_of("Terminating", "True", "InstanceDeletionInProgress", said)
        merged = merged_conditions(conditions, [condition], self._verbs.now())
        self._write_status(name, {**status, "conditions": merged})
        resource = self._custom.by_key(name)
        if resource is not None:
            for item in self._verbs.store.list(resource):
                try:
                    self._verbs.delete(resource, item.namespace, item.name, uid=item.uid)
                except NotFound:
                    continue  # gone with another one
        self._finish(name)

    def _finish(self, name: str) -> None:
        """Let the definition go once the last of its objects is gone."""
        resource = self._custom.by_key(name)
        if resource is not None and self._verbs.store.count(resource):
            return

        def change(current: Object) -> None:
            meta = current["metadata"]
            rest = [one for one in meta.get("finalizers") or () if one != FINALIZER]
            meta["finalizers"] = rest

        if self._verbs.store.get(DEFINITIONS, "", name) is not None:
            self._verbs.modify(DEFINITIONS, "", name, change)
