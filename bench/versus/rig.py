"""The cluster that both schedulers work on: real etcd and kube-apiserver, nodes that stay.

Both get the same configuration file, the same flags and the same user, so that the API server
treats them alike; each speaks the format it speaks by default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from tests.controlplane import commands
from tests.controlplane.admin import Object
from tests.controlplane.build import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import namespace as named
from tests.controlplane.processes import Process
from tests.integration.mooring_process import grant_shipped

from bench.versus.workloads import node, priority_classes

_USER = "system:kube-scheduler"  # the API server has a role and a priority for it
# Tests read in the audit log who did what, which costs the server a write for each bind.
_NO_AUDIT = ("--audit-log-path=", "--audit-policy-file=")
# Without controllers, finalizers would keep volumes and claims forever.
_NO_FINALIZERS = ("--disable-admission-plugins=StorageObjectInUseProtection",)
_CLAIM = "resource.k8s.io/v1/ResourceClaim"
# What a run may leave that is in no namespace.
WITHOUT_NAMESPACE = {
    "PersistentVolume": "PersistentVolume",
    "CSINode": "storage.k8s.io/v1/CSINode",
    "StorageClass": "storage.k8s.io/v1/StorageClass",
    "DeviceClass": "resource.k8s.io/v1/DeviceClass",
    "ResourceSlice": "resource.k8s.io/v1/ResourceSlice",
}
_WITH_STATUS = {
    "Pod": "Pod",
    "PersistentVolume": "PersistentVolume",
    "PodDisruptionBudget": "policy/v1/PodDisruptionBudget",
    "ResourceClaim": _CLAIM,
}
_IN_NAMESPACE = (
    "Pod",
    "PersistentVolumeClaim",
    "policy/v1/PodDisruptionBudget",
    _CLAIM,
    "events.k8s.io/v1/Event",
)


class Rig:
    """A control plane with nodes, on which one scheduler at a time can be started."""

    def __init__(self, nodes: int, *, audit: bool = False) -> None:
        arguments = (*_NO_FINALIZERS, *(() if audit else _NO_AUDIT))
        self.plane: ControlPlane = ControlPlane(apiserver_args=arguments, large=True)
        self.nodes: int = nodes

    def __enter__(self) -> Self:
        self.plane.__enter__()
        try:
            user = self.plane.add_user(_USER)
            grant_shipped(self.plane, user)
            kubeconfig = self.plane.kubeconfig_for(user)
            self._config = self.plane.folder / "scheduler.json"
            self._config.write_text(json.dumps(commands.scheduler_configuration(kubeconfig)))
            self.create(priority_classes())
            self.create(node(number) for number in range(self.nodes))
        except BaseException:
            self.plane.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.plane.close()

    def start(self, scheduler: str) -> Process:
        """Start one of the two; the caller stops it."""
        program = {
            "mooring": [sys.executable, "-m", "mooring", "run"],
            "kube": [str(binaries() / "kube-scheduler")],
        }[scheduler]
        return self.plane.run(scheduler, [*program, f"--config={self._config}", "--secure-port=0"])

    @property
    def server_cpu_seconds(self) -> float:
        """Of kube-apiserver and etcd, since their start."""
        return self.plane.apiserver.cpu_seconds + self.plane.etcd.cpu_seconds

    # --- objects -------------------------------------------------------------------------------

    def create(self, values: Iterable[Object], namespace: str = "") -> None:
        """Create objects side by side, pods in this namespace."""
        made = [placed(value, namespace) for value in values]
        self.plane.admin.create_many(made)
        with_status = [v for v in made if v["kind"] in _WITH_STATUS and "status" in v]
        if with_status:
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(self._write_status, with_status))

    def _write_status(self, value: Object) -> None:
        meta = value["metadata"]
        self.plane.admin.patch(
            _WITH_STATUS[value["kind"]],
            meta["name"],
            {"status": value["status"]},
            meta.get("namespace", ""),
            subresource="status",
        )

    def add_namespace(self, name: str) -> None:
        self.plane.admin.create(named(name))

    def remove_namespace(self, name: str) -> None:
        """Remove it and everything that a run left in it."""
        admin = self.plane.admin
        self._let_claims_go(name)
        for kind in _IN_NAMESPACE:
            while self.count(kind, name):
                admin.delete_all(kind, name)
        for kind in WITHOUT_NAMESPACE.values():
            while self.count(kind, ""):
                admin.delete_all(kind)
        # Without a controller manager a deleted namespace waits forever to be finalized.
        waiting = admin.delete("Namespace", name, grace=None)
        waiting["spec"]["finalizers"] = []
        admin.request("PUT", admin.path("Namespace", name, subresource="finalize"), waiting)

    def _let_claims_go(self, namespace: str) -> None:
        """Schedulers protect claims from deletion; controllers that would end that are not here."""
        admin, free = self.plane.admin, {"metadata": {"finalizers": None}}
        names = [one["metadata"]["name"] for one in admin.list(_CLAIM, namespace)]
        with ThreadPoolExecutor(16) as threads:
            list(threads.map(lambda name: admin.patch(_CLAIM, name, free, namespace), names))

    def count(self, kind: str, namespace: str) -> int:
        """How many objects there are, without having them all sent."""
        path = self.plane.admin.path(kind, "", namespace, query={"limit": "1"})
        found = self.plane.admin.request("GET", path)
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))


def placed(value: Object, namespace: str) -> Object:
    """An object in a namespace, if one is named and the object can be in one."""
    if not namespace or value["kind"] in WITHOUT_NAMESPACE:
        return value
    return {**value, "metadata": {**value["metadata"], "namespace": namespace}}
