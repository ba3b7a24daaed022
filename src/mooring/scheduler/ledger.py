"""What a scheduler tells about its attempts; `lens.record` keeps it.

Called once per attempt, whichever way it was decided, after a wait at Permit, and once when the
bind has ended. Nothing else is switched on or off by it: pods are decided by their classes all the
same.
"""

from __future__ import annotations

from typing import Any, Protocol

from mooring.decision.evaluation import Evaluation
from mooring.framework.results import QueuedPod
from mooring.framework.status import Status
from mooring.scheduler.cycle import Decision


class AttemptLedger(Protocol):
    """Keeps attempts; must not fail, wait or change anything."""

    def decided(
        self, queued: QueuedPod, decision: Decision, evaluation: Evaluation | None, took: float
    ) -> Any:
        """An attempt of `took` seconds; its entry, for `ended`. The nodes are as they were."""
        ...

    def permitted(self, entry: Any, took: float) -> None:
        """The pod has waited at Permit, until so many seconds after the attempt began."""
        ...

    def ended(self, entry: Any, status: Status, took: float) -> None:
        """The bind has ended, so many seconds after the attempt began."""
        ...
