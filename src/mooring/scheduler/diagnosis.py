"""The diagnosis of an unschedulable pod: counts per reason, and kube-scheduler's message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from mooring.decision.plugins import PreFilterOutcome
from mooring.extender.calling.caller import NAME as EXTENDER
from mooring.framework.status import OK, Code, Status
from mooring.framework.verdicts import Verdicts


class Diagnosis(msgspec.Struct, frozen=True):
    """Counts per reason, and the plugins whose events may help the pod."""

    nodes: int
    reasons: dict[str, int]  # reason -> nodes that gave it
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    post_filter_message: str = ""

    @property
    def message(self) -> str:
        """The sentence of events and conditions: "0/5 nodes are available: ..."."""
        text = f"0/{self.nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        elif self.reasons:
            # Sorted as strings, as in kube-scheduler: "10 ..." comes before "2 ...".
            counted = sorted(f"{count} {reason}" for reason, count in self.reasons.items())
            text += f" {', '.join(counted)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def followed_by(self, post_filter_message: str) -> Diagnosis:
        return msgspec.structs.replace(self, post_filter_message=post_filter_message)


def of_refusals(before: PreFilterOutcome, verdicts: Verdicts) -> Diagnosis:
    """From the verdicts of an evaluation, in which PreFilter may have refused the pod before."""
    if before.status is OK:
        return of_verdicts(verdicts, before.restricted_by)
    return of_pre_filter(before.status, len(verdicts), before.restricted_by)


def of_verdicts(verdicts: Verdicts, restricted_by: Iterable[str] = ()) -> Diagnosis:
    """From one verdict per node; `restricted_by` are the plugins that narrowed the nodes before."""
    reasons: Counter[str] = Counter()
    unschedulable = set(restricted_by)
    pending = set()
    for status, count in zip(verdicts.statuses, verdicts.counts(), strict=True):
        if count:
            for reason in _reasons(status):
                reasons[reason] += count
            if status.plugin:
                unschedulable.add(status.plugin)
                if status.code is Code.PENDING:
                    pending.add(status.plugin)
    return Diagnosis(len(verdicts), dict(reasons), frozenset(unschedulable), frozenset(pending))


def of_pre_filter(status: Status, nodes: int, restricted_by: Iterable[str] = ()) -> Diagnosis:
    """From a refusal at PreFilter, which holds for every node."""
    plugins = frozenset({status.plugin, *restricted_by} - {""})
    message = status.message or ", ".join(_reasons(status))
    return Diagnosis(nodes, {}, plugins, frozenset(), pre_filter_message=message)


def of_refusal(status: Status) -> Diagnosis:
    """From a refusal of the chosen node at Reserve or Permit."""
    plugins = frozenset({status.plugin} - {""})
    pending = plugins if status.code is Code.PENDING else frozenset()
    reasons = dict(Counter(_reasons(status)))
    return Diagnosis(1, reasons, plugins, pending)


def _reasons(status: Status) -> tuple[str, ...]:
    """The reasons of a refusal; the name of the plugin if it gave none.

    Extenders may refuse without a reason; kube-scheduler does not mention that.
    """
    if status.reasons or not status.rejected or status.plugin in ("", EXTENDER):
        return status.reasons
    return (f'refused by plugin "{status.plugin}" without a reason',)
