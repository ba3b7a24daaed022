"""Clusters, nodes, pods and the small objects around them, as an API server stores them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.scenarios import quantities
from tests.oracle.scenarios.dice import Dice, Object
from tests.oracle.scenarios.selectors import HOST, POD_LABELS, REGION, ZONE

KINDS = (
    *("nodes", "pods", "namespaces", "services", "replicationcontrollers", "replicasets"),
    *("statefulsets", "persistentvolumes", "persistentvolumeclaims", "storageclasses"),
    *("csinodes", "csidrivers", "csistoragecapacities", "poddisruptionbudgets"),
    *("deviceclasses", "resourceslices", "resourceclaims"),
)
TAINT_KEYS = ("dedicated", "gpu", "team", "spot", "node.kubernetes.io/not-ready")
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
TAINT_VALUES = ("true", "ml", "infra")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NAMESPACES = ("default", "team-a", "team-b", "prod")
_PORTS = (80, 443, 8080, 9100, 30000, 53)


def cluster() -> Object:
    return {kind: [] for kind in KINDS}


def names(objects: Sequence[Object]) -> list[str]:
    return [item["metadata"]["name"] for item in objects]


def namespaces(dice: Dice, count: int) -> list[Object]:
    made = []
    for name in _NAMESPACES[:count]:
        labels = {"kubernetes.io/metadata.name": name}
        if dice.chance(0.5):
            labels["team"] = dice.pick(("a", "b"))
        if dice.chance(0.5):
            labels["env"] = dice.pick(("prod", "dev"))
        meta = dice.meta(name, labels=labels)
        spec, status = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
        made.append({"metadata": meta, "spec": spec, "status": status})
    return made


def node(
    dice: Dice,
    *,
    zones: int = 3,
    rare: bool = False,
    bare: bool = False,
    offered: Object | None = None,
) -> Object:
    """A ready node; a bare one has no topology beyond its host name."""
    name = dice.node_name()
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": dice.pick(("amd64", "arm64"))}
    if dice.chance(0.95):
        labels[HOST] = name
    if not bare:
        if dice.chance(0.95):
            labels[ZONE] = f"z{dice.between(1, zones)}"
            labels[REGION] = dice.pick(("r1", "r1", "r1", "r2"))
        if dice.chance(0.6):
            labels["rack"] = f"r{dice.between(1, 4)}"
        if dice.chance(0.6):
            labels["disk"] = dice.pick(("ssd", "hdd"))
    room = offered or quantities.allocatable(dice, rare=rare)
    return {
        "metadata": dice.meta(name, labels=labels),
        "spec": {},
        "status": {
            "allocatable": room,
            "capacity": dict(room),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def nodes(dice: Dice, fewest: int, most: int, **kind: bool | int) -> list[Object]:
    zones = dice.between(1, 5)
    return [
        node(dice, zones=zones, rare=bool(kind.get("rare")), bare=bool(kind.get("bare")))
        for _ in range(dice.between(fewest, most))
    ]


def taint(dice: Dice) -> Object:
    made: Object = {"key": dice.pick(TAINT_KEYS), "effect": dice.pick(EFFECTS)}
    if dice.chance(0.75):
        made["value"] = dice.pick(TAINT_VALUES)
    if made["effect"] == "NoExecute":
        made["timeAdded"] = "2026-01-22T00:00:00Z"
    return made


def add_taints(dice: Dice, item: Object, most: int) -> None:
    """Different (key, effect) pairs; a node that is cordoned has the taint of it, mostly."""
    chosen = {(t["key"], t["effect"]): t for t in (taint(dice) for _ in range(most))}
    taints = list(chosen.values())
    if dice.chance(0.13):
        item["spec"]["unschedulable"] = True
        if dice.chance(0.8):
            taints.append({"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule"})
    if taints:
        item["spec"]["taints"] = taints


def toleration(dice: Dice) -> Object:
    made: Object = {}
    if dice.chance(0.95):
        made["key"] = dice.pick((*TAINT_KEYS, UNSCHEDULABLE_TAINT))
        operator = dice.pick(("Exists", "Equal", "Equal", None))
    else:
        operator = "Exists"  # without a key it must be, and tolerates all
    if operator:
        made["operator"] = operator
    if operator != "Exists" and dice.chance(0.85):
        made["value"] = dice.pick(TAINT_VALUES)
    if dice.chance(0.6):
        made["effect"] = dice.pick(EFFECTS)
        if made["effect"] == "NoExecute" and dice.chance(0.5):
            made["tolerationSeconds"] = dice.pick((0, 30, 300))
    return made


def host_port(dice: Dice) -> Object:
    number = dice.pick(_PORTS)
    port: Object = {"containerPort": dice.pick((number, 8080)), "hostPort": number}
    if dice.chance(0.95):
        port["protocol"] = dice.pick(("TCP", "TCP", "UDP", "SCTP"))
    if dice.chance(0.55):
        port["hostIP"] = dice.pick(("127.0.0.1", "10.0.0.1", "0.0.0.0", "::"))
    return port


def pod(
    dice: Dice,
    *,
    namespace: str = "default",
    labels: Object | None = None,
    priority: int = 0,
    asked: Object | None = None,
    on: str | None = None,
) -> Object:
    """A pod of one container. With `on` it runs there, else it is pending."""
    spec: Object = {
        "containers": [
            quantities.container(dice, "c0", {"cpu": "100m"} if asked is None else asked)
        ],
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "priority": priority,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    status: Object = {"phase": "Pending"}
    if on is not None:
        spec["nodeName"] = on
        status = {"phase": "Running", "startTime": dice.start_time()}
    meta = dice.meta(dice.pod_name(), namespace, labels=labels)
    return {"metadata": meta, "spec": spec, "status": status}


def some_finished(dice: Dice, pods: Sequence[Object], share: float) -> None:
    """The scheduler does not see pods that have ended, though they still name a node."""
    for item in pods:
        if dice.chance(share):
            item["status"]["phase"] = dice.pick(("Succeeded", "Failed"))


def some_terminating(dice: Dice, pods: Sequence[Object], share: float) -> None:
    for item in pods:
        if dice.chance(share):
            item["metadata"]["deletionTimestamp"] = dice.moment(25)
            item["metadata"]["deletionGracePeriodSeconds"] = 30


def budget(dice: Dice, namespace: str, pods: Sequence[Object]) -> Object:
    """A disruption budget; a few of its pods may already be counted as disrupted."""
    apps = POD_LABELS["app"]
    several: Object = {"key": "app", "operator": "In", "values": dice.some(apps, 1, 3)}
    selectors: tuple[Object, ...] = (
        {"matchLabels": {"app": dice.pick(apps)}},
        {"matchLabels": {"app": dice.pick(apps)}},
        {"matchExpressions": [several]},
        {},
    )
    selector = dice.pick(selectors)
    spec: Object = {"minAvailable": 1, "selector": selector}
    disrupted = {
        item["metadata"]["name"]: "2026-01-25T00:00:00Z"
        for item in pods
        if item["metadata"]["namespace"] == namespace and dice.chance(0.06)
    }
    status: Object = {
        "observedGeneration": 1,
        "disruptionsAllowed": dice.pick((0, 0, 1, 2, 5)),
        "currentHealthy": 3,
        "desiredHealthy": 1,
        "expectedPods": 3,
    }
    if disrupted:
        status["disruptedPods"] = disrupted
    return {"metadata": dice.meta(dice.name("pdb"), namespace), "spec": spec, "status": status}


def service(dice: Dice, namespace: str, selector: Object) -> Object:
    port = {"port": 80, "protocol": "TCP", "targetPort": 80}
    spec = {"type": "ClusterIP", "ports": [port], "selector": selector}
    return {"metadata": dice.meta(dice.name("svc"), namespace), "spec": spec, "status": {}}


def owner(dice: Dice, kind: str, namespace: str, labels: Object) -> Object:
    """A controller whose pods have these labels; its selector may ask for fewer of them."""
    keys = dice.some(sorted(labels), 1, len(labels))
    matching = {key: labels[key] for key in keys}
    selector: Object = {"matchLabels": matching}
    if kind == "ReplicationController":
        selector = matching
    elif kind == "ReplicaSet" and dice.chance(0.6):
        selector = {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [labels[key]]} for key in keys
            ]
        }
    containers = [{"name": "c0", "image": quantities.IMAGE}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec: Object = {"replicas": 3, "selector": selector, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = "s"
    meta = dice.meta(dice.name(kind.lower()[:4]), namespace, labels=labels)
    return {"metadata": meta, "spec": spec, "status": {"replicas": 3}}


def owned_by(item: Object, kind: str, owner_name: str, uid: str) -> None:
    item["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1" if kind in ("ReplicationController", "Pod") else "apps/v1",
            "kind": kind,
            "name": owner_name,
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
