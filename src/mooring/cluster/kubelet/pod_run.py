"""The state of a pod on its node, and the annotations that configure its run."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

import msgspec

from mooring.api import core
from mooring.cluster.kubelet.pod_status import PodContainers, State
from mooring.config.duration import Duration

log = logging.getLogger(__name__)

STARTUP: Final = "mooring.dev/startup"  # from being bound to running, such as "2s"
DURATION: Final = "mooring.dev/duration"  # of a run; without it, `job_duration` or for ever
EXIT_CODE: Final = "mooring.dev/exit-code"  # at the end of a run; "1,1,0" for run after run
HELM_HOOK: Final = "helm.sh/hook"  # helm waits until such a pod ends
STOP: Final = "mooring.dev/stop"  # from deletion to being gone, within the grace period

_NO_CONTAINERS: Final = PodContainers(())
_FIRST_BACK_OFF: Final = 10.0  # seconds, and twice as long each time
_LONGEST_BACK_OFF: Final = 300.0


class _Sleep(msgspec.Struct):
    seconds: int = 0


class _Hook(msgspec.Struct):
    sleep: _Sleep | None = None


class _Lifecycle(msgspec.Struct, rename="camel"):
    pre_stop: _Hook | None = None


class _Container(msgspec.Struct):
    lifecycle: _Lifecycle = msgspec.field(default_factory=_Lifecycle)


class _Spec(msgspec.Struct, rename="camel"):
    containers: tuple[_Container, ...] = ()
    active_deadline_seconds: int | None = None


class _MoreOfPod(msgspec.Struct):
    """The fields of a pod that only its kubelet reads."""

    spec: _Spec


_read_more: Final = msgspec.json.Decoder(_MoreOfPod).decode


class PodStage(Enum):
    """What a pod is waiting for, as its kubelet sees it."""

    NEW = auto()  # for admission
    STARTING = auto()  # for its containers to run
    RUNNING = auto()  # for its containers to exit
    BACK_OFF = auto()  # to be run again
    STOPPING = auto()  # to be gone
    FINISHED = auto()  # for nothing


@dataclass(slots=True, eq=False)
class PodRun:
    """One pod, from when the kubelet first sees it. Times are seconds."""

    namespace: str
    name: str
    uid: str
    node_name: str
    startup: float
    stop: float
    job_duration: float = math.inf  # of a run, if it belongs to a Job or is a hook of Helm
    stage: PodStage = PodStage.NEW
    plan: int = 0  # grows with every stage; timers of former stages are void
    grace: float = math.inf
    duration: float = math.inf
    codes: tuple[int, ...] = (0,)
    containers: PodContainers = _NO_CONTAINERS
    restart_policy: str = "Always"
    is_on_host_network: bool = False
    started: str = ""  # when the kubelet first saw it
    since: str = ""  # when the containers began to run
    restarts: int = 0
    last_state: State = field(default_factory=dict)
    address: str = ""
    phase: str = ""  # as it was last written, with the state of the containers
    state: State = field(default_factory=dict)
    generation: int | None = None  # of the spec that the status is about
    deadline: float = math.inf  # seconds since it was admitted

    def read(self, pod: core.Pod, raw: bytes) -> None:
        """Read the pod's settings; invalid annotations are ignored."""
        spec = pod.spec
        self.containers = PodContainers.of(pod)
        if b'"preStop":' in raw or b'"activeDeadlineSeconds":' in raw:
            more = _read_more(raw).spec
            self.deadline = math.inf
            if more.active_deadline_seconds is not None:
                self.deadline = float(more.active_deadline_seconds)
            hooks = (one.lifecycle.pre_stop for one in more.containers)
            sleeps = [hook.sleep.seconds for hook in hooks if hook is not None and hook.sleep]
            self.stop += max(sleeps, default=0)
        if self.job_duration < math.inf:
            owner = pod.metadata.controller
            is_of_job = owner is not None and owner.kind == "Job"
            if is_of_job or HELM_HOOK in pod.metadata.annotations:
                self.duration = self.job_duration
        self.restart_policy = spec.restart_policy or "Always"
        self.is_on_host_network = spec.host_network
        if not pod.metadata.annotations:
            return
        self.startup = _seconds(pod, STARTUP, self.startup)
        self.stop = _seconds(pod, STOP, self.stop)
        self.duration = _seconds(pod, DURATION, self.duration)
        self.codes = _codes(pod)

    @property
    def exit_code(self) -> int:
        """Of the current run; the last code is repeated for later runs."""
        return self.codes[min(self.restarts, len(self.codes) - 1)]

    def will_restart(self, code: int) -> bool:
        if self.restart_policy == "OnFailure":
            return code != 0
        return self.restart_policy == "Always"

    @property
    def pause(self) -> float:
        """Seconds until the next run: none the first time, then exponential backoff."""
        if self.restarts == 0:
            return 0.0
        return min(_FIRST_BACK_OFF * 2.0 ** (self.restarts - 1), _LONGEST_BACK_OFF)


def _seconds(pod: core.Pod, annotation: str, otherwise: float) -> float:
    text = pod.metadata.annotations.get(annotation)
    if text is None:
        return otherwise
    try:
        return max(Duration.parse(text).seconds, 0.0)
    except ValueError as error:
        _complain(pod, annotation, str(error))
        return otherwise


def _codes(pod: core.Pod) -> tuple[int, ...]:
    text = pod.metadata.annotations.get(EXIT_CODE, "0")
    try:
        return tuple(int(code) for code in text.split(","))
    except ValueError:
        _complain(pod, EXIT_CODE, f"expected numbers such as 1 or 1,1,0, got {text!r}")
        return (0,)


def _complain(pod: core.Pod, annotation: str, problem: str) -> None:
    extra = {"pod": pod.key, "annotation": annotation, "problem": problem}
    log.warning("a pod's annotation is ignored", extra=extra)
