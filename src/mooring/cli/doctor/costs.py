"""What each plugin costs, measured with the pods and nodes of a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from mooring.cache.pods import Pod
from mooring.cli.doctor.findings import DoctorFinding, ok, problem, warning
from mooring.framework._internal import InternalPlugin
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.lens.inspect import unbound
from mooring.lens.private import PrivateCluster
from mooring.lens.snapshot import ClusterState
from mooring.runtime.profile import ProfilePlan
from mooring.scheduler.profiles import asked_for_every_pod

_PODS: Final = 20
_DEAR: Final = 0.005  # seconds for a pod
_SHOWN: Final = 3


def check_plugins(plans: Sequence[ProfilePlan], cluster: ClusterState) -> Iterator[DoctorFinding]:
    """Plugins that are slow, or that could be cached and are not."""
    for plan in plans:
        private = PrivateCluster(plan, cluster)
        try:
            yield from _declarations(private)
            yield from _costs(plan.scheduler_name, private, cluster)
        finally:
            private.profile.close()


def _declarations(private: PrivateCluster) -> Iterator[DoctorFinding]:
    for name in asked_for_every_pod([private.profile]):
        yield warning(
            "plugins",
            f"{name} declares no depends_on: it runs on every node for every pod",
            "see depends_on in the plugin reference; check_plugin says what it could declare",
        )


def _costs(profile: str, private: PrivateCluster, cluster: ClusterState) -> Iterator[DoctorFinding]:
    pods = list(islice(_examples(cluster, profile), _PODS))
    if not pods or not len(private.nodes):
        yield ok("plugins", f"{profile}: no pod or no node to measure with")
        return
    guard = private.runner.guard
    for number, pod in enumerate((pods[0], *pods)):
        guard.record_plugins = number > 0  # the first call of a plugin is slower than others
        failed = _evaluate(private, pod)
        if not (failed.ok or failed.rejected):
            advice = "the log of a scheduler has the traceback; check_plugin finds such faults"
            yield problem("plugins", f"{pod.key}: {failed.message}", advice)
            return
    spent: dict[str, float] = defaultdict(float)
    for (name, *_), histogram in guard.metrics.plugin_duration:
        spent[name] += histogram.total / len(pods)
    dearest = sorted(spent.items(), key=lambda entry: -entry[1])
    told = ", ".join(f"{name} {_duration(took)}" for name, took in dearest[:_SHOWN])
    total = _duration(sum(spent.values()))
    yield ok("plugins", f"{profile}: {total} for a new kind of pod; most: {told}")
    for name, took in dearest:
        plugin = private.profile.plugins[name]
        if took > _DEAR and not isinstance(plugin, InternalPlugin):
            yield warning(
                "plugins",
                f"{name} takes {_duration(took)} for each pod on {len(private.nodes)} nodes",
                "write filter_all or score_all, or declare depends_on",
            )


def _evaluate(private: PrivateCluster, pod: Pod) -> Status:
    """Decide for a pod as if it were the first of its kind."""
    with private.cache.without_pod(pod):
        evaluation = private.evaluator.begin(
            CycleState(), unbound(pod), private.nodes, use_memory=False
        )
        if not evaluation.outcome.status.ok:
            return evaluation.outcome.status
        evaluation.filter()
        if evaluation.status.ok and evaluation.count > 1:
            evaluation.choose()
        return evaluation.status


def _examples(cluster: ClusterState, profile: str) -> Iterator[Pod]:
    """Pods to measure with: those of the profile first, waiting ones before others."""
    ordered = sorted(
        cluster.pods,
        key=lambda pod: (pod.spec.scheduler_name != profile, bool(pod.spec.node_name)),
    )
    return (Pod(pod) for pod in ordered if pod.status.phase not in ("Succeeded", "Failed"))


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds >= 0.001 else f"{seconds * 1e6:.0f} µs"
