"""Small clusters for the tests of explanations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring import config as cfg
from mooring.api.meta import Object
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.framework.plugin import Base
from mooring.lens.explainer import Explainer
from mooring.lens.explanation import Explanation, Remedy
from mooring.lens.private import PrivateCluster
from mooring.lens.snapshot import KINDS, ClusterState, Snapshot
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry

FIELDS = {kind: field for field, kind in KINDS.items()}


def cluster_of(
    nodes: Sequence[Node], pods: Iterable[Pod] = (), objects: Iterable[Object] = ()
) -> ClusterState:
    found: dict[str, list[Object]] = {field: [] for field in KINDS}
    found["nodes"] += [node.api for node in nodes]
    found["pods"] += [pod.api for node in nodes for pod in node.pods]
    found["pods"] += [pod.api for pod in pods]
    for value in objects:
        found[FIELDS[type(value)]].append(value)
    return ClusterState(**{field: tuple(values) for field, values in found.items()})  # type: ignore[arg-type]  # by kind


def default_plan(plugins: Iterable[type[Base]] = ()) -> ProfilePlan:
    return plan_profiles(cfg.default_configuration(), Registry.discover(plugins))[0]


def explained(
    pod: Pod,
    nodes: Sequence[Node],
    pods: Iterable[Pod] = (),
    objects: Iterable[Object] = (),
    *,
    ask: Sequence[str] = (),
    remedies: bool = True,
) -> Explanation:
    """As `mooring explain` tells it."""
    cluster = cluster_of(nodes, [*pods, pod], objects)
    return Explainer(Snapshot(cluster=cluster)).explain(pod.api, ask=ask, remedies=remedies)


def texts(found: Explanation) -> list[str]:
    """The remedies, in order."""
    assert found.remedies is not None
    return [remedy.text for remedy in found.remedies]


def remedy(found: Explanation, text: str) -> Remedy:
    assert found.remedies is not None
    return next(one for one in found.remedies if text in one.text)


def private(nodes: Sequence[Node], pods: Iterable[Pod] = ()) -> PrivateCluster:
    return PrivateCluster(default_plan(), cluster_of(nodes, pods))
