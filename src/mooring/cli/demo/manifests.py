"""What the demo creates, as a user would write it."""

from __future__ import annotations

from typing import Any, Final

from mooring.simulator.machines import MachineTemplate

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
    MachineTemplate(
        name="spot-{i}", count=3, cpu="4", zones=("a", "b", "c"), labels={"price": "spot"}
    ),
    MachineTemplate(
        name="solid-{i}", count=3, cpu="4", zones=("a", "b", "c"), labels={"price": "full"}
    ),
)
RELIEF: Final = MachineTemplate(name="large-0", cpu="16", memory="64Gi", zones=("a",))

PRIORITY: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}


def deployment(name: str, replicas: int, cpu: str, spread_over: str = "") -> dict[str, Any]:
    """A Deployment; `spread_over` is a topology key to be balanced strictly."""
    labels = {"app": name}
    spec = _pod_spec(cpu)
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


def pod(name: str, cpu: str, priority_class: str = "") -> dict[str, Any]:
    spec = _pod_spec(cpu)
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def _pod_spec(cpu: str) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "256Mi"}
    container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
    return {"containers": [container], "terminationGracePeriodSeconds": 1}
