"""What every namespace has: the ServiceAccount `default`, and the CA of the API server.

The API server terminates namespaces itself.
"""

from __future__ import annotations

from typing import ClassVar, Final

from mooring.client.errors import ConflictError, Forbidden
from mooring.cluster.apiserver.bootstrap import CLIENT_CA, CLIENT_CA_FILE
from mooring.cluster.apiserver.resources import CONFIG_MAPS, NAMESPACES, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController
from mooring.cluster.controllers.reconcile_queue import Key

SERVICE_ACCOUNTS: Final = known("serviceaccounts")
_DEFAULT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
"""The ConfigMap with the CA that clients in a pod trust."""
_CA_FILE: Final = "ca.crt"


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


class RootCertificatePublisher(BuiltInController):
    """Keeps the ConfigMap `kube-root-ca.crt` of every namespace. Its keys are those of the above.

    A server without TLS has no CA, and its namespaces have no such ConfigMap.
    """

    watches: ClassVar[tuple[Resource, ...]] = (NAMESPACES, CONFIG_MAPS)
    name: ClassVar[str] = "root-ca-certificate-publisher-controller"

    def on_change(self, change: StoreChange) -> None:
        item = change.new
        if change.resource == NAMESPACES.key:
            if change.type == "ADDED":
                self.enqueue((item.name, ""))
        elif item.name == ROOT_CA:
            self.enqueue((item.namespace, ""))
        elif item.key == ("kube-system", CLIENT_CA):
            for namespace in self.items(NAMESPACES):
                self.enqueue((namespace.name, ""))

    def reconcile(self, key: Key) -> float | None:
        namespace, _ = key
        authority = self.read(CONFIG_MAPS, ("kube-system", CLIENT_CA))
        if authority is None or self.verbs.store.get(NAMESPACES, "", namespace) is None:
            return None
        data = {_CA_FILE: authority["data"][CLIENT_CA_FILE]}
        present = self.read(CONFIG_MAPS, (namespace, ROOT_CA))
        try:
            if present is None:
                value: Object = {"metadata": {"name": ROOT_CA}, "data": data}
                self.verbs.create(CONFIG_MAPS, value, namespace=namespace)
            elif present.get("data") != data:
                self.verbs.modify(
                    CONFIG_MAPS, namespace, ROOT_CA, lambda value: {**value, "data": data}
                )
        except (ConflictError, Forbidden):
            return None  # the namespace goes away
        return None
