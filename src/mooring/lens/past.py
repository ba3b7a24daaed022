"""A past attempt explained as it was, from the journal of the scheduler that made it.

The journal is read up to the attempt, which takes seconds: not on the loop of a scheduler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mooring.errors import ConfigError, Problem
from mooring.lens.explainer import Explainer
from mooring.lens.journal_reading import JournalFolder
from mooring.lens.offline import OfflineLens
from mooring.lens.worker import PastQuestion
from mooring.runtime.registry import Registry


def explained_past(asked: PastQuestion, registry: Registry) -> dict[str, Any]:
    """The answer as JSON has it."""
    journal = JournalFolder(Path(asked.journal), may_be_empty=True)
    snapshot, pod = journal.before(asked.seq, asked.since)
    if pod.key != asked.pod:
        text = f"attempt {asked.seq} was made for {pod.key}, not for {asked.pod}"
        raise ConfigError([Problem("at", text)])
    lens = OfflineLens(snapshot, Explainer(snapshot, registry=registry), source="file")
    found = lens.explain(asked.pod, asked.depth, asked.nodes)
    assert found is not None  # the pod is in the snapshot
    return found
