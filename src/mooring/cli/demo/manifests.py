"""What the demo creates, as a user would write it."""

from __future__ import annotations

from typing import Any, Final

from mooring.api.wellknown import ZONE
from mooring.cluster.node_templates import NodeTemplate

CONFIG: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      score:
        enabled:
          - {name: PreferSpot, weight: 3}
"""

MACHINES: Final = (
    NodeTemplate(
        name="spot-{i}", count=3, cpu="4", zones=("a", "b", "c"), labels={"price": "spot"}
    ),
    NodeTemplate(
        name="solid-{i}", count=3, cpu="4", zones=("a", "b", "c"), labels={"price": "full"}
    ),
)
RELIEF: Final = NodeTemplate(name="large-0", cpu="16", memory="64Gi", zones=("a",))

URGENT: Final = "urgent"
BACKGROUND: Final = "background"
PRIORITIES: Final[tuple[dict[str, Any], ...]] = tuple(
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    for name, value in ((URGENT, 1000), (BACKGROUND, -1000))
)


def deployment(
    name: str, replicas: int, cpu: str, spread_over: str = "", priority_class: str = ""
) -> dict[str, Any]:
    """A Deployment; `spread_over` is a topology key to be balanced strictly."""
    labels = {"app": name}
    spec = _pod_spec(cpu, priority_class)
    if spread_over:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": spread_over,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": labels},
            }
        ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def pod(name: str, cpu: str, priority_class: str = "", zone: str = "") -> dict[str, Any]:
    """A pod; with `zone` it goes nowhere else."""
    spec = _pod_spec(cpu, priority_class)
    if zone:
        spec["nodeSelector"] = {ZONE: zone}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def _pod_spec(cpu: str, priority_class: str = "") -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "256Mi"}
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
    spec: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 1}
    if priority_class:
        spec["priorityClassName"] = priority_class
    return spec
