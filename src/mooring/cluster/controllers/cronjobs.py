"""CronJobs: a Job at each time of a schedule."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from mooring.api.meta import format_time, parse_time
from mooring.client.errors import ConflictError, NotFound
from mooring.cluster.apiserver.resources import Resource, known
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.controllers.base import BuiltInController, owner_reference
from mooring.cluster.controllers.cron_schedule import CronSchedule, parse_schedule
from mooring.cluster.controllers.jobs import JOBS, endings
from mooring.cluster.controllers.reconcile_queue import Key
from mooring.cluster.controllers.views import meta_of
from mooring.cluster.event_writer import WARNING

CRONJOBS: Final = known("cronjobs", "batch")
_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MOST_MISSED: Final = 100  # times, before an Event says so


class CronJobController(BuiltInController):
    """Creates Jobs when they are due, and deletes old ones."""

    watches: ClassVar[tuple[Resource, ...]] = (CRONJOBS, JOBS)
    name: ClassVar[str] = "cronjob-controller"

    def on_change(self, change: StoreChange) -> None:
        if change.resource == JOBS.key:
            owner = meta_of(change).controller
            if owner is not None and owner.kind == CRONJOBS.kind:
                self.enqueue((change.new.namespace, owner.name))
        elif change.type != "DELETED":
            self.enqueue(change.new.key)

    def reconcile(self, key: Key) -> float | None:
        cron_job = self.read(CRONJOBS, key)
        if cron_job is None or "deletionTimestamp" in cron_job["metadata"]:
            return None
        spec = cron_job["spec"]
        jobs = self._jobs(cron_job)
        self._clean_up(cron_job, jobs)
        status = _status_of(cron_job, jobs)
        if spec.get("suspend"):
            self.write_status(CRONJOBS, cron_job, status)
            return None
        try:
            schedule = parse_schedule(spec["schedule"], spec.get("timeZone") or "")
        except ValueError as error:
            words = f'unparseable schedule: "{spec["schedule"]}" : {error}'
            self.record_event(cron_job, "UnparseableSchedule", words, WARNING)
            self.write_status(CRONJOBS, cron_job, status)
            return None
        now = self.clock.now()
        due = self._due(cron_job, schedule, now)
        if due is not None:
            self._run(cron_job, due, jobs, status)
        self.write_status(CRONJOBS, cron_job, status)
        following = schedule.next_after(now)
        return None if following is None else following - now

    def _jobs(self, cron_job: Object) -> list[Object]:
        """Its Jobs, the oldest first."""
        kin = self.owner_graph.dependents(cron_job["metadata"]["uid"])
        read = (self.read(JOBS, (namespace, name)) for of, namespace, name in kin if of == JOBS.key)
        found = (one for one in read if one is not None)
        return sorted(found, key=lambda one: (one["metadata"]["creationTimestamp"], _name(one)))

    # --- running -------------------------------------------------------------------------------

    def _due(self, cron_job: Object, schedule: CronSchedule, now: float) -> float | None:
        """The latest time at which there should have been a Job and was none."""
        spec, status = cron_job["spec"], cron_job.get("status") or {}
        begun = status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"]
        earliest = parse_time(begun)
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None:
            earliest = max(earliest, now - int(deadline))
        latest: float | None = None
        missed = 0
        following = schedule.next_after(earliest)
        while following is not None and following <= now:
            latest, missed = following, missed + 1
            if missed > _MOST_MISSED:
                words = (
                    f"too many missed start times: {missed}. Set or decrease "
                    ".spec.startingDeadlineSeconds or check clock skew"
                )
                self.record_event(cron_job, "TooManyMissedTimes", words, WARNING)
                following = schedule.next_after(now - 86_400)
                while following is not None and following <= now:
                    latest, following = following, schedule.next_after(following)
                break
            following = schedule.next_after(following)
        return latest

    def _run(
        self, cron_job: Object, due: float, jobs: list[Object], status: dict[str, Any]
    ) -> None:
        policy = cron_job["spec"].get("concurrencyPolicy")
        active = [one for one in jobs if not endings(one)]
        if policy == "Forbid" and active:
            words = "Not starting job because prior execution is running and concurrency policy is"
            self.record_event(cron_job, "JobAlreadyActive", f"{words} Forbid")
            return
        if policy == "Replace":
            for one in active:
                self._delete(one)
                self.record_event(cron_job, "SuccessfulDelete", f"Deleted job {_name(one)}")
            active = []
        status["lastScheduleTime"] = format_time(due)
        made = self._create(cron_job, due)
        if made is not None:
            self.record_event(cron_job, "SuccessfulCreate", f"Created job {_name(made)}")
            active.append(made)
        status["active"] = [_reference(one) for one in active] or None

    def _create(self, cron_job: Object, due: float) -> Object | None:
        template: Object = msgspec.json.decode(msgspec.json.encode(cron_job["spec"]["jobTemplate"]))
        given = template.get("metadata") or {}
        meta: dict[str, Any] = {
            # As many per minute as kube-controller-manager makes: one.
            "name": f"{_name(cron_job)}-{int(due) // 60}",
            "annotations": {**(given.get("annotations") or {}), _SCHEDULED_AT: format_time(due)},
            "ownerReferences": [owner_reference(cron_job)],
        }
        if given.get("labels"):
            meta["labels"] = given["labels"]
        value = {"metadata": meta, "spec": template.get("spec") or {}}
        try:
            return self.verbs.create(JOBS, value, namespace=cron_job["metadata"]["namespace"])
        except ConflictError as error:
            if error.reason != "AlreadyExists":
                raise
            return None

    # --- history -------------------------------------------------------------------------------

    def _clean_up(self, cron_job: Object, jobs: list[Object]) -> None:
        spec = cron_job["spec"]
        for kind, field, usual in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            limit = spec.get(field)
            limit = usual if limit is None else int(limit)
            ended = [one for one in jobs if any(end["type"] == kind for end in endings(one))]
            for one in ended[: max(len(ended) - limit, 0)]:
                self._delete(one)
                jobs.remove(one)

    def _delete(self, job: Object) -> None:
        meta = job["metadata"]
        try:
            self.verbs.delete(
                JOBS, meta["namespace"], meta["name"], uid=meta["uid"], propagation="Background"
            )
        except (NotFound, ConflictError):
            return  # already deleted, or replaced by another Job of this name


def _status_of(cron_job: Object, jobs: list[Object]) -> dict[str, Any]:
    active = [one for one in jobs if not endings(one)]
    succeeded = [
        (one.get("status") or {}).get("completionTime") or ""
        for one in jobs
        if any(end["type"] == "Complete" for end in endings(one))
    ]
    before = (cron_job.get("status") or {}).get("lastSuccessfulTime") or ""
    return {
        "active": [_reference(one) for one in active] or None,
        "lastSuccessfulTime": max([before, *succeeded]) or None,
    }


def _name(value: Object) -> str:
    return str(value["metadata"]["name"])


def _reference(job: Object) -> Object:
    meta = job["metadata"]
    found = {"kind": JOBS.kind, "apiVersion": JOBS.api_version}
    return found | {key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")}
