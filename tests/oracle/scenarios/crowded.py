"""Families about full clusters: preemption, nominated pods, and everything at once."""

from __future__ import annotations

from tests.oracle.scenarios import objects, quantities, selectors
from tests.oracle.scenarios.case import Case
from tests.oracle.scenarios.dice import Dice, Object
from tests.oracle.scenarios.storage import Storage

_LOW = (-100, -10, 0, 0, 1, 5, 10, 50, 100)
_ASKED = ("250m", "500m", "500m", "750m", "1000m", "1000m", "1500m", "2000m")
_TARGET = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def preemption(dice: Dice) -> Case:
    """Nodes full of pods of lower and higher priority, and a pod that wants in."""
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, dice.between(2, 4))
    spaces = objects.names(cluster["namespaces"])
    size = dice.pick((4, 4, 8))
    offered = {"cpu": str(size), "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    # Sometimes every node is filled alike, so that the last criteria decide, or none does.
    alike = dice.chance(0.3)
    similar = alike and dice.chance(0.6)
    plan = [(dice.pick(_ASKED), dice.pick(_LOW), selectors.pod_labels(dice)) for _ in range(12)]
    moments = [dice.start_time() for _ in range(12)]
    for _ in range(dice.between(3, 10)):
        node = objects.node(dice, offered=dict(offered))
        if dice.chance(0.1):
            objects.add_taints(dice, node, 1)
        cluster["nodes"].append(node)
        free = size * 1000
        for number in range(12):
            asked, priority, labels = plan[number]
            if not alike:
                asked, priority = dice.pick(_ASKED), dice.pick(_LOW)
                labels = selectors.pod_labels(dice)
            size_asked = int(asked.removesuffix("m"))
            if size_asked > free or dice.chance(0.0 if alike else 0.04):
                continue
            free -= size_asked
            item = objects.pod(
                dice,
                namespace=spaces[0] if alike else dice.pick(spaces),
                labels=labels,
                priority=priority + (dice.pick((0, 0, 1)) if similar else 0),
                asked={"cpu": asked},
                on=node["metadata"]["name"],
            )
            if alike and not (similar and dice.chance(0.2)):
                item["status"]["startTime"] = moments[number]
            if dice.chance(0.03):
                _add_port_80(item)
            cluster["pods"].append(item)
    _terminate_some(dice, cluster["pods"])
    for _ in range(dice.pick((0, 0, 1, 1, 2, 3))):
        cluster["poddisruptionbudgets"].append(
            objects.budget(dice, dice.pick(spaces), cluster["pods"])
        )
    return Case(_preemptor(dice, cluster, spaces, size), cluster)


def _add_port_80(item: Object) -> None:
    item["spec"]["containers"][0]["ports"] = [
        {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    ]


def _terminate_some(dice: Dice, pods: list[Object]) -> None:
    objects.some_terminating(dice, pods, 0.05)
    for item in pods:
        if "deletionTimestamp" in item["metadata"] and dice.chance(0.5):
            item["status"]["conditions"] = [dict(_TARGET)]


def _preemptor(dice: Dice, cluster: Object, spaces: list[str], size: int) -> Object:
    labels = {**selectors.pod_labels(dice), "app": dice.pick(("big", "big", "web", "db"))}
    share = dice.pick((0.02, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9, 1.0, 1.0, 1.1))
    pod = objects.pod(
        dice,
        namespace=dice.pick(spaces),
        labels=labels,
        priority=dice.pick((10, 50, 100, 100, 100, 1000, 2000000000)),
        asked={"cpu": f"{int(1000 * size * share)}m"},
    )
    spec = pod["spec"]
    names = objects.names(cluster["nodes"])
    if dice.chance(0.25):
        spec["nodeSelector"] = {"disk": "ssd"}
    if dice.chance(0.15):
        spec["tolerations"] = [objects.toleration(dice)]
    if dice.chance(0.06):
        spec["preemptionPolicy"] = "Never"
    if dice.chance(0.1):
        _add_port_80(pod)
    if dice.chance(0.3):
        affinity = selectors.pod_affinity(dice, labels, spaces)
        if affinity:
            spec["affinity"] = affinity
    elif dice.chance(0.05):
        by_name = {"key": "metadata.name", "operator": "In", "values": [dice.pick(names)]}
        terms = {"nodeSelectorTerms": [{"matchFields": [by_name]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["affinity"] = {"nodeAffinity": required}
    if dice.chance(0.12):
        spec["topologySpreadConstraints"] = selectors.spread_constraints(dice, labels, 2)
    if dice.chance(0.12):
        pod["status"]["nominatedNodeName"] = dice.pick(names)
    return pod


def nominated(dice: Dice) -> Case:
    """Pending pods that wait for the room they were promised."""
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, dice.between(2, 4))
    cluster["nodes"] = objects.nodes(dice, 4, 12)
    spaces, names = objects.names(cluster["namespaces"]), objects.names(cluster["nodes"])
    for node in names:
        for _ in range(dice.between(0, 9)):
            asked = {"cpu": dice.pick(("300m", "700m", "1000m", "1500m", "2500m"))}
            if dice.chance(0.5):
                asked["memory"] = f"{dice.between(10, 300)}Mi"
            cluster["pods"].append(_involved(dice, spaces, asked, dice.pick((0, 10, 100)), node))
    for _ in range(dice.between(1, 12)):
        asked = {"cpu": f"{dice.between(100, 6000)}m"}
        priority = dice.pick((-5, 0, 5, 10, 15, 95, 100, 105))
        waiting = _involved(dice, spaces, asked, priority, None)
        waiting["status"]["nominatedNodeName"] = dice.pick((*names, *names, "vanished-node"))
        waiting["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        ]
        cluster["pods"].append(waiting)
    asked = {"cpu": f"{dice.between(100, 6000)}m"}
    pod = _involved(dice, spaces, asked, dice.pick((0, 10, 10, 50, 100, 1000)), None)
    if dice.chance(0.3):
        labels = pod["metadata"].get("labels") or {}
        pod["spec"]["topologySpreadConstraints"] = selectors.spread_constraints(dice, labels, 2)
    if dice.chance(0.12):
        pod["status"]["nominatedNodeName"] = dice.pick(names)
    return Case(pod, cluster)


def _involved(
    dice: Dice, spaces: list[str], asked: Object, priority: int, on: str | None
) -> Object:
    """A pod that may also hold a port or care about its neighbours."""
    labels = selectors.pod_labels(dice)
    namespace = dice.pick(spaces)
    item = objects.pod(
        dice, namespace=namespace, labels=labels, priority=priority, asked=asked, on=on
    )
    if dice.chance(0.2 if on is None else 0.03):
        _add_port_80(item)
    if dice.chance(0.3 if on is None else 0.08):
        affinity = selectors.pod_affinity(dice, labels, spaces)
        if affinity:
            item["spec"]["affinity"] = affinity
    return item


def mixed_case(dice: Dice, fewest: int, most: int) -> Case:
    """A cluster with some of everything and a pod that cares about some of it."""
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, dice.between(2, 4))
    cluster["nodes"] = objects.nodes(dice, fewest, most)
    for node in cluster["nodes"]:
        objects.add_taints(dice, node, 1 if dice.chance(0.15) else 0)
        if dice.chance(0.2):
            for room in ("allocatable", "capacity"):
                node["status"][room]["example.com/gpu"] = dice.pick(("1", "2", "4"))
    spaces, names = objects.names(cluster["namespaces"]), objects.names(cluster["nodes"])
    storage = Storage(dice, cluster)
    storage.set_up()
    for _ in range(dice.between(8, 100)):
        asked = quantities.requests(dice, rare=False)
        item = _involved(dice, spaces, asked, dice.pick(_LOW), dice.pick(names))
        cluster["pods"].append(item)
    objects.some_finished(dice, cluster["pods"], 0.03)
    _terminate_some(dice, cluster["pods"])
    if dice.chance(0.2):
        storage.crowd(spaces, 15)
    for _ in range(dice.pick((0, 0, 1, 2))):
        cluster["poddisruptionbudgets"].append(
            objects.budget(dice, dice.pick(spaces), cluster["pods"])
        )
    pod = _demanding(dice, spaces, names, storage)
    labels = pod["metadata"].get("labels") or {}
    if labels and dice.chance(0.75):
        selector = {key: labels[key] for key in dice.some(sorted(labels), 1, 1)}
        namespace = pod["metadata"]["namespace"]
        cluster["services"].append(objects.service(dice, namespace, selector))
    return Case(pod, cluster)


def _demanding(dice: Dice, spaces: list[str], names: list[str], storage: Storage) -> Object:
    labels = selectors.pod_labels(dice)
    asked: Object = {"cpu": quantities.cpu(dice), "memory": quantities.memory(dice)}
    if dice.chance(0.25):
        # More than most nodes have left: somebody has to go, or nobody can help.
        asked["cpu"] = dice.pick(("3500m", "6", "7500m", "15"))
    if dice.chance(0.15):
        asked["example.com/gpu"] = dice.pick(("1", "2", "8"))
    pod = objects.pod(
        dice,
        namespace=dice.pick(spaces),
        labels=labels,
        priority=dice.pick((0, 0, 100, 1000)),
        asked=asked,
    )
    spec = pod["spec"]
    affinity: Object = selectors.pod_affinity(dice, labels, spaces) if dice.chance(0.35) else {}
    if dice.chance(0.3):
        near = selectors.node_affinity(dice, names)
        if near:
            affinity["nodeAffinity"] = near
    if affinity:
        spec["affinity"] = affinity
    if dice.chance(0.35):
        spec["topologySpreadConstraints"] = selectors.spread_constraints(dice, labels, 2)
    if dice.chance(0.4):
        spec["tolerations"] = [objects.toleration(dice) for _ in range(dice.between(1, 3))]
    if dice.chance(0.2):
        spec["containers"][0]["ports"] = [objects.host_port(dice)]
    if dice.chance(0.2):
        storage.add_volumes(pod, 1, 2)
    if dice.chance(0.15):
        spec["nodeSelector"] = {"disk": "ssd"}
    return pod
