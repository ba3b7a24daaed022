"""The default ServiceAccount of namespaces; the API server terminates namespaces itself."""

from __future__ import annotations

from typing import ClassVar, Final

from mooring.client.errors import ConflictError, Forbidden
from mooring.cluster.apiserver.resources import NAMESPACES, Resource, known
from mooring.cluster.apiserver.store import StoreChange
from mooring.cluster.controllers.base import BuiltInController
from mooring.cluster.controllers.reconcile_queue import Key

SERVICE_ACCOUNTS: Final = known("serviceaccounts")
_DEFAULT: Final = "default"


class ServiceAccountController(BuiltInController):
    """Creates the ServiceAccount `default`. Its keys are a namespace and an empty name."""

    watches: ClassVar[tuple[Resource, ...]] = (NAMESPACES, SERVICE_ACCOUNTS)
    name: ClassVar[str] = "serviceaccount-controller"

    def on_change(self, change: StoreChange) -> None:
        if change.resource == NAMESPACES.key:
            if change.type == "ADDED":
                self.enqueue((change.new.name, ""))
        elif change.type == "DELETED" and change.new.name == _DEFAULT:
            self.enqueue((change.new.namespace, ""))

    def reconcile(self, key: Key) -> float | None:
        namespace, _ = key
        store = self.verbs.store
        if store.get(NAMESPACES, "", namespace) is None:
            return None
        if store.get(SERVICE_ACCOUNTS, namespace, _DEFAULT) is None:
            account = {"metadata": {"name": _DEFAULT}}
            try:
                self.verbs.create(SERVICE_ACCOUNTS, account, namespace=namespace)
            except (ConflictError, Forbidden):
                return None  # there is one by now, or the namespace goes away
        return None
