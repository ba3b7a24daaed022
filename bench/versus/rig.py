"""The cluster that both schedulers work on: real etcd and kube-apiserver.

What a workload needs is created once and kept as a backup, from which each run begins: both
schedulers find the same bytes, behind an API server that has just started. Both get the same
configuration file, the same flags and the same user, so that the API server treats them alike;
each speaks the format it speaks by default.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import Final, Self

from tests.controlplane import commands
from tests.controlplane.admin import Object
from tests.controlplane.build import binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import namespace as named
from tests.controlplane.processes import Process
from tests.integration.mooring_process import grant_shipped

from bench.versus.machine import wait_for_calm
from bench.versus.pods import NAMESPACE, priority_classes
from bench.versus.workloads import Workload

_USER = "system:kube-scheduler"  # the API server has a role and a priority for it
# Tests read in the audit log who did what, which costs the server a write for each bind.
_NO_AUDIT = ("--audit-log-path=", "--audit-policy-file=")
_EMPTY: Final = "empty"  # the backup of a cluster without nodes
_AT_ONCE: Final = 2_000  # objects created before the next ones are made
_MOST_FILES: Final = 1 << 20
_LONGEST_START: Final = 60.0  # seconds until a server has nothing left to do
_CLAIM = "resource.k8s.io/v1/ResourceClaim"
_WITHOUT_NAMESPACE = {
    "Namespace",
    "Node",
    "PriorityClass",
    "PersistentVolume",
    "CSINode",
    "StorageClass",
    "DeviceClass",
    "ResourceSlice",
}
_WITH_STATUS = {
    "Pod": "Pod",
    "PersistentVolume": "PersistentVolume",
    "PodDisruptionBudget": "policy/v1/PodDisruptionBudget",
    "ResourceClaim": _CLAIM,
}
# The server answers lists of these from its memory once it has read them.
_CACHED = ("Node", "Pod", "PersistentVolume", "PersistentVolumeClaim")


class Rig:
    """A control plane that can be set up for a workload, and schedulers that are started on it."""

    def __init__(self, nodes: int, *, audit: bool = False) -> None:
        arguments = () if audit else _NO_AUDIT
        self.plane: ControlPlane = ControlPlane(apiserver_args=arguments, large=True)
        self.nodes: int = nodes
        self._backups: set[str] = set()

    def __enter__(self) -> Self:
        open_files()
        self.plane.__enter__()
        try:
            user = self.plane.add_user(_USER)
            grant_shipped(self.plane, user)
            kubeconfig = self.plane.kubeconfig_for(user)
            self._config = self.plane.folder / "scheduler.json"
            self._config.write_text(json.dumps(commands.scheduler_configuration(kubeconfig)))
            self.create(priority_classes())
            self.create([named(NAMESPACE)])
            self.plane.back_up(_EMPTY)
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

    def set_up(self, name: str, workload: Workload, pods: int) -> None:
        """Begin with the nodes, these pods and all else of a workload, nothing of it bound.

        Other workloads need other names.
        """
        backup = f"{name}-{pods}"
        if backup not in self._backups:
            self.plane.restore(_EMPTY)
            self.create(map(workload.node, range(self.nodes)))
            self.create(workload.before(pods, self.nodes))
            self.create(map(workload.pod, range(pods)))
            self.plane.back_up(backup)
            self._backups.add(backup)
        self.plane.restore(backup)
        for kind in _CACHED:
            self.plane.admin.list(kind, limit="1", resourceVersion="0")
        wait_for_calm(lambda: self.server_cpu_seconds, _LONGEST_START)

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

    def create(self, values: Iterable[Object]) -> None:
        """Create objects side by side."""
        placed_ones = map(placed, values)
        while some := list(islice(placed_ones, _AT_ONCE)):
            self.plane.admin.create_many(some)
            with_status = [v for v in some if v["kind"] in _WITH_STATUS and "status" in v]
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(self._write_status, with_status))

    def delete(self, value: Object) -> None:
        meta = placed(value)["metadata"]
        self.plane.admin.delete(value["kind"], meta["name"], meta.get("namespace", ""))

    def _write_status(self, value: Object) -> None:
        meta = value["metadata"]
        self.plane.admin.patch(
            _WITH_STATUS[value["kind"]],
            meta["name"],
            {"status": value["status"]},
            meta.get("namespace", ""),
            subresource="status",
        )

    def count(self, kind: str) -> int:
        """How many objects there are, without having them all sent."""
        path = self.plane.admin.path(kind, query={"limit": "1"})
        found = self.plane.admin.request("GET", path)
        return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))


def placed(value: Object) -> Object:
    """An object in the namespace of all that name none, if objects of its kind are in one."""
    meta = value["metadata"]
    if "namespace" in meta or value["kind"] in _WITHOUT_NAMESPACE:
        return value
    return {**value, "metadata": {**meta, "namespace": NAMESPACE}}


def open_files() -> int:
    """Let all programs open as many files as this system allows; how many these are.

    kube-scheduler opens a connection for each of many binds that wait.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (_MOST_FILES, hard):
        with suppress(ValueError, OSError):  # more than the limit that is set for this user
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
            return wanted
    return soft
