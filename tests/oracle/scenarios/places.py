"""Families about what a node is like: its labels, taints, ports, images and name."""

from __future__ import annotations

from tests.oracle.scenarios import objects, profiles, quantities, selectors
from tests.oracle.scenarios.case import Case
from tests.oracle.scenarios.dice import Dice, Object


def nodeaffinity(dice: Dice) -> Case:
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, 1)
    cluster["nodes"] = objects.nodes(dice, 4, 25, bare=True)
    for node in cluster["nodes"]:
        for key, values in selectors.NODE_LABELS.items():
            if dice.chance(0.7):
                # "-1" is no legal label value: only selectors ask for it.
                legal = [value for value in values if value != "-1"]
                node["metadata"]["labels"][key] = dice.pick(legal)
    _populate(dice, cluster, 1)
    names = objects.names(cluster["nodes"])
    pod = objects.pod(dice, asked={"cpu": "300m", "memory": "200Mi"})
    affinity = selectors.node_affinity(dice, names, odd=True)
    if affinity:
        pod["spec"]["affinity"] = {"nodeAffinity": affinity}
    if dice.chance(0.25):
        keys = dice.some(("tier", "disk", selectors.ZONE), 1, 2)
        chosen = {key: dice.pick(selectors.NODE_LABELS[key]) for key in keys}
        pod["spec"]["nodeSelector"] = chosen
    profile = None
    if dice.chance(0.25):
        added = {"NodeAffinity": profiles.affinity_args(dice, names)}
        profile = {"pluginConfig": profiles.plugin_config(dice, added)}
    return Case(pod, cluster, profile)


def _populate(dice: Dice, cluster: Object, most: int) -> None:
    """A few pods without anything special, so that nodes are not all equally full."""
    for node in objects.names(cluster["nodes"]):
        for _ in range(dice.between(0, most)):
            asked = {"cpu": f"{dice.between(50, 900)}m", "memory": "256Mi"}
            cluster["pods"].append(objects.pod(dice, asked=asked, on=node))


def taints(dice: Dice) -> Case:
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, 1)
    cluster["nodes"] = objects.nodes(dice, 3, 25, bare=True)
    for node in cluster["nodes"]:
        objects.add_taints(dice, node, dice.between(0, 4))
    _populate(dice, cluster, 2)
    pod = objects.pod(dice, asked={"cpu": "250m", "memory": "100Mi"})
    tolerations = [objects.toleration(dice) for _ in range(dice.between(0, 6))]
    if dice.chance(0.6):
        usual = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        tolerations += [
            {"key": f"node.kubernetes.io/{key}", **usual} for key in ("not-ready", "unreachable")
        ]
    if tolerations:
        pod["spec"]["tolerations"] = tolerations
    return Case(pod, cluster)


def ports(dice: Dice) -> Case:
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, 1)
    crowded = dice.chance(0.4)
    cluster["nodes"] = objects.nodes(dice, 3, 5 if crowded else 18, bare=True)
    for node in objects.names(cluster["nodes"]):
        for _ in range(dice.between(8, 18) if crowded else dice.between(0, 6)):
            item = objects.pod(dice, priority=dice.pick((0, 0, 1000)), on=node)
            _add_ports(dice, item)
            cluster["pods"].append(item)
    objects.some_finished(dice, cluster["pods"], 0.1)
    pod = objects.pod(dice, asked={"cpu": "200m"}, priority=dice.pick((0, 0, 500, 2000)))
    _add_ports(dice, pod)
    return Case(pod, cluster)


def _add_ports(dice: Dice, item: Object) -> None:
    spec = item["spec"]
    if dice.chance(0.75):
        wanted = [objects.host_port(dice) for _ in range(dice.pick((1, 1, 2, 3)))]
        if dice.chance(0.1):
            wanted.append({"containerPort": 9999, "protocol": "TCP"})
        spec["containers"][0]["ports"] = wanted
    if dice.chance(0.15):
        side = quantities.container(dice, "side", {"cpu": "10m"})
        side["ports"] = [objects.host_port(dice)]
        if dice.chance(0.6):
            side["restartPolicy"] = "Always"
        spec["initContainers"] = [side]
    if dice.chance(0.1):
        spec["hostNetwork"] = True


_MIB = 1 << 20
_IMAGES = {  # repository -> bytes
    "nginx": 60 * _MIB,
    "busybox": 700 << 10,
    "registry.k8s.io/pause": 0,
    "ghcr.io/acme/app": 250 * _MIB,
    "quay.io/x/y": 1000 * _MIB,
    "gcr.io/p/model": 5000 * _MIB,
    "localhost:5000/tool": 22 * _MIB,
    "docker.io/library/redis": 900 * _MIB,
}
_TAGS = ("latest", "1.2", "v3", "3.10")


