"""Jobs: pods until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import msgspec

from mooring.api.meta import parse_time
from mooring.cluster.apiserver.resources import PODS, Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.adoption import PodAdoption
from mooring.cluster.controllers.base import BuiltInController, ControllerContext, encode_template
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import PodView

JOBS: Final = known("jobs", "batch")
INDEX: Final = "batch.kubernetes.io/job-completion-index"

_BURST: Final = 100  # pods created per call
_BACKOFF_LIMIT: Final = 6  # failures
_FIRST_PAUSE: Final = 10.0  # seconds after a failure, and twice as long each time
_LONGEST_PAUSE: Final = 600.0


@dataclass(slots=True)
class _Record:
    """The results of a job's pods; deleted pods still count."""

    succeeded: dict[str, int | None] = field(default_factory=dict)  # uid -> index
    failed: dict[str, int | None] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)  # uids of pods that count as neither
    before: int = 0  # succeeded before this process
    indexes: set[int] = field(default_factory=set)  # completed
    failures: int = 0  # since the last success
    failed_at: float = 0.0

    @property
    def successes(self) -> int:
        return len(self.succeeded) + self.before


class JobController(BuiltInController):
    """Runs Jobs: plain, work queue and indexed."""

    watches: ClassVar[tuple[Resource, ...]] = (JOBS, PODS)
    name: ClassVar[str] = "job-controller"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._records: dict[str, _Record] = {}  # by uid of the job
        self._adoption = PodAdoption(self)

    def on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key:
            self._adoption.on_pod_change()
            self._on_pod_change()
            return
        self._adoption.on_owner_change(change)
        if change.type == "DELETED":
            self._records.pop(change.new.uid, None)
        else:
            self.enqueue(change.new.key)

    def _on_pod_change(self) -> None:
        before, latest = self.pods.before, self.pods.latest
        if latest is None and before is not None:
            owner = before.metadata.controller
            record = self._records.get(owner.uid) if owner is not None else None
            if record is not None:  # deleted without a final status
                self._count(record, before, is_gone=True)
        self.enqueue_owner(JOBS.kind, latest, before)

    def reconcile(self, key: Key) -> float | None:
        job = self.read(JOBS, key)
        if job is None or "deletionTimestamp" in job["metadata"]:
            return None
        if endings(job):
            return self._delete_after_ttl(job)
        self._adoption.adopt_and_release(job, key)
        record = self._record(job)
        active = [pod for pod in self.pods.of(job["metadata"]["uid"]) if pod.is_active]
        outcome = self._outcome(job, record, active)
        if outcome is not None:
            for pod in active:
                self.delete_pod(job, pod)
            self._finish(job, record, *outcome)
            return None
        again: float | None = None
        if job["spec"].get("suspend"):
            self._withdraw(job, record, active)
        else:
            again = self._manage_pods(job, record, active)
        active = [pod for pod in self.pods.of(job["metadata"]["uid"]) if pod.is_active]
        deadline = self._update_status(job, record, active)
        times = [time for time in (again, deadline) if time is not None]
        return min(times) if times else None

    # --- counting ------------------------------------------------------------------------------

    def _record(self, job: Object) -> _Record:
        uid = job["metadata"]["uid"]
        record = self._records.get(uid)
        is_first = record is None
        if record is None:
            record = self._records[uid] = _Record()
        for pod in self.pods.of(uid):
            self._count(record, pod)
        if is_first:
            status = job.get("status") or {}
            record.before = max((status.get("succeeded") or 0) - len(record.succeeded), 0)
            record.indexes |= set(_parse_indexes(status.get("completedIndexes") or ""))
        return record

    def _count(self, record: _Record, pod: PodView, is_gone: bool = False) -> None:
        """Record the result of a pod; one that another client deleted has failed."""
        uid = pod.metadata.uid
        if uid in record.succeeded or uid in record.failed or uid in record.withdrawn:
            return
        index = _index(pod)
        if pod.status.phase == "Succeeded":
            record.succeeded[uid] = index
            record.failures = 0
            if index is not None:
                record.indexes.add(index)
        elif pod.status.phase == "Failed" or pod.is_terminating or is_gone:
            record.failed[uid] = index
            record.failures += 1
            record.failed_at = self.clock.now()

    # --- deciding ------------------------------------------------------------------------------

    def _outcome(
        self, job: Object, record: _Record, active: list[PodView]
    ) -> tuple[bool, str, str] | None:
        """Whether the job succeeded, and the reason; None if it goes on."""
        spec = job["spec"]
        limit = spec.get("backoffLimit")
        limit = _BACKOFF_LIMIT if limit is None else int(limit)
        restarts = 0
        if (spec["template"].get("spec") or {}).get("restartPolicy") == "OnFailure":
            restarts = sum(pod.restarts for pod in active)
        if len(record.failed) > limit or restarts > limit:
            words = "Job has reached the specified backoff limit"
            return False, "BackoffLimitExceeded", words
        left = self._time_left(job)
        if left is not None and left <= 0:
            words = "Job was active longer than specified deadline"
            return False, "DeadlineExceeded", words
        wanted = spec.get("completions")
        if wanted is None:
            is_done = record.successes > 0 and not active
        else:
            count = len(record.indexes) if _is_indexed(job) else record.successes
            is_done = count >= int(wanted)
        words = "Reached expected number of succeeded pods"
        return (True, "CompletionsReached", words) if is_done else None

    def _time_left(self, job: Object) -> float | None:
        limit = job["spec"].get("activeDeadlineSeconds")
        started = (job.get("status") or {}).get("startTime")
        if limit is None or started is None or job["spec"].get("suspend"):
            return None
        return float(parse_time(started) + int(limit) - self.clock.now())

    def _manage_pods(self, job: Object, record: _Record, active: list[PodView]) -> float | None:
        """Create or delete pods; the seconds until the next attempt if some are left."""
        spec = job["spec"]
        parallelism = spec.get("parallelism")
        wanted = 1 if parallelism is None else int(parallelism)
        completions = spec.get("completions")
        if completions is not None:
            count = len(record.indexes) if _is_indexed(job) else record.successes
            wanted = min(wanted, int(completions) - count)
        elif record.successes:
            wanted = min(wanted, len(active))  # the work is done; active pods may finish
        self._withdraw(job, record, active[max(wanted, 0) :])
        lack = wanted - len(active)
        if lack <= 0:
            return None
        pause = self._pause(record)
        if pause > 0:
            return pause
        if _is_indexed(job):
            self._make_indexed(job, record, active, min(lack, _BURST))
        else:
            template = encode_template(spec["template"])
            for _ in range(min(lack, _BURST)):
                self.create_pod(job, template, labels=_labels(job))
        return 0.0 if lack > _BURST else None

    def _withdraw(self, job: Object, record: _Record, pods: list[PodView]) -> None:
        """Delete pods that should not run now; that is no failure."""
        for pod in pods:
            record.withdrawn.add(pod.metadata.uid)
            self.delete_pod(job, pod)

    def _pause(self, record: _Record) -> float:
        if not record.failures:
            return 0.0
        length = min(_FIRST_PAUSE * 2.0 ** (record.failures - 1), _LONGEST_PAUSE)
        return record.failed_at + length - self.clock.now()

    def _make_indexed(
        self, job: Object, record: _Record, active: list[PodView], count: int
    ) -> None:
        taken = record.indexes | {index for pod in active if (index := _index(pod)) is not None}
        free = (index for index in range(int(job["spec"]["completions"])) if index not in taken)
        name = job["metadata"]["name"]
        for index, _ in zip(free, range(count), strict=False):
            template: Object = msgspec.json.decode(encode_template(job["spec"]["template"]))
            spec = template.setdefault("spec", {})
            spec.setdefault("hostname", f"{name}-{index}")
            told = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
            for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
                variables = container.setdefault("env", [])
                variables.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": told})
            mark = {INDEX: str(index)}
            labels = {**_labels(job), **mark}
            self.create_pod(job, encode_template(template), labels=labels, annotations=mark)

    # --- reporting -----------------------------------------------------------------------------

    def _update_status(self, job: Object, record: _Record, active: list[PodView]) -> float | None:
        """Write the status; the seconds until the deadline, if there is one."""
        known_status = job.get("status") or {}
        is_suspended = bool(job["spec"].get("suspend"))
        started = None if is_suspended else known_status.get("startTime") or self.verbs.now()
        status = {**self._counts(job, record, active), "startTime": started}
        conditions = [
            one for one in known_status.get("conditions") or () if one["type"] != "Suspended"
        ]
        if is_suspended:
            conditions.append(self._condition("Suspended", "JobSuspended", "Job suspended"))
        if len(conditions) != len(known_status.get("conditions") or ()):
            status["conditions"] = conditions or None
        self.write_status(JOBS, job, status)
        job.setdefault("status", {})["startTime"] = started
        return self._time_left(job)

    def _counts(self, job: Object, record: _Record, active: list[PodView]) -> dict[str, Any]:
        leaving = sum(
            pod.is_terminating and not pod.is_finished
            for pod in self.pods.of(job["metadata"]["uid"])
        )
        counts: dict[str, Any] = {
            "active": len(active) or None,
            "ready": sum(pod.is_ready for pod in active),
            "terminating": leaving,
            "succeeded": record.successes or None,
            "failed": len(record.failed) or None,
            "uncountedTerminatedPods": {},
        }
        if _is_indexed(job):
            counts["completedIndexes"] = _format_indexes(record.indexes) or None
        return counts

    def _finish(
        self, job: Object, record: _Record, is_good: bool, reason: str, message: str
    ) -> None:
        kinds = ("SuccessCriteriaMet", "Complete") if is_good else ("FailureTarget", "Failed")
        status = self._counts(job, record, [])
        status["conditions"] = [
            *((job.get("status") or {}).get("conditions") or ()),
            *(self._condition(kind, reason, message) for kind in kinds),
        ]
        if is_good:
            status["completionTime"] = self.verbs.now()
        self.write_status(JOBS, job, status)
        if is_good:
            self.record_event(job, "Completed", "Job completed")
        else:
            self.record_event(job, reason, message, "Warning")

    def _condition(self, kind: str, reason: str, message: str) -> Object:
        time = self.verbs.now()
        times = {"lastProbeTime": time, "lastTransitionTime": time}
        return {"type": kind, "status": "True", **times, "reason": reason, "message": message}

    def _delete_after_ttl(self, job: Object) -> float | None:
        limit = job["spec"].get("ttlSecondsAfterFinished")
        if limit is None:
            return None
        ended = max(parse_time(one["lastTransitionTime"]) for one in endings(job))
        left = ended + int(limit) - self.clock.now()
        if left > 0:
            return left
        meta = job["metadata"]
        self.verbs.delete(
            JOBS, meta["namespace"], meta["name"], uid=meta["uid"], propagation="Background"
        )
        return None


def endings(job: Object) -> list[Object]:
    """The conditions that say that a Job is over."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return [
        one
        for one in conditions
        if one["type"] in ("Complete", "Failed") and one["status"] == "True"
    ]


def _is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def _index(pod: PodView) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() else None


def _labels(job: Object) -> dict[str, str]:
    uid, name = job["metadata"]["uid"], job["metadata"]["name"]
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


def _format_indexes(indexes: Iterable[int]) -> str:
    """Indexes as a Job's status has them, such as `0-2,5`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _parse_indexes(text: str) -> Iterable[int]:
    """The indexes of `0-2,5`."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal():
            yield from range(int(first), int(last or first) + 1)
