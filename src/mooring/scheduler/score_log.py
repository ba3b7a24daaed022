"""The scores of every feasible node in the log, for `-v 10`.

Messages and keys are kube-scheduler's: a plugin's score is weighted, an extender's as it was given.
"""

from __future__ import annotations

import logging
from collections.abc import Container

from mooring.cache.pods import Pod
from mooring.observe.log import TRACE
from mooring.scheduler.cycle import Decision

log = logging.getLogger(__name__)


def is_on() -> bool:
    """Whether scores are logged at all: asked when a scheduler is made, not for every pod."""
    return log.isEnabledFor(TRACE)


def log_scores(pod: Pod, decision: Decision, plugins: Container[str]) -> None:
    """All scores of a decision, if there was a choice; `plugins` tells them from extenders."""
    scores = decision.scores
    if scores is None:
        return
    nodes = decision.feasible
    by_plugins = [table for table in scores.plugins if table.plugin in plugins]
    weighted = [(table.plugin, (table.scores * table.weight).tolist()) for table in by_plugins]
    for row, node in enumerate(nodes):
        for plugin, points in weighted:
            extra = {"pod": pod.key, "plugin": plugin, "node": node, "score": points[row]}
            log.log(TRACE, "Plugin scored node for pod", extra=extra)
    for table in scores.plugins:
        if table.plugin not in plugins and table.weight:
            for node, given in zip(nodes, table.raw.tolist(), strict=True):
                extra = {"pod": pod.key, "extender": table.plugin, "node": node, "score": given}
                log.log(TRACE, "Extender scored node for pod", extra=extra)
    for node, total in zip(nodes, scores.totals.tolist(), strict=True):
        extra = {"pod": pod.key, "node": node, "score": total}
        log.log(TRACE, "Calculated node's final score for pod", extra=extra)
