"""A small world around a queue: pods, a clock that is moved by hand, gates that open and close."""

from collections.abc import Mapping, Sequence
from typing import Any

from mooring.api import core
from mooring.api.codec import convert
from mooring.cache.pods import Pod
from mooring.framework.plugin import QueueSort
from mooring.framework.results import QueuedPod
from mooring.framework.status import OK, Status
from mooring.observe.metrics import Metrics
from mooring.queue.hints import Registration
from mooring.queue.options import QueueOptions
from mooring.queue.queue import SchedulingQueue

START = 1_000_000.0
PROFILE = core.DEFAULT_SCHEDULER_NAME


def pod(
    name: str,
    *,
    uid: str = "",
    version: str = "",
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    cpu: str = "",
    gates: Sequence[str] = (),
    tolerates: Sequence[str] = (),
    nominated: str = "",
    node: str = "",
    claims: Sequence[str] = (),
) -> Pod:
    spec: dict[str, Any] = {
        "priority": priority,
        "nodeName": node,
        "schedulingGates": [{"name": gate} for gate in gates],
        "tolerations": [{"key": key, "operator": "Exists"} for key in tolerates],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu} if cpu else {}}}],
    }
    body = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or f"uid-{name}",
            "resourceVersion": version,
            "labels": dict(labels or {}),
        },
        "spec": spec,
        "status": {
            "nominatedNodeName": nominated,
            "resourceClaimStatuses": [{"name": claim} for claim in claims],
        },
    }
    return Pod(convert(body, core.Pod))


class PriorityOrder(QueueSort):
    """Higher priority first, then who came first."""

    name = "PriorityOrder"

    def __init__(self) -> None:
        """Needs neither arguments nor a handle."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return (-a.pod.priority, a.timestamp) < (-b.pod.priority, b.timestamp)

    def sort_key(self, queued: QueuedPod) -> object | None:
        return -queued.pod.priority, queued.timestamp


class PriorityLess(PriorityOrder):
    """The same order, without keys."""

    def sort_key(self, queued: QueuedPod) -> object | None:
        return None


class World:
    """A queue, and everything it was given."""

    def __init__(
        self,
        *registrations: Registration,
        options: QueueOptions | None = None,
        sort: QueueSort | None = None,
    ) -> None:
        self.time = START
        self.metrics = Metrics()
        self.refusals: dict[str, Status] = {}  # pod key -> what the gate says
        self.gate_calls: list[tuple[str, str]] = []
        self.times_ready = 0
        self.queue = SchedulingQueue(
            now=lambda: self.time,
            sort=sort or PriorityOrder(),
            gate=self._gate,
            registrations={PROFILE: registrations},
            options=options or QueueOptions(),
            metrics=self.metrics,
            on_ready=self._count_ready,
        )

    def _gate(self, pod: Pod, first: str) -> Status:
        self.gate_calls.append((pod.key, first))
        return self.refusals.get(pod.key, OK)

    def _count_ready(self) -> None:
        self.times_ready += 1

    def close_gate(self, name: str, plugin: str = "Gate") -> None:
        self.refusals[f"ns/{name}"] = Status.unschedulable("closed").by(plugin)

    def open_gate(self, name: str) -> None:
        del self.refusals[f"ns/{name}"]

    def pop(self) -> QueuedPod:
        queued = self.queue.pop()
        assert queued is not None
        return queued

    def refuse(self, name: str, *plugins: str, pending: Sequence[str] = (), **about: Any) -> Pod:
        """Add a pod, try it, and let these plugins refuse it."""
        made = pod(name, **about)
        self.queue.add(made)
        queued = self.pop()
        assert queued.pod is made, "only one pod may be ready here"
        self.send_back(queued, *plugins, pending=pending)
        return made

    def send_back(self, queued: QueuedPod, *plugins: str, pending: Sequence[str] = ()) -> None:
        queued.unschedulable_plugins = frozenset(plugins)
        queued.pending_plugins = frozenset(pending)
        self.queue.add_unschedulable(queued)

    def where(self, name: str) -> str | None:
        return self.queue.where(f"ns/{name}")

    def waiting(self) -> dict[str, float]:
        self.metrics.refresh()
        return {labels[0]: child.value for labels, child in self.metrics.pending_pods}

    def arrived(self) -> dict[tuple[str, ...], float]:
        return {labels: child.value for labels, child in self.metrics.queue_incoming}

    def refused(self) -> dict[str, float]:
        """Per plugin; those at zero are left out."""
        children = self.metrics.unschedulable_pods
        return {labels[0]: child.value for labels, child in children if child.value}
