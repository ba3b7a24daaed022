"""Kubernetes Events of simulated components, as `kubectl describe` shows them."""

from __future__ import annotations

import logging
from typing import Final

from mooring.api.meta import format_time
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.verbs import Verbs
from mooring.framework.handle import Clock

log = logging.getLogger(__name__)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
EVENTS: Final = known("events")


class EventWriter:
    """Writes Events. With `warnings_only`, Normal events are left out: each costs a write."""

    def __init__(self, verbs: Verbs, clock: Clock, *, warnings_only: bool = True) -> None:
        self._verbs = verbs
        self._clock = clock
        self._warnings_only = warnings_only
        self._last_nanos = 0

    def record_event(
        self,
        about: Object,
        type_: str,
        reason: str,
        message: str,
        *,
        component: str,
        host: str = "",
    ) -> None:
        """Write an Event about an object; a refusal by the server is only logged."""
        if self._warnings_only and type_ == NORMAL:
            return
        meta = about["metadata"]
        now = self._clock.now()
        time = format_time(now)
        # Several Events may have the same time; their names must differ.
        self._last_nanos = max(int(now * 1e9), self._last_nanos + 1)
        namespace = meta.get("namespace") or "default"
        event = {
            "metadata": {"name": f"{meta['name']}.{self._last_nanos:x}"},
            "involvedObject": _reference(about),
            "type": type_,
            "reason": reason,
            "message": message,
            "source": {"component": component, "host": host} if host else {"component": component},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
            "reportingComponent": component,
            "reportingInstance": host,
        }
        try:
            self._verbs.create(EVENTS, event, namespace=namespace)
        except StatusError as error:
            log.debug("an Event was refused", extra={"reason": reason, "error": str(error)})


def _reference(about: Object) -> dict[str, str]:
    meta = about["metadata"]
    found = {"kind": about["kind"], "apiVersion": about["apiVersion"], "name": meta["name"]}
    for field in ("namespace", "uid", "resourceVersion"):
        if meta.get(field):
            found[field] = meta[field]
    return found
