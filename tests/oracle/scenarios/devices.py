"""Scenarios of dynamic resource allocation: pools of every kind, claims in every state.

Leaves out what kube-scheduler itself decides by chance: slices of a pool that disagree on their
number, and several claims of which any may be deallocated.
"""

from __future__ import annotations

from typing import Any

from tests.oracle.scenarios import objects, profiles
from tests.oracle.scenarios.case import Case
from tests.oracle.scenarios.dice import Dice, Object

GPU, NIC = "gpu.example.com", "nic.example.com"
MODELS = ("A100", "H100", "T4")
CLASSES = {
    "gpu": [f'device.driver == "{GPU}"'],
    "nic": [f'device.driver == "{NIC}"'],
    "any": [],
    "fast": [f'device.driver == "{GPU}"', f'device.attributes["{GPU}"].model == "H100"'],
}
# The second of a pair may fail at run time, the third does not compile.
SELECTORS = (
    f'device.attributes["{GPU}"].model == "A100"',
    f'device.attributes["{GPU}"].?model.orValue("none") != "T4"',
    f'"numa" in device.attributes["{GPU}"] && device.attributes["{GPU}"].numa == 0',
    f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0',
    "!device.allowMultipleAllocations",
    f'cel.bind(g, device.attributes["{GPU}"], has(g.ecc) && g.ecc)',
    f'device.attributes["{GPU}"].model.matches("^[AH]1")',
    f'semver("535.0.0").isLessThan(device.attributes["{GPU}"].?version.orValue(semver("1.0.0")))',
    f'["A100", "T4"].exists(m, m == device.attributes["{GPU}"].?model.orValue("x"))',
    f'size(device.attributes["{GPU}"]) > 2',
    '"%s, %d, %x, %.2f %s".format([device.driver, dyn(12), dyn(255), dyn(1.5), dyn([1, 2])])'
    '.endsWith(", 12, ff, 1.50 [1, 2]")',
    f'!format.dns1123Subdomain().validate(device.driver).hasValue() || device.driver == "{NIC}"',
    f'format.named("labelValue").value().validate(device.attributes["{GPU}"].?model.orValue("-"))'
    ".hasValue() == false",
    f'"{NIC}" in device.attributes || device.driver.endsWith("example.com")',
    f'device.attributes["{NIC}"].?speed.orValue(0) >= 25 || device.driver == "{GPU}"',
)
BROKEN = ("device.nothing", "device.driver", '1 + "a" == 2', f'device.attributes["{GPU}"].no == 1')
EXTENDED = ("example.com/gpu", "deviceclass.resource.kubernetes.io/nic", "other.com/thing")


def dynamicresources(dice: Dice) -> Case:
    return _Devices(dice).case()


