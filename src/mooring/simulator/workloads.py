"""Workloads as the pods that their controllers would make of them, and as copies of their pods.

`mooring what-if --apply` and `mooring capacity` take manifests of Deployments and the like;
`--scale` adds copies of a pod that is there, or takes pods away in the order of the controllers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from mooring.api import codec, core
from mooring.api.frozen import FrozenDict
from mooring.api.meta import ObjectMeta, OwnerReference
from mooring.errors import ConfigError, Problem, UsageError
from mooring.lens.completing import completed_pod, identified
from mooring.lens.snapshot import ClusterState

_SHORT: Final[Mapping[str, str]] = {
    "deploy": "Deployment",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "rs": "ReplicaSet",
    "replicaset": "ReplicaSet",
    "replicasets": "ReplicaSet",
    "sts": "StatefulSet",
    "statefulset": "StatefulSet",
    "statefulsets": "StatefulSet",
    "rc": "ReplicationController",
    "replicationcontroller": "ReplicationController",
    "replicationcontrollers": "ReplicationController",
    "job": "Job",
    "jobs": "Job",
}
_SCALING: Final = re.compile(r"(?:([^/=]+)/)?([^/=]+)/([^/=]+)=(\d+)")
_ORDINAL: Final = re.compile(r"-(\d+)$")
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"
_REPLICAS: Final = {"Job": "parallelism"}  # of the others: replicas


class Scaling(msgspec.Struct, frozen=True):
    """A workload and how many pods it is to have."""

    kind: str
    name: str
    replicas: int
    namespace: str = "default"

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def parse_scaling(text: str) -> Scaling:
    """Of `deploy/web=50`, or `shop/deploy/web=50` for another namespace."""
    found = _SCALING.fullmatch(text)
    kind = _SHORT.get(found[2].lower()) if found else None
    if found is None or kind is None:
        known = "deploy, rs, sts, rc or job"
        expected = f"expected [NAMESPACE/]KIND/NAME=REPLICAS with {known}, got {text!r}"
        raise UsageError([Problem("--scale", expected)])
    return Scaling(kind, found[3], int(found[4]), found[1] or "default")


# --- manifests -----------------------------------------------------------------------------------


def is_workload(document: Mapping[str, Any]) -> bool:
    return document.get("kind") in {*_SHORT.values(), "DaemonSet", "CronJob", "Pod", "PodTemplate"}


def template_of(document: Mapping[str, Any], place: str) -> core.Pod:
    """The pod of a manifest: itself, or the template of a workload, with the workload's name."""
    kind, meta = str(document.get("kind")), document.get("metadata") or {}
    if kind == "Pod":
        holder: Any = document
    elif kind == "PodTemplate":
        holder = document.get("template")
    elif kind == "CronJob":
        holder = _at(document, "spec", "jobTemplate", "spec", "template")
    else:
        holder = _at(document, "spec", "template")
    if not isinstance(holder, Mapping):
        raise ConfigError([Problem(place, f"{kind} {meta.get('name', '')}: expected a template")])
    inner = holder.get("metadata") or {}
    raw = {
        "metadata": {
            "name": meta.get("name") or inner.get("name") or kind.lower(),
            "namespace": meta.get("namespace", ""),
            "labels": inner.get("labels") or {},
            "annotations": inner.get("annotations") or {},
        },
        "spec": holder.get("spec") or {},
    }
    try:
        return completed_pod(identified(codec.convert(raw, core.Pod)))
    except codec.DecodeError as error:
        raise ConfigError([Problem(place, str(error))]) from error


def pods_of(document: Mapping[str, Any], place: str) -> Iterator[core.Pod]:
    """The pods that the controller of a workload would make."""
    kind = str(document.get("kind"))
    template = template_of(document, place)
    if kind == "DaemonSet":
        problem = "a DaemonSet has pods on the nodes it chooses; give its pods instead"
        raise ConfigError([Problem(place, problem)])
    count = _at(document, "spec", _REPLICAS.get(kind, "replicas"))
    owner = OwnerReference(
        api_version=str(document.get("apiVersion", "")),
        kind=kind,
        name=template.metadata.name,
        uid=template.metadata.uid,
        controller=True,
    )
    meta = structs.replace(template.metadata, owner_references=(owner,))
    template = structs.replace(template, metadata=meta)
    for index in range(count if isinstance(count, int) else 1):
        yield copied(template, f"{template.metadata.name}-{index}")


def copied(pod: core.Pod, name: str) -> core.Pod:
    """Another pod of the same kind, that has not been scheduled."""
    meta = pod.metadata
    labels = meta.labels
    if _POD_NAME in labels:
        ordinal = name.rpartition("-")[2]
        labels = FrozenDict({**labels, _POD_NAME: name, _POD_INDEX: ordinal})
    fresh = structs.replace(
        meta,
        name=name,
        uid=f"{meta.uid}/{name}",
        labels=labels,
        creation_timestamp=None,
        deletion_timestamp=None,
        resource_version="",
    )
    return unscheduled(structs.replace(pod, metadata=fresh))


