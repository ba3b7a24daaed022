"""Why pods wait at the end of a simulation: the plugins that refuse them, with numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import msgspec

from mooring.api.requests import PODS
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.framework.verdicts import Verdicts
from mooring.scheduler.profiles import ProfileRuntime
from mooring.scheduler.scheduler import Scheduler
from mooring.simulator.measures import format_amount

_EXAMPLES: Final = 3  # nodes that are named for a reason
_SHORTAGES: Final = 5  # nodes whose shortage is told, the least first
_INSUFFICIENT: Final = "Insufficient "
_TOO_MANY: Final = "Too many pods"


class Shortage(msgspec.Struct, frozen=True, rename="camel"):
    """How much of a resource a node lacks for a pod."""

    node: str
    resource: str
    short: str  # a quantity


class Refused(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nodes that one plugin refuses for the same reasons, as the first to do so."""

    plugin: str
    reasons: tuple[str, ...]
    nodes: int
    examples: tuple[str, ...] = ()
    shortages: tuple[Shortage, ...] = ()


class Waiting(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why a pod has no node."""

    message: str
    refused: tuple[Refused, ...] = ()


class Reasons:
    """Says why pods wait; equal pods are evaluated once."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._known: dict[Hashable, Waiting] = {}

    def why(self, pod: Pod, said: str) -> Waiting:
        """`said` is the message of the pod's condition, if it has one."""
        runtime = self._scheduler.runtimes.get(pod.scheduler_name)
        if runtime is None:
            return Waiting(f"no profile for schedulerName {pod.scheduler_name}")
        key = (pod.namespace, pod.spec, pod.api.metadata.labels, said)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._why(runtime, pod, said)
        return found

    def _why(self, runtime: ProfileRuntime, pod: Pod, said: str) -> Waiting:
        gate = runtime.runner.pre_enqueue(pod)
        if not gate.ok:
            return Waiting(gate.message)
        nodes = self._scheduler.cache.nodes
        verdicts = verdicts_on(runtime, pod, nodes)
        if isinstance(verdicts, Status):
            return Waiting(said or verdicts.message)
        return Waiting(said, tuple(groups(pod, nodes, verdicts)))


def verdicts_on(runtime: ProfileRuntime, pod: Pod, nodes: Nodes) -> Verdicts | Status:
    """The first refusal of every node; or what PreFilter says, if it refuses all of them."""
    if not len(nodes):
        return Status.unresolvable("no nodes available to schedule pods")
    evaluation = runtime.evaluator.begin(CycleState(), pod, nodes, use_memory=False)
    if not evaluation.outcome.status.ok:
        return evaluation.outcome.status
    evaluation.filter()
    return evaluation.verdicts()


def groups(pod: Pod, nodes: Nodes, verdicts: Verdicts) -> list[Refused]:
    """Nodes by the plugin and the reasons of their refusal; the largest group first."""
    found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for row, status in enumerate(verdicts.each()):
        if not status.ok:
            found.setdefault((status.plugin, status.reasons), []).append(row)
    names = nodes.names
    refused = [
        Refused(
            plugin=plugin,
            reasons=reasons,
            nodes=len(rows),
            examples=tuple(names[row] for row in rows[:_EXAMPLES]),
            shortages=_shortages(pod, nodes, rows, reasons),
        )
        for (plugin, reasons), rows in found.items()
    ]
    return sorted(refused, key=lambda one: -one.nodes)


def _shortages(
    pod: Pod, nodes: Nodes, rows: list[int], reasons: tuple[str, ...]
) -> tuple[Shortage, ...]:
    resources = [found for reason in reasons if (found := resource_of(reason))]
    if not resources:
        return ()
    names = nodes.names
    lacking = []
    for resource in resources:
        asked = 1 if resource == PODS else pod.requests(resource)
        spare = nodes.spare(resource)
        lacking += [(asked - int(spare[row]), resource, names[row]) for row in rows]
    # By node as it stands in the listing where amounts are equal: sorting is stable.
    lacking.sort(key=lambda one: one[0])
    return tuple(
        Shortage(name, resource, format_amount(resource, amount))
        for amount, resource, name in lacking[:_SHORTAGES]
    )


def resource_of(reason: str) -> str:
    """The resource that a refusal of NodeResourcesFit names; "" if it is another refusal."""
    if reason == _TOO_MANY:
        return PODS
    return reason.removeprefix(_INSUFFICIENT) if reason.startswith(_INSUFFICIENT) else ""