class _Devices:
    """One scenario."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._cluster = objects.cluster()
        self._devices: list[tuple[str, Object, Object]] = []  # node or "", slice, device
        self._has_counters = dice.chance(0.25)
        self._has_capacity = dice.chance(0.3)
        self._breaks = dice.chance(0.12)

    def case(self) -> Case:
        dice = self._dice
        self._cluster["namespaces"] = objects.namespaces(dice, 1)
        self._cluster["nodes"] = objects.nodes(dice, 2, 6)
        names = objects.names(self._cluster["nodes"])
        for name, expressions in CLASSES.items():
            self._add_class(name, expressions)
        for name in names:
            if dice.chance(0.85):
                self._add_pool(GPU, name, {"nodeName": name}, name)
            if dice.chance(0.4):
                self._add_pool(NIC, name, {"nodeName": name}, name)
        if dice.chance(0.4):
            self._add_shared_pool(names)
        pod = objects.pod(dice, namespace="default", priority=dice.pick((0, 10)))
        in_flight = self._hold_devices()
        self._give_claims(pod, names)
        if dice.chance(0.25):
            self._ask_for_extended_resources(pod)
        return Case(pod, self._cluster, self._profile(), in_flight)

    def _profile(self) -> Object | None:
        """Sometimes extended resources count in the score of NodeResourcesFit."""
        dice = self._dice
        if not dice.chance(0.3):
            return None
        scored = [{"name": "cpu", "weight": 1}, {"name": EXTENDED[0], "weight": 3}]
        strategy = {"type": dice.pick(("LeastAllocated", "MostAllocated")), "resources": scored}
        # Not in those of NodeResourcesBalancedAllocation: kube-scheduler 1.36 dies of it.
        args = {"NodeResourcesFit": {"scoringStrategy": strategy}}
        return {"pluginConfig": profiles.plugin_config(dice, args)}

    # --- classes and slices ----------------------------------------------------------------------

    def _add_class(self, name: str, expressions: list[str]) -> None:
        dice = self._dice
        spec: Object = {"selectors": [{"cel": {"expression": one}} for one in expressions]}
        if dice.chance(0.3):
            opaque = {"driver": GPU, "parameters": {"mode": dice.word()}}
            spec["config"] = [{"opaque": opaque}]
        if name == "gpu" and dice.chance(0.5):
            spec["extendedResourceName"] = "example.com/gpu"
        self._cluster["deviceclasses"].append({"metadata": dice.meta(name), "spec": spec})

    def _add_pool(self, driver: str, pool: str, where: Object, node: str) -> None:
        dice = self._dice
        has_counters = self._has_counters and driver == GPU and dice.chance(0.7)
        parts = dice.pick((1, 1, 2))
        generation = dice.pick((1, 1, 2))
        count = parts + has_counters + (dice.pick((0,) * 9 + (1,)))
        known = {"name": pool, "generation": generation, "resourceSliceCount": count}
        spec = {"driver": driver, "pool": known, **where}
        binds = dice.chance(0.12)
        number = 0
        for part in range(parts):
            devices = []
            for _ in range(dice.between(2, 5)):
                device = self._device(driver, number, has_counters)
                if binds and dice.chance(0.6):
                    device["bindingConditions"] = ["ready"]
                    device["bindingFailureConditions"] = ["broken"]
                    device["bindsToNode"] = dice.chance(0.5)
                devices.append(device)
                number += 1
            if part and dice.chance(0.04):
                devices[0]["name"] = f"{driver[:3]}-0"  # twice in one pool
            self._add_slice({**spec, "devices": devices}, node)
        if dice.chance(0.06):  # left over from before
            old = {**known, "generation": 0}
            self._add_slice({**spec, "pool": old, "devices": [self._device(driver, 9, False)]}, "?")
        if has_counters:
            sets = [
                {"name": one, "counters": {"memory": {"value": f"{dice.between(1, 8) * 10}Gi"}}}
                for one in ("set-0", "set-1")
            ]
            self._add_slice({**spec, "sharedCounters": sets}, "?")

    def _add_shared_pool(self, names: list[str]) -> None:
        dice = self._dice
        driver = dice.pick((GPU, NIC))
        kind = dice.between(0, 2)
        if kind == 0:
            self._add_pool(driver, "shared", {"allNodes": True}, "")
            return
        zones = [one["metadata"]["labels"] for one in self._cluster["nodes"]]
        labels = dice.pick([one for one in zones if one] or [{"none": "none"}])
        key = dice.pick(sorted(labels))
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [labels[key]]}]}
        selector = {"nodeSelectorTerms": [term]}
        if kind == 1:
            self._add_pool(driver, "shared", {"nodeSelector": selector}, "")
            return
        devices = []
        for number in range(dice.between(1, 5)):
            place: Object = dice.pick(
                ({"nodeName": dice.pick(names)}, {"allNodes": True}, {"nodeSelector": selector})
            )
            devices.append({**self._device(driver, number, False), **place})
        pool = {"name": "shared", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "pool": pool, "perDeviceNodeSelection": True}
        self._add_slice({**spec, "devices": devices}, "")

    def _add_slice(self, spec: Object, node: str) -> None:
        value = {"metadata": self._dice.meta(self._dice.name("slice")), "spec": spec}
        self._cluster["resourceslices"].append(value)
        if node != "?":
            self._devices += [(node, value, device) for device in spec.get("devices", ())]

    def _device(self, driver: str, number: int, has_counters: bool) -> Object:
        dice = self._dice
        attributes: Object = {"index": {"int": number}}
        if driver == GPU:
            if dice.chance(0.9):
                attributes["model"] = {"string": dice.pick(MODELS)}
            if dice.chance(0.6):
                attributes["ecc"] = {"bool": dice.chance(0.5)}
            if dice.chance(0.4):
                attributes["version"] = {"version": dice.pick(("535.1.0", "550.0.0-rc.1", "1.0.0"))}
        elif dice.chance(0.8):
            attributes["speed"] = {"int": dice.pick((10, 25, 100))}
        if dice.chance(0.8):
            attributes["numa"] = {"int": dice.between(0, 1)}
        if dice.chance(0.7):
            attributes["resource.kubernetes.io/pcieRoot"] = {"string": f"pci{dice.between(0, 1)}"}
        device: Object = {"name": f"{driver[:3]}-{number}", "attributes": attributes}
        if dice.chance(0.8):
            memory: Object = {"value": dice.pick(("24Gi", "40Gi", "80Gi"))}
            if self._has_capacity and dice.chance(0.5):
                memory["requestPolicy"] = dice.pick(
                    (
                        {"default": "8Gi"},
                        {"default": "8Gi", "validRange": {"min": "4Gi", "step": "4Gi"}},
                        {"default": "10Gi", "validValues": ["10Gi", "20Gi"]},
                        {"default": "4Gi", "validRange": {"min": "2Gi", "max": "16Gi"}},
                    )
                )
            device["capacity"] = {"memory": memory}
        if self._has_capacity and dice.chance(0.6):
            device["allowMultipleAllocations"] = True
        if has_counters and dice.chance(0.8):
            counters = {"memory": {"value": f"{dice.between(1, 4) * 10}Gi"}}
            name = dice.pick(("set-0", "set-1")) if not dice.chance(0.03) else "set-9"
            device["consumesCounters"] = [{"counterSet": name, "counters": counters}]
        if dice.chance(0.1):
            effect = dice.pick(("NoSchedule", "NoExecute", "None"))
            device["taints"] = [{"key": "broken", "value": "yes", "effect": effect}]
        return device

    # --- claims ----------------------------------------------------------------------------------

    def _hold_devices(self) -> list[Object]:
        """Claims of other pods; some of their allocations are still in flight."""
        dice = self._dice
        in_flight: list[Object] = []
        share = dice.pick((0.0, 0.1, 0.3, 0.6))
        for node, slice_, device in self._devices:
            if not dice.chance(share):
                continue
            allocation = self._allocation(node, [(slice_, device)])
            claim = self._claim({"requests": [_exactly("r", "any", 1)]})
            if dice.chance(0.15):
                meta = claim["metadata"]
                names = {"namespace": meta["namespace"], "name": meta["name"]}
                in_flight.append({**names, "allocation": allocation})
            else:
                claim["status"] = {"allocation": allocation, "reservedFor": [self._user()]}
        return in_flight

    def _allocation(self, node: str, devices: list[tuple[Object, Object]]) -> Object:
        dice = self._dice
        results = []
        for slice_, device in devices:
            spec = slice_["spec"]
            result: Object = {
                "request": "r",
                "driver": spec["driver"],
                "pool": spec["pool"]["name"],
            }
            result["device"] = device["name"]
            if device.get("allowMultipleAllocations"):
                result["shareID"] = dice.uid()
                result["consumedCapacity"] = dict.fromkeys(device.get("capacity", {}), "4Gi")
            elif dice.chance(0.05):
                result["adminAccess"] = True
            results.append(result)
        allocation: Object = {"devices": {"results": results}}
        if node:
            only = {"key": "metadata.name", "operator": "In", "values": [node]}
            allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [only]}]}
        return allocation

    def _user(self) -> Object:
        return {"resource": "pods", "name": self._dice.pod_name(), "uid": self._dice.uid()}

    def _claim(self, devices: Object) -> Object:
        claim = {
            "metadata": self._dice.meta(self._dice.name("claim"), "default"),
            "spec": {"devices": devices},
            "status": {},
        }
        self._cluster["resourceclaims"].append(claim)
        return claim

    def _give_claims(self, pod: Object, names: list[str]) -> None:
        dice = self._dice
        entries: list[Object] = []
        for number in range(dice.pick((1, 1, 1, 2, 2, 3))):
            claim = self._claim(self._wish())
            entry: Object = {"name": f"c{number}"}
            if dice.chance(0.2):
                entry["resourceClaimTemplateName"] = "template"
                status = {"name": entry["name"], "resourceClaimName": claim["metadata"]["name"]}
                pod["status"].setdefault("resourceClaimStatuses", []).append(status)
                owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"]}
                owner |= {"uid": pod["metadata"]["uid"], "controller": True}
                if not dice.chance(0.05):
                    claim["metadata"]["ownerReferences"] = [owner]
            else:
                entry["resourceClaimName"] = claim["metadata"]["name"]
            if dice.chance(0.15) and self._devices:
                node, slice_, device = dice.pick(self._devices)
                # In use by itself only: at most one claim can be deallocated.
                allocation = self._allocation(node, [(slice_, device)])
                users = [self._user()] if number or dice.chance(0.5) else []
                claim["status"] = {"allocation": allocation, "reservedFor": users}
            if dice.chance(0.02):
                claim["metadata"]["deletionTimestamp"] = dice.moment(25)
                claim["metadata"]["finalizers"] = ["x/y"]
            entries.append(entry)
        pod["spec"]["resourceClaims"] = entries

    def _wish(self) -> Object:
        dice = self._dice
        requests: list[Object] = []
        names: list[str] = []
        for number in range(dice.pick((1, 1, 1, 2, 2, 3))):
            name = f"r{number}"
            names.append(name)
            if dice.chance(0.2):
                wishes = [self._asked() for _ in range(dice.between(1, 3))]
                alternatives = [{"name": f"s{n}", **one} for n, one in enumerate(wishes)]
                requests.append({"name": name, "firstAvailable": alternatives})
                names.append(f"{name}/s0")
            else:
                asked = self._asked()
                if dice.chance(0.06):
                    asked["adminAccess"] = True
                requests.append({"name": name, "exactly": asked})
        wish: Object = {"requests": requests}
        if dice.chance(0.35):
            attributes = (f"{GPU}/model", f"{GPU}/numa", "resource.kubernetes.io/pcieRoot")
            wish["constraints"] = [
                {
                    dice.pick(("matchAttribute", "matchAttribute", "distinctAttribute")): one,
                    "requests": dice.some(names, 0, len(names)),
                }
                for one in dice.some(attributes, 1, 2)
            ]
        if dice.chance(0.2):
            opaque = {"driver": GPU, "parameters": {"wish": dice.word()}}
            wish["config"] = [{"requests": dice.some(names, 0, 2), "opaque": opaque}]
        return wish

    def _asked(self) -> Object:
        dice = self._dice
        asked: Object = _exactly(
            "", dice.pick(("gpu", "gpu", "gpu", "gpu", "nic", "fast", "any")), 1
        )["exactly"]
        if dice.chance(0.08):
            asked["allocationMode"] = "All"
            del asked["count"]
        else:
            asked["count"] = dice.pick((1, 1, 1, 2, 2, 3))
        if dice.chance(0.02):
            asked["count"] = 33
        if dice.chance(0.03):
            asked["deviceClassName"] = "none"
        if dice.chance(0.4):
            known = BROKEN if self._breaks else SELECTORS
            expressions = dice.some(known, 1, 2) if dice.chance(0.8) else [dice.pick(SELECTORS)]
            asked["selectors"] = [{"cel": {"expression": one}} for one in expressions]
        if dice.chance(0.25):
            toleration: Object = {"key": "broken", "operator": dice.pick(("Exists", "Equal"))}
            if toleration["operator"] == "Equal":
                toleration["value"] = dice.pick(("yes", "no"))
            asked["tolerations"] = [toleration]
        if self._has_capacity and dice.chance(0.5):
            amount = dice.pick(("1Gi", "5Gi", "8Gi", "15Gi", "60Gi"))
            name = "memory" if dice.chance(0.95) else "nothing"
            asked["capacity"] = {"requests": {name: amount}}
        return asked

    # --- extended resources ----------------------------------------------------------------------

    def _ask_for_extended_resources(self, pod: Object) -> None:
        dice = self._dice
        if dice.chance(0.5):
            pod["spec"].pop("resourceClaims")
        for resource in dice.some(EXTENDED, 1, 2):
            amount = str(dice.between(1, 3))
            container: Any = dice.pick(pod["spec"]["containers"])
            resources = container.setdefault("resources", {})
            for kind in ("requests", "limits"):
                resources.setdefault(kind, {})[resource] = amount
            for node in self._cluster["nodes"]:
                if dice.chance(0.3):
                    for kind in ("allocatable", "capacity"):
                        node["status"][kind][resource] = dice.pick(("0", "1", "4"))


def _exactly(name: str, device_class: str, count: int) -> Object:
    asked = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": asked}
