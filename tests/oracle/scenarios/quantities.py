"""Amounts in the many spellings that Kubernetes accepts, and containers that ask for them."""

from __future__ import annotations

from tests.oracle.scenarios.dice import Dice, Object

EXTENDED = ("example.com/gpu", "nvidia.com/gpu", "vendor.io/fpga")
IMAGE = "registry.k8s.io/pause:3.10"

_CPU = (
    *("0", "10m", "100m", "0.1", "250m", "0.25", "500m", "0.5", "5e-1", "750m", "1", "1e0"),
    *("1.0", "1000m", "1500m", "1.5", "2", "2500m", "3"),
)
_MEMORY = (
    *("0", "64Mi", "123Mi", "256Mi", "0.5Gi", "500M", "129e6", "128974848", "1536Ki", "900Mi"),
    *("1Gi", "1e9", "1.5Gi", "2Gi", "2e9", "3000Mi", "5G", "1048576k", "100000000000m", "1500m"),
)
_STORAGE = ("1Gi", "500M", "2Gi", "10Gi", "1e10", "0", "5G")
_NODE_CPU = ("2", "4", "4000m", "3920m", "7", "8", "7.91", "16", "1e1")
_NODE_MEMORY = ("4Gi", "7846Mi", "8Gi", "8e9", "16Gi", "33554432000", "31.5Gi", "16000000Ki")
_NODE_STORAGE = ("100G", "20Gi", "1e11", "1e10", "47093746742", "0")
_PODS = ("110", "110", "30", "8", "4", "1e1", "0")


def cpu(dice: Dice) -> str:
    return f"{dice.between(1, 2500)}m" if dice.chance(0.5) else dice.pick(_CPU)


def memory(dice: Dice) -> str:
    return f"{dice.between(1, 2048)}Mi" if dice.chance(0.5) else dice.pick(_MEMORY)


def requests(dice: Dice, *, rare: bool) -> Object:
    """What one container asks for; rare resources only if the family is about them."""
    asked: Object = {}
    if dice.chance(0.9):
        asked["cpu"] = cpu(dice)
    if dice.chance(0.9):
        asked["memory"] = memory(dice)
    if rare:
        if dice.chance(0.12):
            asked["ephemeral-storage"] = dice.pick(_STORAGE)
        for name in EXTENDED:
            if dice.chance(0.05):
                asked[name] = dice.pick(("1", "2", "8", "0"))
        if asked and dice.chance(0.04):
            asked["hugepages-2Mi"] = f"{2 * dice.between(1, 32)}Mi"
    return asked


def container(dice: Dice, name: str, asked: Object) -> Object:
    resources: Object = {}
    if asked:
        resources["requests"] = asked
        # Extended resources and huge pages cannot be over-committed.
        limits = {key: asked[key] for key in asked if "/" in key or key.startswith("hugepages")}
        if dice.chance(0.15):
            limits = dict(asked)
        if limits:
            resources["limits"] = limits
    return {"name": name, "image": IMAGE, "resources": resources}


def allocatable(dice: Dice, *, rare: bool) -> Object:
    if not rare:
        return {
            "cpu": dice.pick(("4", "8", "16")),
            "memory": dice.pick(("8Gi", "16Gi", "32Gi")),
            "pods": dice.pick(("110", "110", "110", "12")),
            "ephemeral-storage": "100Gi",
        }
    offered: Object = {
        "cpu": dice.pick(_NODE_CPU),
        "memory": dice.pick(_NODE_MEMORY),
        "pods": dice.pick(_PODS),
    }
    if dice.chance(0.85):
        offered["ephemeral-storage"] = dice.pick(_NODE_STORAGE)
    for name in EXTENDED:
        if dice.chance(0.2):
            offered[name] = dice.pick(("0", "1", "2", "4", "8"))
    if dice.chance(0.13):
        offered["hugepages-2Mi"] = dice.pick(("0", "32Mi", "64Mi", "1Gi"))
    if dice.chance(0.01):
        del offered["memory"]
    return offered
