"""Clusters on which pods are hard to place: full ones, and pods with volumes, as manifests.

`bench.workloads` (in process) and `bench.versus.workloads` (against an API server) both use them.
A shape is pods and the objects that are there before: victims on every node, disruption budgets,
claims and their volumes. Nodes have 32 cores in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bench.manifests import HOST, IMAGE, Object

LOW, HIGH = 0, 1_000  # priorities
VICTIMS = 4  # of each node; a preemptor needs the place of three
BUDGETS = 50
DISK, EBS = "csi.example.com", "kubernetes.io/aws-ebs"
EBS_DRIVER = "ebs.csi.aws.com"
LOCAL = "local"  # storage class
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
MOST_ATTACHED = 39  # volumes per node

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Pods to place, by number, and the objects before them.

    `for_nodes` are made once for each node, by its number and name; `for_pods` for each pod.
    """

    title: str
    pod: Callable[[int], Object]
    at_most: Callable[[int], int] = lambda nodes: nodes  # pods, for so many nodes
    shared: Callable[[], list[Object]] = list
    for_node: Callable[[int, str], list[Object]] = lambda number, name: []
    for_pod: Callable[[int], list[Object]] = lambda i: []
    binds_claims: bool = False  # whether claims are bound when their pods are

    def before(self, nodes: int, pods: int, node_name: Callable[[int], str]) -> Iterator[Object]:
        """All objects that are there before the pods."""
        yield from self.shared()
        for number in range(nodes):
            yield from self.for_node(number, node_name(number))
        for i in range(pods):
            yield from self.for_pod(i)


# --- preemption ----------------------------------------------------------------------------------


def preemptor(i: int) -> Object:
    """A pod that fits on no node before three others leave it."""
    return _pod(f"urgent-{i:06d}", {"app": "urgent"}, "24", priority=HIGH)


