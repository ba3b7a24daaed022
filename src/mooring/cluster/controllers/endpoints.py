"""The Endpoints and EndpointSlices of Services: the addresses of the pods that they select."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from mooring.api.wellknown import ZONE
from mooring.client.errors import ConflictError, Forbidden, NotFound
from mooring.cluster.apiserver.resources import (
    ENDPOINT_SLICES,
    ENDPOINTS,
    NODES,
    PODS,
    SERVICES,
    Resource,
)
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import (
    STATUS_DELAY,
    BuiltInController,
    ControllerContext,
    owner_reference,
)
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import PodView, meta_of

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_SLICES_OF: Final = "endpointslice-controller.k8s.io"
_HEADLESS: Final = "service.kubernetes.io/headless"
_ENDPOINTS_BY: Final = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
_PER_SLICE: Final = 100  # endpoints


class EndpointsController(BuiltInController):
    """Writes where the pods of each Service can be reached. Its keys are Services."""

    watches: ClassVar[tuple[Resource, ...]] = (SERVICES, PODS, ENDPOINTS, ENDPOINT_SLICES)
    name: ClassVar[str] = "endpoints-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        # By namespace: the selectors of the Services that have one.
        self._selectors: dict[str, dict[str, Mapping[str, str]]] = {}

    def on_change(self, change: StoreChange) -> None:
        namespace, name = change.new.key
        if change.resource == PODS.key:
            if namespace in self._selectors:
                self._on_pod_change(namespace)
        elif change.resource == SERVICES.key:
            self._on_service_change(change)
        elif change.type == "DELETED":  # restored if its Service is still there
            service = name
            if change.resource == ENDPOINT_SLICES.key:
                service = meta_of(change).labels.get(SERVICE_NAME, "")
            if service in self._selectors.get(namespace, ()):
                self.enqueue((namespace, service))

    def _on_service_change(self, change: StoreChange) -> None:
        namespace, name = change.new.key
        known = self._selectors.get(namespace, {})
        known.pop(name, None)
        selector: Mapping[str, str] = {}
        if change.type != "DELETED":
            selector = change.new.decoded().get("spec", {}).get("selector") or {}
        if selector:
            self._selectors.setdefault(namespace, {})[name] = selector
        elif not known:
            self._selectors.pop(namespace, None)
        self.enqueue((namespace, name))

    def _on_pod_change(self, namespace: str) -> None:
        before, latest = self.pods.before, self.pods.latest
        if before is not None and latest is not None and _state(before) == _state(latest):
            return
        for name, selector in self._selectors[namespace].items():
            if any(_selects(selector, pod) for pod in (before, latest) if pod is not None):
                self.enqueue((namespace, name), STATUS_DELAY)

    def reconcile(self, key: Key) -> float | None:
        namespace, name = key
        service = self.read(SERVICES, key)
        if service is None:
            self._delete(ENDPOINTS, namespace, name)
            return None
        spec = service.get("spec", {})
        selector = spec.get("selector")
        if not selector or spec.get("type") == "ExternalName":
            return None  # its Endpoints are written by hand
        pods = sorted(
            (
                pod
                for pod in self.pods
                if pod.metadata.namespace == namespace and _selects(selector, pod)
            ),
            key=lambda pod: pod.name,
        )
        values = [value for pod in pods if (value := self.read(PODS, pod.key)) is not None]
        reachable = [value for value in values if _is_reachable(value)]
        try:
            self._write_endpoints(service, reachable)
            self._write_slices(service, reachable)
        except (ConflictError, Forbidden):
            return None  # the namespace goes away
        return None

    # --- Endpoints -------------------------------------------------------------------------------

    def _write_endpoints(self, service: Object, pods: Iterable[Object]) -> None:
        meta, spec = service["metadata"], service["spec"]
        groups: dict[tuple[tuple[str, int, str], ...], dict[str, list[Object]]] = {}
        for pod in pods:
            is_listed = spec.get("publishNotReadyAddresses") or _is_ready(pod)
            if "deletionTimestamp" in pod["metadata"] and not spec.get("publishNotReadyAddresses"):
                continue
            ports = tuple(_ports(service, pod))
            group = groups.setdefault(ports, {"addresses": [], "notReadyAddresses": []})
            address = {"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"]}
            address |= _hostname(service, pod)
            address["targetRef"] = _reference(pod)
            group["addresses" if is_listed else "notReadyAddresses"].append(address)
        subsets: list[Object] = []
        for ports, group in sorted(groups.items()):
            subset: Object = {part: found for part, found in group.items() if found}
            if ports:
                subset["ports"] = [
                    {**({"name": name} if name else {}), "port": port, "protocol": protocol}
                    for name, port, protocol in ports
                ]
            subsets.append(subset)
        labels = {**(meta.get("labels") or {}), **_ENDPOINTS_BY}
        if spec.get("clusterIP") == "None":
            labels[_HEADLESS] = ""
        old = self.read(ENDPOINTS, (meta["namespace"], meta["name"]))
        if old is None:
            value: Object = {"metadata": {"name": meta["name"], "labels": labels}}
            if subsets:
                value["subsets"] = subsets
            self.verbs.create(ENDPOINTS, value, namespace=meta["namespace"])
        elif (old.get("subsets") or []) != subsets or old["metadata"].get("labels") != labels:

            def change(current: Object) -> None:
                current["metadata"]["labels"] = labels
                current.pop("subsets", None)
                if subsets:
                    current["subsets"] = subsets

            self.verbs.modify(ENDPOINTS, meta["namespace"], meta["name"], change)

    # --- EndpointSlices --------------------------------------------------------------------------

    def _write_slices(self, service: Object, pods: Iterable[Object]) -> None:
        groups: dict[tuple[tuple[str, int, str], ...], list[Object]] = {}
        for pod in pods:
            endpoint = self._endpoint(service, pod)
            groups.setdefault(tuple(_ports(service, pod)), []).append(endpoint)
        wanted = [
            (ports, endpoints[start : start + _PER_SLICE])
            for ports, endpoints in sorted(groups.items())
            for start in range(0, len(endpoints), _PER_SLICE)
        ] or [((), [])]
        present = self._slices(service)
        for index, (ports, endpoints) in enumerate(wanted):
            content: Object = {
                "endpoints": endpoints or None,
                "ports": [
                    {"name": name, "port": port, "protocol": protocol}
                    for name, port, protocol in ports
                ]
                or None,
            }
            self._write_slice(service, present[index] if index < len(present) else None, content)
        for surplus in present[len(wanted) :]:
            self._delete(ENDPOINT_SLICES, *key_of(surplus))

    def _slices(self, service: Object) -> list[Object]:
        meta = service["metadata"]
        found = [
            self.read(ENDPOINT_SLICES, (namespace, name))
            for of, namespace, name in self.owner_graph.dependents(meta["uid"])
            if of == ENDPOINT_SLICES.key
        ]
        ours = [
            one
            for one in found
            if one is not None and (one["metadata"].get("labels") or {}).get(MANAGED_BY)
        ]
        return sorted(ours, key=key_of)

    def _write_slice(self, service: Object, old: Object | None, content: Object) -> None:
        meta = service["metadata"]
        labels = {
            **(meta.get("labels") or {}),
            SERVICE_NAME: meta["name"],
            MANAGED_BY: _SLICES_OF,
        }
        if service["spec"].get("clusterIP") == "None":
            labels[_HEADLESS] = ""
        kept = {part: found for part, found in content.items() if found is not None}
        if old is None:
            owner = owner_reference(service)
            value = {
                "metadata": {
                    "generateName": f"{meta['name']}-",
                    "labels": labels,
                    "ownerReferences": [owner],
                },
                "addressType": _address_type(service),
                **kept,
            }
            self.verbs.create(ENDPOINT_SLICES, value, namespace=meta["namespace"])
            return
        known = {part: old[part] for part in content if old.get(part)}
        if known == kept and old["metadata"].get("labels") == labels:
            return

        def change(current: Object) -> None:
            current["metadata"]["labels"] = labels
            for part in content:
                current.pop(part, None)
            current.update(kept)

        self.verbs.modify(ENDPOINT_SLICES, *key_of(old), change)

    def _endpoint(self, service: Object, pod: Object) -> Object:
        is_leaving = "deletionTimestamp" in pod["metadata"]
        is_serving = _is_ready(pod)
        is_ready = bool(service["spec"].get("publishNotReadyAddresses")) or (
            is_serving and not is_leaving
        )
        found: Object = {
            "addresses": [pod["status"]["podIP"]],
            "conditions": {"ready": is_ready, "serving": is_serving, "terminating": is_leaving},
            **_hostname(service, pod),
            "targetRef": _reference(pod),
            "nodeName": pod["spec"]["nodeName"],
        }
        node = self.verbs.store.get(NODES, "", pod["spec"]["nodeName"])
        if node is not None and node.labels.get(ZONE):
            found["zone"] = node.labels[ZONE]
        return found

    def _delete(self, of: Resource, namespace: str, name: str) -> None:
        try:
            self.verbs.delete(of, namespace, name)
        except NotFound:
            return


def key_of(value: Object) -> tuple[str, str]:
    """The namespace and the name of an object."""
    return value["metadata"]["namespace"], value["metadata"]["name"]


def _state(pod: PodView) -> tuple[Any, ...]:
    """What Endpoints show of a pod; its address is there once it is ready."""
    meta = pod.metadata
    return pod.is_ready, pod.status.phase, pod.is_terminating, meta.labels, pod.spec.node_name


def _selects(selector: Mapping[str, str], pod: PodView) -> bool:
    labels = pod.metadata.labels
    return all(labels.get(key) == value for key, value in selector.items())


def _is_reachable(pod: Object) -> bool:
    status = pod.get("status") or {}
    return bool(status.get("podIP")) and status.get("phase") not in ("Succeeded", "Failed")


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _ports(service: Object, pod: Object) -> Iterable[tuple[str, int, str]]:
    """Name, number and protocol of the ports of a pod that a Service offers."""
    for port in service["spec"].get("ports") or ():
        protocol = port.get("protocol", "TCP")
        target = port.get("targetPort", port["port"])
        number = target if isinstance(target, int) else _named_port(pod, target, protocol)
        if number:
            yield port.get("name", ""), number, protocol


def _named_port(pod: Object, name: str, protocol: str) -> int:
    sidecars = (one for one in pod["spec"].get("initContainers") or () if one.get("restartPolicy"))
    for container in (*pod["spec"]["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("name") == name and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return 0


def _hostname(service: Object, pod: Object) -> dict[str, str]:
    spec = pod["spec"]
    is_named = spec.get("hostname") and spec.get("subdomain") == service["metadata"]["name"]
    return {"hostname": spec["hostname"]} if is_named else {}


def _reference(pod: Object) -> Object:
    meta = pod["metadata"]
    named = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    return {"kind": "Pod", **named}


def _address_type(service: Object) -> str:
    return str((service["spec"].get("ipFamilies") or ["IPv4"])[0])
