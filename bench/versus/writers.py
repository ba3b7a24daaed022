"""What others write meanwhile: kubelets about nodes and pods, and objects that come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

from tests.controlplane.admin import STRATEGIC_PATCH, Object

from bench.versus.pods import NAMESPACE, node, node_name, pod
from bench.versus.surroundings import running_name

if TYPE_CHECKING:
    from bench.versus.rig import Rig

_THREADS: Final = 6
_LATE: Final = 1.0  # seconds that a thread catches up after a slow answer
_LIFE: Final = 300  # writes, after which an object that came goes again


class Writers:
    """Threads that call `write` so often per second, with rising numbers, while a block runs.

    The end of the block raises what a write has raised: what was measured is not what it claims.
    """

    def __init__(self, write: Callable[[int], None], rate: float, first: int = 0) -> None:
        self._write = write
        self._rate = rate
        self._first = first
        self._end = threading.Event()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="writer")
        self._counts: list[Future[int]] = []
        self.count = 0  # how many writes there were, after the block

    def __enter__(self) -> Self:
        self._counts = [self._threads.submit(self._work, number) for number in range(_THREADS)]
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._end.set()
        self._threads.shutdown()
        self.count = sum(count.result() for count in self._counts)

    def _work(self, writer: int) -> int:
        count, due = 0, time.monotonic() + writer / self._rate
        while not self._end.wait(due - time.monotonic()):
            self._write(self._first + writer + count * _THREADS)
            count += 1
            due = max(due + _THREADS / self._rate, time.monotonic() - _LATE)
        return count


def heartbeat(rig: Rig, i: int) -> None:
    """What a kubelet says of its node all the time."""
    now = _now()
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    memory = {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"}
    conditions = [{**condition, "lastHeartbeatTime": now} for condition in (ready, memory)]
    _patch_status(rig, "Node", node_name(i % rig.nodes), conditions=conditions)


def pod_status(rig: Rig, i: int, pods: int) -> None:
    """What kubelets say of these many running pods, one after the other: containers restarted."""
    now, restarts = _now(), i // pods
    is_ready = restarts % 2 == 1
    condition = {"status": str(is_ready), "lastTransitionTime": now}
    conditions = [{**condition, "type": kind} for kind in ("Ready", "ContainersReady")]
    state = {"running": {"startedAt": now}}
    container = {"name": "main", "image": "i", "imageID": "i", "ready": is_ready, "state": state}
    _patch_status(
        rig,
        "Pod",
        running_name(i % pods),
        NAMESPACE,
        phase="Running",
        podIP="10.0.0.1",
        conditions=conditions,
        containerStatuses=[{**container, "restartCount": restarts}],
    )


def come_and_go(rig: Rig, i: int) -> None:
    """A pod, a Service or a node is created, and one that was created before is deleted."""
    rig.create([_passing(i)])
    if i >= _LIFE:
        rig.delete(_passing(i - _LIFE))


def _passing(i: int) -> Object:
    name = f"passing-{i:06d}"
    match i % 3:
        case 0:
            return pod(name, {"app": "passing"}, measured=False)
        case 1:
            spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
            return {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name},
                "spec": spec,
            }
    value = node(i)
    labels = {**value["metadata"]["labels"], "kubernetes.io/hostname": name}
    return {
        **value,
        "metadata": {"name": name, "labels": labels},
        "spec": {"unschedulable": True},
    }


def _patch_status(rig: Rig, kind: str, name: str, namespace: str = "", **status: object) -> None:
    rig.plane.admin.patch(
        kind,
        name,
        {"status": status},
        namespace,
        subresource="status",
        content_type=STRATEGIC_PATCH,
    )


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
