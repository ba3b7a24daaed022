"""The family about room: requests in every place and spelling."""

from __future__ import annotations

from tests.oracle.scenarios import objects, profiles, quantities
from tests.oracle.scenarios.case import Case
from tests.oracle.scenarios.dice import Dice, Object


def resources(dice: Dice) -> Case:
    """Requests in every place and spelling: containers, sidecars, overhead, pod level, resizes."""
    cluster = objects.cluster()
    cluster["namespaces"] = objects.namespaces(dice, 1)
    cluster["nodes"] = objects.nodes(dice, 3, 24, rare=True, bare=True)
    for node in objects.names(cluster["nodes"]):
        for _ in range(dice.between(0, 6)):
            item = _hungry_pod(dice, priority=dice.pick((0, 0, 10, 100)), on=node)
            _maybe_resized(dice, item)
            cluster["pods"].append(item)
    objects.some_finished(dice, cluster["pods"], 0.04)
    pod = _hungry_pod(dice, priority=dice.pick((0, 50, 50, 1000)))
    profile: Object | None = None
    if dice.chance(0.6):
        args = {}
        if dice.chance(0.75):
            args["NodeResourcesFit"] = profiles.fit_args(dice)
        if not args or dice.chance(0.3):
            args["NodeResourcesBalancedAllocation"] = profiles.balanced_args(dice)
        profile = {"pluginConfig": profiles.plugin_config(dice, args)}
    return Case(pod, cluster, profile)


def _hungry_pod(dice: Dice, *, priority: int, on: str | None = None) -> Object:
    item = objects.pod(dice, labels={"app": "x"}, priority=priority, on=on)
    spec = item["spec"]
    spec["containers"] = [
        quantities.container(dice, f"c{number}", quantities.requests(dice, rare=True))
        for number in range(dice.pick((1, 1, 1, 2, 3)))
    ]
    if dice.chance(0.25):
        spec["initContainers"] = []
        for number in range(dice.between(1, 4)):
            init = quantities.container(dice, f"i{number}", quantities.requests(dice, rare=True))
            if dice.chance(0.5):
                init["restartPolicy"] = "Always"
            spec["initContainers"].append(init)
    if dice.chance(0.1):
        spec["runtimeClassName"] = "kata"
        spec["overhead"] = {"cpu": dice.pick(("50m", "0.25", "120m"))}
        if dice.chance(0.8):
            spec["overhead"]["memory"] = dice.pick(("32Mi", "120M", "100Mi"))
    if dice.chance(0.08):
        asked: Object = {"cpu": dice.pick(("1", "2", "0.9", "1500m"))}
        if dice.chance(0.7):
            asked["memory"] = dice.pick(("1Gi", "1e9", "900Mi", "2Gi"))
        spec["resources"] = {"requests": asked}
        if dice.chance(0.4):
            spec["resources"]["limits"] = dict(asked)
    return item


def _maybe_resized(dice: Dice, item: Object) -> None:
    """A pod whose size is being changed: what it asks, was given and has may all differ."""
    if not dice.chance(0.08):
        return
    status = item["status"]
    status["containerStatuses"] = []
    for container in item["spec"]["containers"]:
        if dice.chance(0.15):
            continue
        state: Object = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-21T00:00:00Z"}},
        }
        given: Object = {
            "cpu": f"{dice.between(10, 1500)}m",
            "memory": f"{dice.between(10, 2000)}Mi",
        }
        if dice.chance(0.5):
            state["allocatedResources"] = given
        if dice.chance(0.7):
            actual = dict(given)
            if dice.chance(0.5):
                actual = {"cpu": f"{dice.between(10, 1500)}m"}
            state["resources"] = {"requests": actual}
        status["containerStatuses"].append(state)
    if dice.chance(0.4):
        reason = dice.pick(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
