"""What the demo's cluster consists of."""

from __future__ import annotations

from typing import Any

from mooring.api import codec, core

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled:
          - name: tonodename-scoring-plugin
"""


def nodes() -> list[core.Node]:
    """Three zones of three workers each, two GPU nodes, and one that is cordoned."""
    workers = [
        _node(f"piworknode{number:03}", "abc"[number % 3], cpu=6 + 2 * (number % 3), memory=16)
        for number in range(1, 10)
    ]
    gpus = [
        _node(f"gpu-{zone}1", zone, cpu=16, memory=64, gpus=2, taint="nvidia.com/gpu")
        for zone in "ab"
    ]
    return [*workers, *gpus, _node("piworknode010", "c", cpu=8, memory=16, cordoned=True)]


def relief() -> core.Node:
    """The node that lets the pods in that were too big."""
    return _node("bigworknode", "a", cpu=64, memory=256)


def pods() -> list[core.Pod]:
    """A web rollout, a batch, GPU jobs, and pods that must wait for four different reasons."""
    return [
        *(_pod(f"web-{i:02}", cpu="500m", memory="512Mi") for i in range(24)),
        *(_pod(f"batch-{i}", cpu="2", memory="1Gi") for i in range(6)),
        *(_pod(f"train-{i}", cpu="4", memory="8Gi", gpus=1) for i in range(3)),
        _pod("zone-b-only", cpu="1", node_selector={"topology.kubernetes.io/zone": "b"}),
        _pod("analytics", cpu="40", memory="64Gi"),
        _pod("moon-base", cpu="1", node_selector={"topology.kubernetes.io/zone": "moon"}),
        _pod("many-gpus", cpu="1", gpus=8),
        _pod("not-yet", cpu="1", gates=["example.com/quota"]),
    ]


def _node(
    name: str,
    zone: str,
    *,
    cpu: int,
    memory: int,
    gpus: int = 0,
    taint: str = "",
    cordoned: bool = False,
) -> core.Node:
    offered: dict[str, Any] = {"cpu": cpu, "memory": f"{memory}Gi", "pods": 110}
    if gpus:
        offered["nvidia.com/gpu"] = gpus
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}
    taints = [{"key": taint, "value": "present", "effect": "NoSchedule"}] if taint else []
    raw = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": cordoned},
        "status": {"allocatable": offered},
    }
    return codec.convert(raw, core.Node)


def _pod(
    name: str,
    *,
    cpu: str,
    memory: str = "256Mi",
    gpus: int = 0,
    node_selector: dict[str, str] | None = None,
    gates: list[str] | None = None,
) -> core.Pod:
    requests: dict[str, Any] = {"cpu": cpu, "memory": memory}
    if gpus:
        requests["nvidia.com/gpu"] = gpus
    container = {"name": "main", "image": "app", "resources": {"requests": requests}}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}] if gpus else []
    raw = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [container],
            "tolerations": tolerations,
            "nodeSelector": node_selector or {},
            "schedulingGates": [{"name": gate} for gate in gates or []],
        },
    }
    return codec.convert(raw, core.Pod)