def unscheduled(pod: core.Pod) -> core.Pod:
    """The pod without a node and without a past."""
    spec = pod.spec
    if spec.node_name:
        spec = structs.replace(spec, node_name="")
    return structs.replace(pod, spec=spec, status=core.PodStatus(phase="Pending"))


def _at(value: Any, *path: str) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


# --- scaling -------------------------------------------------------------------------------------


def scaled(cluster: ClusterState, scaling: Scaling) -> ClusterState:
    """The cluster with more or fewer pods of one workload."""
    pods = [pod for pod in _members(cluster, scaling) if pod.metadata.deletion_timestamp is None]
    more = scaling.replicas - len(pods)
    if more <= 0:
        gone = {pod.metadata.uid for pod in _by_dispensability(pods, scaling.kind)[: -more or 0]}
        kept = tuple(pod for pod in cluster.pods if pod.metadata.uid not in gone)
        return structs.replace(cluster, pods=kept)
    if not pods:
        raise _unknown(cluster, scaling)
    added = _copies(pods, scaling.kind, more)
    return structs.replace(cluster, pods=(*cluster.pods, *added))


def _members(cluster: ClusterState, scaling: Scaling) -> list[core.Pod]:
    kind, names = scaling.kind, {scaling.name}
    if kind == "Deployment":
        kind = "ReplicaSet"
        names = {
            one.metadata.name
            for one in cluster.replicasets
            if one.metadata.namespace == scaling.namespace
            and _is_owned(one.metadata, "Deployment", scaling.name)
        }
        # Manifests that were expanded here have no ReplicaSets.
        return [
            pod
            for pod in _alive(cluster, scaling.namespace)
            if any(_is_owned(pod.metadata, kind, name) for name in names)
            or _is_owned(pod.metadata, "Deployment", scaling.name)
        ]
    return [
        pod
        for pod in _alive(cluster, scaling.namespace)
        if _is_owned(pod.metadata, kind, scaling.name)
    ]


def _alive(cluster: ClusterState, namespace: str) -> Iterator[core.Pod]:
    for pod in cluster.pods:
        if pod.metadata.namespace == namespace and pod.status.phase not in ("Succeeded", "Failed"):
            yield pod


def _is_owned(meta: ObjectMeta, kind: str, name: str) -> bool:
    owner = meta.controller
    return owner is not None and (owner.kind, owner.name) == (kind, name)


def _by_dispensability(pods: list[core.Pod], kind: str) -> list[core.Pod]:
    """As the controllers take them away: the highest ordinal; else those without a node first.

    Then those that share a node with most others of their kind, then the newest.
    """
    if kind == "StatefulSet":
        return sorted(pods, key=lambda pod: -_ordinal(pod.metadata.name))
    together = Counter(pod.spec.node_name for pod in pods)
    newest_first = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or "", reverse=True)
    return sorted(
        newest_first, key=lambda pod: (bool(pod.spec.node_name), -together[pod.spec.node_name])
    )


def _copies(pods: list[core.Pod], kind: str, count: int) -> Iterator[core.Pod]:
    model = max(pods, key=lambda pod: pod.metadata.creation_timestamp or "")
    stem = model.metadata.name.rpartition("-")[0] or model.metadata.name
    if kind == "StatefulSet":
        first = max(_ordinal(pod.metadata.name) for pod in pods) + 1
        names = [f"{stem}-{first + index}" for index in range(count)]
    else:
        names = [f"{stem}-new-{index}" for index in range(count)]
    return (copied(model, name) for name in names)


def _ordinal(name: str) -> int:
    found = _ORDINAL.search(name)
    return int(found[1]) if found else -1


def _unknown(cluster: ClusterState, scaling: Scaling) -> ConfigError:
    owners: set[str] = set()
    for pod in cluster.pods:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == scaling.kind:
            owners.add(f"{pod.metadata.namespace}/{owner.name}")
    for replica_set in cluster.replicasets if scaling.kind == "Deployment" else ():
        owner = replica_set.metadata.controller
        if owner is not None and owner.kind == "Deployment":
            owners.add(f"{replica_set.metadata.namespace}/{owner.name}")
    if f"{scaling.namespace}/{scaling.name}" in owners:
        text = f"{scaling} has no pod to copy; give its manifest with --apply"
    else:
        shown = ", ".join(sorted(owners)[:5]) or "none"
        text = f"there are no pods of {scaling}; there are pods of: {shown}"
    return ConfigError([Problem("--scale", text)])
