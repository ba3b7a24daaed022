"""Small snapshots for the tests of imagined runs."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from mooring.api import codec, core
from mooring.api.meta import OwnerReference
from mooring.api.policy import PodDisruptionBudget
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.lens.snapshot import KINDS, ClusterState, Snapshot


def snapshot(*objects: Any, **more: Any) -> Snapshot:
    """Of what builders return, and of API objects."""
    found: dict[str, list[Any]] = {field: [] for field in KINDS}
    fields = {kind: field for field, kind in KINDS.items()}
    for one in objects:
        api = one.api if isinstance(one, Pod | Node) else one
        found[fields[type(api)]].append(api)
    cluster: dict[str, Any] = {field: tuple(values) for field, values in found.items()}
    return Snapshot(cluster=ClusterState(**cluster), **more)


def owned(pod: Pod, kind: str, name: str, created: str = "") -> core.Pod:
    """The pod with a controller."""
    owner = OwnerReference(kind=kind, name=name, uid=f"uid-{name}", controller=True)
    meta = structs.replace(
        pod.api.metadata, owner_references=(owner,), creation_timestamp=created or None
    )
    return structs.replace(pod.api, metadata=meta)


def budget(name: str, app: str, allowed: int) -> PodDisruptionBudget:
    raw = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return codec.convert(raw, PodDisruptionBudget)


def strategy(kind: str) -> str:
    """A configuration with a scoring strategy, and without balanced allocation."""
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      multiPoint:
        disabled: [{{name: NodeResourcesBalancedAllocation}}]
    pluginConfig:
      - name: NodeResourcesFit
        args: {{scoringStrategy: {{type: {kind}}}}}
"""