def images(dice: Dice) -> Case:
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, 1)
    cluster["nodes"] = objects.nodes(dice, 3, 20, bare=True)
    for node in cluster["nodes"]:
        add_images(dice, node, dice.between(0, 7))
    _populate(dice, cluster, 2)
    pod = objects.pod(dice, asked={"cpu": "100m"})
    spec = pod["spec"]
    spec["containers"] = [
        {**quantities.container(dice, f"c{number}", {"cpu": "50m"}), "image": _reference(dice)}
        for number in range(dice.between(1, 4))
    ]
    if dice.chance(0.4):
        init = quantities.container(dice, "i0", {})
        spec["initContainers"] = [{**init, "image": _reference(dice)}]
    if dice.chance(0.07):
        source = {"reference": _reference(dice), "pullPolicy": "IfNotPresent"}
        spec["volumes"] = [{"name": "im", "image": source}]
    return Case(pod, cluster)


def add_images(dice: Dice, node: Object, most: int) -> None:
    held = []
    for repository in dice.some(sorted(_IMAGES), 0, most):
        tag = dice.pick(_TAGS)
        known_as = [f"{repository}:{tag}"]
        if dice.chance(0.5):
            known_as.append(f"{repository}@sha256:{dice.word(12)}")
        if dice.chance(0.1):
            known_as.append(f"{repository}:{dice.pick(_TAGS)}")
        size = _IMAGES[repository]
        if dice.chance(0.1):
            size = size * 9 // 10  # the same tag pushed again, or another platform
        held.append({"names": known_as, "sizeBytes": size})
    if held:
        node["status"]["images"] = held


def _reference(dice: Dice) -> str:
    if dice.chance(0.08):
        return "example.org/unknown:1"
    repository = dice.pick(sorted(_IMAGES))
    return repository if dice.chance(0.2) else f"{repository}:{dice.pick(_TAGS)}"


_FEATURES = (
    *("UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits"),
    *("InPlacePodLevelResourcesVerticalScaling", "ExtendWebSocketsToKubelet", "SomethingUnknown"),
)


def misc(dice: Dice) -> Case:
    """Gates, node names, cordons, tiny nodes, features that nodes declare, no nodes at all."""
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, 1)
    if dice.chance(0.98):
        cluster["nodes"] = objects.nodes(dice, 1, 14, bare=True)
    declaring = dice.chance(0.2)
    for node in cluster["nodes"]:
        if dice.chance(0.1):
            node["spec"]["unschedulable"] = True
        if dice.chance(0.1):
            for room in ("allocatable", "capacity"):
                node["status"][room]["pods"] = dice.pick(("1", "2", "3"))
        if declaring:
            node["status"]["declaredFeatures"] = sorted(dice.some(_FEATURES, 0, 3))
    _populate(dice, cluster, 2)
    for item in cluster["pods"]:
        item["spec"]["priority"] = dice.pick((0, -5, 10))
        if dice.chance(0.02):
            item["spec"]["nodeName"] = "vanished-node"
    objects.some_finished(dice, cluster["pods"], 0.05)
    pod = objects.pod(
        dice,
        priority=dice.pick((0, 0, 5, 100)),
        asked=dice.pick(({}, {"cpu": dice.pick(("100m", "500m", "1500m")), "memory": "100Mi"})),
    )
    _oddities(dice, pod, objects.names(cluster["nodes"]))
    return Case(pod, cluster)


def _oddities(dice: Dice, pod: Object, nodes: list[str]) -> None:
    spec = pod["spec"]
    if dice.chance(0.08):
        gates = dice.some(("example.com/a", "example.com/b", "example.com/c"), 1, 2)
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    if dice.chance(0.13):
        spec["nodeName"] = dice.pick((*nodes, "nowhere"))
    if nodes and dice.chance(0.16):
        pod["status"]["nominatedNodeName"] = dice.pick((*nodes, "nowhere"))
    if dice.chance(0.1):
        rule: Object = {
            "action": dice.pick(("RestartAllContainers", "RestartAllContainers", "Restart")),
            "exitCodes": {"operator": "In", "values": [42]},
        }
        spec["containers"][0]["restartPolicy"] = "Never"
        spec["containers"][0]["restartPolicyRules"] = [rule]
    if dice.chance(0.1):
        spec["hostNetwork"] = True
        spec["hostUsers"] = False
    if dice.chance(0.1):
        spec["tolerations"] = [
            {"key": objects.UNSCHEDULABLE_TAINT, "operator": "Exists"}
            if dice.chance(0.7)
            else objects.toleration(dice)
        ]
