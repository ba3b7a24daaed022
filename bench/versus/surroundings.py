"""What a cluster has besides the pods that are measured: more pods, namespaces, Services, taints.

Manifests by number, as in `pods`; `workloads` says which of them stand together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from bench.manifests import HOST, ZONE, Object
from bench.versus.pods import affinity, node, node_name, pod

RUNNING: Final = 20  # pods of each node of a cluster in use
NAMESPACES: Final = 100
SERVICES: Final = 300
EXTENDED: Final = 20  # extended resources

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TEAM: Final = "team"  # label of namespaces
_DEDICATED: Final = "dedicated"  # key of a taint


# --- pods that run --------------------------------------------------------------------------------


def existing_pods(pods: int, nodes: int) -> Iterator[Object]:
    """Those of a cluster in use."""
    return running_pods(RUNNING * nodes, nodes)


def running_pods(count: int, nodes: int) -> Iterator[Object]:
    """Pods that were bound before, evenly on all nodes."""
    for i in range(count):
        labels = {"app": f"app-{i % 50}"}
        yield pod(running_name(i), labels, measured=False, nodeName=node_name(i % nodes))


def running_name(i: int) -> str:
    return f"running-{i:06d}"


# --- pods that wait -------------------------------------------------------------------------------


def waiting_in_vain(count: int) -> Iterator[Object]:
    """Pods for nodes that do not exist."""
    for i in range(count):
        yield pod(f"vain-{i:06d}", {"app": "vain"}, measured=False, nodeSelector={"new": "yes"})


def gated_with_affinity(count: int) -> Iterator[Object]:
    gates = [{"name": "example.com/not-yet"}]
    for i in range(count):
        rules = affinity(i)["spec"]["affinity"]
        labels = {"color": "green"}
        yield pod(f"gated-{i:06d}", labels, measured=False, affinity=rules, schedulingGates=gates)


# --- namespaces -----------------------------------------------------------------------------------


def namespaces() -> list[Object]:
    kind = {"apiVersion": "v1", "kind": "Namespace"}
    return [
        {**kind, "metadata": {"name": _namespace(i), "labels": {_TEAM: "blue"}}}
        for i in range(NAMESPACES)
    ]


def apart_across_namespaces(i: int) -> Object:
    """A pod that shares no node with another one of all these namespaces."""
    return _across_namespaces(f"apart-{i:06d}", i, "podAntiAffinity", HOST)


def together_across_namespaces(i: int) -> Object:
    """A pod that wants the zone of the others of all these namespaces."""
    return _across_namespaces(f"together-{i:06d}", i, "podAffinity", ZONE)


def _across_namespaces(name: str, i: int, rule: str, topology: str) -> Object:
    term = {
        "labelSelector": {"matchLabels": {"color": "blue"}},
        "namespaceSelector": {"matchLabels": {_TEAM: "blue"}},
        "topologyKey": topology,
    }
    value = pod(name, {"color": "blue"}, affinity={rule: {_REQUIRED: [term]}})
    value["metadata"]["namespace"] = _namespace(i % NAMESPACES)
    return value


def _namespace(i: int) -> str:
    return f"team-{i:03d}"


# --- Services, taints, secrets, extended resources ------------------------------------------------


def services() -> list[Object]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": f"app-{i}"},
            "spec": {"selector": {"app": f"app-{i}"}, "ports": [{"port": 80}]},
        }
        for i in range(SERVICES)
    ]


def served(i: int) -> Object:
    """A pod of one of the Services, which spreads it by default."""
    return pod(f"served-{i:06d}", {"app": f"app-{i % SERVICES}"})


def partly_tainted_node(i: int) -> Object:
    """Every tenth is kept free of pods without a toleration, in all zones."""
    value = node(i)
    if i // 10 % 10 == 0:
        taint = {"key": _DEDICATED, "value": "yes", "effect": "NoSchedule"}
        value["spec"]["taints"] = [taint]
    return value


def spread_off_taints(i: int) -> Object:
    """A pod whose spread counts only nodes that it tolerates."""
    rule = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"color": "violet"}},
    }
    return pod(f"honor-{i:06d}", {"color": "violet"}, topologySpreadConstraints=[rule])


def with_secret(i: int) -> Object:
    volume = {"name": "secret", "secret": {"secretName": f"secret-{i % 50}", "optional": True}}
    return pod(f"secret-{i:06d}", {"app": f"app-{i % 50}"}, volumes=[volume])


def extended_node(i: int) -> Object:
    value = node(i)
    more = {_extended(number): "100" for number in range(EXTENDED)}
    has = {**value["status"]["capacity"], **more}
    value["status"] |= {"capacity": has, "allocatable": has}
    return value


def extended_pod(i: int) -> Object:
    """A pod that asks for one of each five extended resources."""
    value = pod(f"extended-{i:06d}", {"app": f"app-{i % 50}"})
    container: dict[str, Any] = value["spec"]["containers"][0]
    asked = {_extended((i + step) % EXTENDED): "1" for step in range(0, EXTENDED, 4)}
    requests = {**container["resources"]["requests"], **asked}
    container["resources"] = {"requests": requests, "limits": asked}
    return value


def _extended(number: int) -> str:
    return f"example.com/part-{number:02d}"
