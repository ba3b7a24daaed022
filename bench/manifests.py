"""Pods as the controllers of Kubernetes make them, as dictionaries that an API server accepts.

`bench.workloads` (in process) and `bench.versus.workloads` (against an API server) both use them.
A manifest has the labels, annotations, owner and host name that the controller sets. The owners
need not exist. The finalizer of the Job controller is left out: without that controller, pods with
the finalizer could not be deleted.
"""

from __future__ import annotations

import random
import uuid
import zlib
from functools import lru_cache
from typing import Any

Object = dict[str, Any]

IMAGE = "registry.example/pause:3.10"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
INDEX = "batch.kubernetes.io/job-completion-index"
POD_INDEX = "apps.kubernetes.io/pod-index"

STATEFULSETS = 10  # in `statefulset_anti_affinity`, so that ten pods share each node if need be
CONTROLLERS = 300  # in `realistic_mix`
SHAPES = (  # cpu and memory requests in `realistic_mix`
    ("100m", "200Mi"),
    ("250m", "256Mi"),
    ("500m", "512Mi"),
    ("500m", "1Gi"),
    ("1", "1Gi"),
    ("2", "4Gi"),
)

_AMOUNTS = 3_001  # a prime, so that the steps below reach every amount before one comes again
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"  # of the names that Kubernetes generates
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# --- workloads -----------------------------------------------------------------------------------


def indexed_job(i: int) -> Object:
    """A pod of one Indexed Job; every pod has its completion index as a label."""
    return job_pod("train", i)


def statefulset(i: int) -> Object:
    """A pod of one StatefulSet; every pod has its name and index as labels."""
    return statefulset_pod("db", i)


def statefulset_anti_affinity(i: int) -> Object:
    """A pod of one of ten StatefulSets, no two pods of which may share a node."""
    index, number = divmod(i, STATEFULSETS)
    name = f"db-{number}"
    rules = {"podAntiAffinity": {_REQUIRED: [_term(name)]}}
    return statefulset_pod(name, index, affinity=rules)


def distinct_requests(i: int) -> tuple[str, str]:
    """An amount of cpu and one of memory that no other of 3,001 pods asks for."""
    return f"{100 + i * 1_103 % _AMOUNTS}m", f"{100 + i * 1_787 % _AMOUNTS}Mi"


def realistic_mix(i: int) -> Object:
    """A pod of one of 300 controllers: Deployments, Indexed Jobs and StatefulSets, 100 each.

    Each 300 pods have one of every controller, in random order. Of the Deployments and
    StatefulSets a fifth has a zone spread (hard or preferred), a fifth a preferred host
    anti-affinity; of all controllers a tenth has a node affinity, a tenth a toleration.
    """
    index, place = divmod(i, CONTROLLERS)
    number = _order(index)[place]
    variant, kind = divmod(number, 3)
    make = (deployment_pod, job_pod, statefulset_pod)[kind]
    name = f"app-{number}"
    rules = _rules(name, variant % 10, is_job=make is job_pod)
    return make(name, index, SHAPES[variant % len(SHAPES)], **rules)


@lru_cache(maxsize=4)
def _order(turn: int) -> list[int]:
    return random.Random(turn).sample(range(CONTROLLERS), CONTROLLERS)


def _rules(app: str, variant: int, *, is_job: bool) -> Object:
    """The fields of a pod's spec that restrict or rank its nodes."""
    if variant == 8:
        zones = {"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
        return {"affinity": {"nodeAffinity": {_REQUIRED: terms}}}
    if variant == 9:
        toleration = {"key": "dedicated", "operator": "Equal", "value": "batch"}
        return {"tolerations": [{**toleration, "effect": "NoSchedule"}]}
    if is_job:
        return {}
    if variant in (0, 1):
        otherwise = "DoNotSchedule" if variant == 0 else "ScheduleAnyway"
        return {"topologySpreadConstraints": [zone_spread(app, otherwise)]}
    if variant in (2, 3):
        wish = {"weight": 100, "podAffinityTerm": _term(app)}
        return {"affinity": {"podAntiAffinity": {_PREFERRED: [wish]}}}
    return {}


def zone_spread(app: str, otherwise: str) -> Object:
    """A spread over the zones of the pods with this app label."""
    selector = {"matchLabels": {"app": app}}
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": otherwise}
    return {**rule, "labelSelector": selector}


def _term(app: str) -> Object:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}


# --- controllers ---------------------------------------------------------------------------------


def deployment_pod(
    app: str, index: int, requests: tuple[str, str] = SHAPES[0], **spec: Any
) -> Object:
    """A pod as the ReplicaSet of a Deployment makes it."""
    template = _hash(app)
    replicaset = f"{app}-{template}"
    meta = {
        "name": f"{replicaset}-{_suffix(index)}",
        "generateName": f"{replicaset}-",
        "labels": {"app": app, "pod-template-hash": template},
        "ownerReferences": [_owner("apps/v1", "ReplicaSet", replicaset)],
    }
    return _pod(meta, _container(requests), spec)


def job_pod(job: str, index: int, requests: tuple[str, str] = SHAPES[0], **spec: Any) -> Object:
    """A pod as an Indexed Job makes it."""
    owner = _owner("batch/v1", "Job", job)
    mine = {INDEX: str(index)}
    names = {"job-name": job, "controller-uid": owner["uid"]}
    full_names = {f"batch.kubernetes.io/{key}": value for key, value in names.items()}
    meta = {
        "name": f"{job}-{index}-{_suffix(index)}",
        "generateName": f"{job}-{index}-",
        "labels": {"app": job, **names, **full_names, **mine},
        "annotations": mine,
        "ownerReferences": [owner],
    }
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    container = _container(requests)
    container["env"] = [{"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]
    own = {"hostname": f"{job}-{index}", "restartPolicy": "Never"}
    return _pod(meta, container, {**own, **spec})


def statefulset_pod(
    app: str, index: int, requests: tuple[str, str] = SHAPES[0], **spec: Any
) -> Object:
    """A pod as a StatefulSet makes it."""
    name = f"{app}-{index}"
    labels = {
        "app": app,
        POD_INDEX: str(index),
        "controller-revision-hash": f"{app}-{_hash(app)}",
        "statefulset.kubernetes.io/pod-name": name,
    }
    meta = {
        "name": name,
        "generateName": f"{app}-",
        "labels": labels,
        "ownerReferences": [_owner("apps/v1", "StatefulSet", app)],
    }
    return _pod(meta, _container(requests), {"hostname": name, "subdomain": app, **spec})


def _pod(meta: Object, container: Object, spec: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **spec},
    }


def _container(requests: tuple[str, str]) -> Object:
    cpu, memory = requests
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {"name": "main", "image": IMAGE, "resources": resources}


def _owner(version: str, kind: str, name: str) -> Object:
    return {
        "apiVersion": version,
        "kind": kind,
        "name": name,
        "uid": _uid(f"{kind}/{name}"),
        "controller": True,
        "blockOwnerDeletion": True,
    }


@lru_cache(maxsize=1024)
def _uid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


def _suffix(number: int) -> str:
    """Five letters as in a generated name, the same ones for the same number."""
    letters = ""
    for _ in range(5):
        number, last = divmod(number, len(_LETTERS))
        letters = _LETTERS[last] + letters
    return letters


def _hash(name: str) -> str:
    """The hash that a controller would give to its pod template."""
    return _suffix(zlib.crc32(name.encode()))