def lonely_preemptor(i: int) -> Object:
    """A preemptor that no node may have twice."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "urgent"}}}
    rules = {"podAntiAffinity": {_REQUIRED: [term]}}
    return _pod(f"urgent-{i:06d}", {"app": "urgent"}, "24", priority=HIGH, affinity=rules)


def spread_preemptor(i: int) -> Object:
    """A preemptor whose like are spread evenly over the nodes."""
    selector = {"matchLabels": {"app": "urgent"}}
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    rules = [{**rule, "labelSelector": selector}]
    labels = {"app": "urgent"}
    return _pod(f"urgent-{i:06d}", labels, "24", priority=HIGH, topologySpreadConstraints=rules)


def victims(number: int, name: str) -> list[Object]:
    """The pods of a node that leave too little room for a preemptor."""
    return [
        _pod(f"victim-{i:06d}", {"app": f"app-{i % BUDGETS}"}, "7200m", priority=LOW, nodeName=name)
        for i in range(VICTIMS * number, VICTIMS * (number + 1))
    ]


def budgets() -> list[Object]:
    """One for the pods of each app label of victims; a thousand evictions are allowed."""
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"app-{number}"},
            "spec": {
                "minAvailable": 1,
                "selector": {"matchLabels": {"app": f"app-{number}"}},
            },
            "status": {
                "disruptionsAllowed": 1_000,
                "currentHealthy": 1_001,
                "desiredHealthy": 1,
                "expectedPods": 1_001,
                "observedGeneration": 1,
            },
        }
        for number in range(BUDGETS)
    ]


# --- volumes -------------------------------------------------------------------------------------


def claimant(i: int) -> Object:
    """A pod with a claim of its own."""
    source = {"persistentVolumeClaim": {"claimName": f"claim-{i:06d}"}}
    return _pod(f"claimant-{i:06d}", {"app": "db"}, "100m", volumes=[{"name": "data", **source}])


def csi_node(driver: str, migrated: str = "") -> Callable[[int, str], list[Object]]:
    """The CSINode of each node, for one driver; `migrated` is a plugin that it replaces."""

    def make(number: int, name: str) -> list[Object]:
        known = {"name": driver, "nodeID": name, "topologyKeys": []}
        meta: Object = {"name": name}
        if migrated:
            # As a kubelet lists them; the one that counts is among others.
            others = ("kubernetes.io/azure-disk", "kubernetes.io/cinder", "kubernetes.io/gce-pd")
            meta["annotations"] = {MIGRATED_PLUGINS: ",".join((migrated, *others))}
        return [
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": meta,
                "spec": {"drivers": [{**known, "allocatable": {"count": MOST_ATTACHED}}]},
            }
        ]

    return make


def bound_claim(source: Callable[[int], Object]) -> Callable[[int], list[Object]]:
    """A claim and the volume that it is bound to, from such a source."""

    def make(i: int) -> list[Object]:
        claim, volume = _claim(i), _volume(i, source(i))
        claim["metadata"]["annotations"] = {BIND_COMPLETED: "yes"}
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        volume["status"] = {"phase": "Bound"}
        return [volume, claim]

    return make


def free_claim(i: int) -> list[Object]:
    """A claim that waits until its pod has a node."""
    claim = _claim(i)
    claim["spec"]["storageClassName"] = LOCAL
    return [claim]


def local_class() -> list[Object]:
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": LOCAL},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    ]


def local_volume(number: int, name: str) -> list[Object]:
    """A disk of one node."""
    volume = _volume(number, {"local": {"path": "/disk"}})
    here = {"key": HOST, "operator": "In", "values": [name]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [here]}]}
    volume["spec"] |= {"storageClassName": LOCAL, "nodeAffinity": {"required": terms}}
    volume["status"] = {"phase": "Available"}
    return [volume]


def _csi(i: int) -> Object:
    return {"csi": {"driver": DISK, "volumeHandle": f"disk-{i:06d}"}}


def _ebs(i: int) -> Object:
    return {"awsElasticBlockStore": {"volumeID": f"vol-{i:06d}"}}


def _claim(i: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"claim-{i:06d}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        },
    }


def _volume(i: int, source: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{i:06d}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            **source,
        },
    }


def _pod(name: str, labels: dict[str, str], cpu: str, **spec: Any) -> Object:
    requests = {"cpu": cpu, "memory": "200Mi"}
    container = {"name": "main", "image": IMAGE, "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        # Without kubelets a pod with a grace period would be terminating forever.
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


SHAPES: dict[str, Shape] = {
    "preemptors": Shape(title="preemption on a full cluster", pod=preemptor, for_node=victims),
    "preemptors-budgets": Shape(
        title="preemption, 50 disruption budgets", pod=preemptor, for_node=victims, shared=budgets
    ),
    "preemptors-anti-affinity": Shape(
        title="preemption, required anti-affinity (host)", pod=lonely_preemptor, for_node=victims
    ),
    "preemptors-spread": Shape(
        title="preemption, hard spread (host)", pod=spread_preemptor, for_node=victims
    ),
    "preemptors-both": Shape(
        title="preemption, budgets and required anti-affinity",
        pod=lonely_preemptor,
        for_node=victims,
        shared=budgets,
    ),
    "csi-volumes": Shape(
        title="a bound CSI volume each",
        pod=claimant,
        for_node=csi_node(DISK),
        for_pod=bound_claim(_csi),
        at_most=lambda nodes: nodes * MOST_ATTACHED,
    ),
    "in-tree-volumes": Shape(
        title="a bound in-tree volume each",
        pod=claimant,
        for_node=csi_node(EBS_DRIVER),
        for_pod=bound_claim(_ebs),
        at_most=lambda nodes: nodes * MOST_ATTACHED,
    ),
    "migrated-volumes": Shape(
        title="a bound in-tree volume each, migrated to CSI",
        pod=claimant,
        for_node=csi_node(EBS_DRIVER, migrated=EBS),
        for_pod=bound_claim(_ebs),
        at_most=lambda nodes: nodes * MOST_ATTACHED,
    ),
    "local-volumes": Shape(
        title="a local volume each, WaitForFirstConsumer",
        pod=claimant,
        shared=local_class,
        for_node=local_volume,
        for_pod=free_claim,
        binds_claims=True,
    ),
}
