"""Families about other pods: spreading away from them, and affinity to them."""

from __future__ import annotations

from tests.oracle.scenarios import objects, profiles, selectors
from tests.oracle.scenarios.case import Case
from tests.oracle.scenarios.dice import Dice, Object


def spread(dice: Dice) -> Case:
    cluster, spaces = peopled(dice, 4, 20)
    for node in cluster["nodes"]:
        objects.add_taints(dice, node, 1 if dice.chance(0.15) else 0)
    namespace = dice.pick(spaces)
    labels = selectors.pod_labels(dice)
    names = objects.names(cluster["nodes"])
    for _ in range(dice.between(0, 60)):
        where = dice.pick((namespace, namespace, *spaces))
        item = objects.pod(
            dice, namespace=where, labels=selectors.pod_labels(dice), on=dice.pick(names)
        )
        cluster["pods"].append(item)
    objects.some_finished(dice, cluster["pods"], 0.08)
    objects.some_terminating(dice, cluster["pods"], 0.1)
    pod = objects.pod(dice, namespace=namespace, labels=labels, priority=dice.pick((0, 0, 100)))
    if dice.chance(0.65):
        pod["spec"]["topologySpreadConstraints"] = selectors.spread_constraints(dice, labels)
    if dice.chance(0.2):
        pod["spec"]["nodeSelector"] = {"disk": "ssd"}
    if dice.chance(0.4):
        pod["spec"]["tolerations"] = [objects.toleration(dice) for _ in range(dice.between(1, 3))]
    if dice.chance(0.2):
        term = {"key": selectors.ZONE, "operator": dice.pick(("In", "NotIn"))}
        terms = [{"matchExpressions": [{**term, "values": dice.some(("z1", "z2", "z3"), 1, 3)}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        pod["spec"]["affinity"] = {"nodeAffinity": required}
    _add_owners(dice, cluster, pod)
    profile = None
    if dice.chance(0.3):
        args = {"PodTopologySpread": profiles.spread_args(dice)}
        profile = {"pluginConfig": profiles.plugin_config(dice, args)}
    return Case(pod, cluster, profile)


def _add_owners(dice: Dice, cluster: Object, pod: Object) -> None:
    """Services and controllers of the pod: default constraints take their selector from them."""
    meta = pod["metadata"]
    labels: Object = meta.get("labels") or {}
    for _ in range(dice.pick((0, 0, 1, 2))):
        selector = {"app": "zz"}
        if labels and dice.chance(0.7):
            selector = {key: labels[key] for key in dice.some(sorted(labels), 1, 2)}
        namespace = dice.pick((meta["namespace"], meta["namespace"], "default"))
        cluster["services"].append(objects.service(dice, namespace, selector))
    if labels and dice.chance(0.4):
        kind = dice.pick(("ReplicaSet", "StatefulSet", "ReplicationController"))
        if dice.chance(0.1):
            objects.owned_by(pod, kind, "deleted-owner", dice.uid())
            return
        owner = objects.owner(dice, kind, meta["namespace"], labels)
        cluster[f"{kind.lower()}s"].append(owner)
        objects.owned_by(pod, kind, owner["metadata"]["name"], owner["metadata"]["uid"])


def peopled(dice: Dice, fewest: int, most: int) -> tuple[Object, list[str]]:
    """Nodes in zones and a few namespaces, whose names are returned too."""
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, dice.between(2, 4))
    cluster["nodes"] = objects.nodes(dice, fewest, most)
    return cluster, objects.names(cluster["namespaces"])


def interpod(dice: Dice) -> Case:
    cluster, spaces = peopled(dice, 4, 16)
    names = objects.names(cluster["nodes"])
    for _ in range(dice.between(0, 50)):
        labels = selectors.pod_labels(dice)
        if dice.chance(0.1):
            labels["block"] = "yes"
        on = dice.pick(names)
        item = objects.pod(dice, namespace=dice.pick(spaces), labels=labels, on=on)
        if dice.chance(0.4):
            affinity = selectors.pod_affinity(dice, labels, spaces)
            if affinity:
                item["spec"]["affinity"] = affinity
        cluster["pods"].append(item)
    objects.some_finished(dice, cluster["pods"], 0.04)
    objects.some_terminating(dice, cluster["pods"], 0.06)
    labels = selectors.pod_labels(dice)
    if dice.chance(0.1):
        labels["app"] = "solo"  # the first of its kind: nobody to be near to, except itself
    priority = dice.pick((0, 0, 100))
    pod = objects.pod(dice, namespace=dice.pick(spaces), labels=labels, priority=priority)
    affinity = selectors.pod_affinity(dice, labels, spaces)
    if affinity:
        pod["spec"]["affinity"] = affinity
    profile = None
    if dice.chance(0.3):
        args = {"InterPodAffinity": profiles.interpod_args(dice)}
        profile = {"pluginConfig": profiles.plugin_config(dice, args)}
    return Case(pod, cluster, profile)
