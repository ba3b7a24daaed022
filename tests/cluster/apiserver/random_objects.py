"""Random Deployments and patches of them, for the real server and for ours."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from tests.controlplane.admin import AdminApi, Object

_KEYS = ("name", "containerPort", "ip", "topologyKey")  # by which elements are told apart

# What the server fills in; both sides are compared without it.
_DEFAULTED = frozenset(
    [
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "dnsPolicy",
        "restartPolicy",
        "schedulerName",
        "securityContext",
        "terminationGracePeriodSeconds",
        "progressDeadlineSeconds",
        "revisionHistoryLimit",
        "protocol",
        "defaultMode",
    ]
)
_OF_THE_SERVER = (
    "resourceVersion",
    "generation",
    "managedFields",
    "uid",
    "creationTimestamp",
    "namespace",
)


class RandomObjects:
    """Makes things up, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random: random.Random = random.Random(seed)

    def happens(self, chance: float) -> bool:
        return self.random.random() < chance

    def some(self, things: list[Any], least: int = 0) -> list[Any]:
        return self.random.sample(things, self.random.randint(least, len(things)))

    def number(self, most: int) -> int:
        return self.random.randint(0, most)

    # --- objects -------------------------------------------------------------------------------

    def deployment(self, name: str) -> Object:
        spec: Object = {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": self.pod_spec()},
        }
        if self.happens(0.5):
            spec["replicas"] = self.number(4)
        if self.happens(0.3):
            spec["strategy"] = {"type": "Recreate"}
        metadata = {**self.metadata(), "name": name}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}

    def metadata(self) -> Object:
        found: Object = {}
        if self.happens(0.6):
            found["labels"] = {key: str(self.number(2)) for key in self.some(["l1", "l2", "l3"])}
        if self.happens(0.4):
            found["annotations"] = {key: str(self.number(2)) for key in self.some(["a1", "a2"])}
        if self.happens(0.3):
            found["finalizers"] = [f"x/{key}" for key in self.some(["f1", "f2", "f3"])]
        return found

    def pod_spec(self) -> Object:
        spec: Object = {"containers": [self.container(name) for name in self.some([*"abcd"], 1)]}
        optional: dict[str, Callable[[], Any]] = {
            "initContainers": lambda: [self.container(f"i{name}") for name in self.some([*"abc"])],
            "volumes": lambda: [self.volume(name) for name in self.some(["v1", "v2", "v3"])],
            "tolerations": lambda: [
                {"key": key, "operator": "Exists"} for key in self.some(["t1", "t2", "t3"])
            ],
            "nodeSelector": lambda: dict.fromkeys(self.some(["n1", "n2"]), "1"),
            "imagePullSecrets": lambda: [{"name": name} for name in self.some(["s1", "s2"])],
            "hostAliases": lambda: [
                {"ip": f"10.0.0.{last}", "hostnames": ["h"]} for last in self.some([1, 2, 3])
            ],
            "topologySpreadConstraints": lambda: [
                {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
                for key in self.some(["zone", "host"])
            ],
        }
        for field, made in optional.items():
            if self.happens(0.35):
                spec[field] = made()
        return spec

    def container(self, name: str) -> Object:
        made: Object = {"name": name, "image": f"i{self.number(3)}"}
        if self.happens(0.5):
            names = self.some(["E1", "E2", "E3"])
            made["env"] = [{"name": env, "value": str(self.number(3))} for env in names]
        if self.happens(0.4):
            ports = self.some([80, 81, 82])
            made["ports"] = [{"containerPort": port, "name": f"p{port}"} for port in ports]
        if self.happens(0.4):
            made["args"] = [str(self.number(3)) for _ in range(self.number(3))]
        if self.happens(0.4):
            made["resources"] = {"requests": {"cpu": f"{1 + self.number(8)}00m"}}
        return made

    def volume(self, name: str) -> Object:
        return {
            "name": name,
            **({"emptyDir": {}} if self.happens(0.5) else {"configMap": {"name": name}}),
        }

    # --- patches -------------------------------------------------------------------------------

    def strategic(self, value: Any, depth: int = 0) -> Any:
        """A part of an object, with directives in it."""
        if isinstance(value, list):
            elements = [self._element(element, depth) for element in value]
            if elements and isinstance(elements[0], dict) and self.happens(0.03):
                elements.append({"$patch": "replace"})
            return elements
        if not isinstance(value, dict):
            return value
        made: Object = {}
        for key, inner in value.items():
            if key in _KEYS:
                made[key] = inner
            elif depth == 0 or self.happens(0.75):
                made[key] = self.strategic(inner, depth + 1)
                made |= self._order(key, inner)
            elif self.happens(0.3):
                made[key] = None
        if "finalizers" in made and self.happens(0.5):
            # Together with additions the order would be a matter of luck on the real server.
            made.pop("finalizers")
            made.pop("$setElementOrder/finalizers", None)
            made["$deleteFromPrimitiveList/finalizers"] = self.some(["x/f1", "x/f2", "x/f3"])
        if depth > 1 and self.happens(0.03):
            made["$retainKeys"] = [key for key in made if not key.startswith("$")]
        return made

    def _element(self, element: Any, depth: int) -> Any:
        key = _key_of(element)
        if key and self.happens(0.12):
            return {key: element[key], "$patch": "delete"}
        return self.strategic(element, depth + 1)

    def _order(self, key: str, elements: Any) -> Object:
        if not isinstance(elements, list) or not elements or self.happens(0.8):
            return {}
        named = _key_of(elements[0])
        if named:
            return {f"$setElementOrder/{key}": [{named: one[named]} for one in elements]}
        return {f"$setElementOrder/{key}": elements} if key == "finalizers" else {}

    def operations(self) -> list[Object]:
        """A JSON patch."""
        places: dict[str, Any] = {
            "/metadata/labels/l1": "x",
            "/metadata/labels": {"q": "1"},
            "/metadata/annotations/a1": "x",
            "/spec/replicas": 7,
            "/spec/template/spec/containers/0/image": "x",
            "/spec/template/spec/containers/1": self.container("new"),
            "/spec/template/spec/containers/-": self.container("last"),
            "/spec/template/spec/nodeSelector": {"q": "1"},
            "/spec/template/spec/tolerations/0": {"key": "k", "operator": "Exists"},
        }
        return [
            {
                "op": self.random.choice(["add", "replace", "remove", "test", "copy", "move"]),
                "path": path,
                "value": places[path],
                "from": "/metadata/labels/l2",
            }
            for path in self.some([*places], 1)[:3]
        ]


def take_away(admin: AdminApi, name: str) -> None:
    """Remove a deployment, whatever it waits for."""
    kind = "apps/v1/Deployment"
    admin.patch(kind, name, {"metadata": {"finalizers": None}}, "default")
    admin.delete(kind, name, "default")


def _key_of(element: Any) -> str:
    if not isinstance(element, dict):
        return ""
    return next((key for key in _KEYS if key in element), "")


def comparable(value: Object) -> Object:
    """A deployment without what only the server sets, and without defaults."""
    value = copy.deepcopy(value)
    for name in _OF_THE_SERVER:
        value["metadata"].pop(name, None)
    value.pop("status", None)
    spec: Object = _without_defaults(value.pop("spec"))
    strategy = spec.pop("strategy", {})
    if strategy.get("type") == "Recreate":
        spec["strategy"] = strategy
    spec.setdefault("replicas", 1)
    for volume in spec["template"]["spec"].get("volumes", ()):
        if len(volume) == 1:
            volume["emptyDir"] = {}
    return {**value, "spec": spec}


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_defaults(inner)
            for key, inner in value.items()
            if key not in _DEFAULTED and not (key == "resources" and not inner)
        }
    if isinstance(value, list):
        return [_without_defaults(inner) for inner in value]
    return value
