"""Random pods and nodes as the JSON of an API server: any field, any value that it may have."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from mooring.api.meta import format_time
from mooring.cluster.apiserver.protobuf import Numbers, _Field, _numbers
from mooring.cluster.apiserver.schema import Schema, schema_of

_TEXTS = ("", "a", "Always", "x" * 40, "y" * 200, "ü€𝄞", "z" * 20_000)
_INTEGERS = (0, 1, -1, 7, 127, 128, 300, 16_384, 2**31 - 1, -(2**31))
_QUANTITIES = ("0", "1", "100m", "1500m", "1Gi", "1e3", "0.5", "-5", "9223372036854775807")
_DEEPEST = 9  # nothing of a pod is further inside


class RandomJson:
    """Makes objects up, the same for the same seed."""

    def __init__(self, seed: int, *, complete: bool = False) -> None:
        self._random = random.Random(seed)
        self._complete = complete  # every field is there, and not zero

    def objects(self, kind: str, count: int) -> list[dict[str, Any]]:
        """Some that are new, and some that differ from others in a few fields."""
        found: list[dict[str, Any]] = []
        for _ in range(count):
            if found and self._random.random() < 0.6:
                found.append(self._varied(kind, self._random.choice(found)))
            else:
                found.append(self.object(kind))
        return found

    def object(self, kind: str) -> dict[str, Any]:
        schema = schema_of("v1", kind)
        assert schema is not None
        chance = 1.0 if self._complete else self._random.choice((0.15, 0.4, 0.8))
        made = self._struct(schema, chance, 0)
        made.setdefault("metadata", {}).setdefault("name", "n")
        return made

    def _varied(self, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        made, other = copy.deepcopy(value), self.object(kind)
        spec, status = made.setdefault("spec", {}), made.setdefault("status", {})
        for change in self._random.sample(range(5), self._random.randint(1, 3)):
            if change == 0 and kind == "Pod":
                spec["nodeName"] = self._random.choice(("n1", "n2", "n" * 130, "node"))
            elif change == 1:
                made["metadata"] = other["metadata"]
            elif change == 2:
                for condition in status.get("conditions", ()):
                    condition["lastTransitionTime"] = self._value("time")
            elif change == 3:
                spec.pop(self._random.choice([*spec, "nodeName"]), None)
            else:
                status |= dict(list(other.get("status", {}).items())[:2])
        return {**made, "spec": _without_empty(spec)}

    def _struct(self, schema: Schema, chance: float, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if depth > _DEEPEST:
            return made
        for field in _fields(_numbers()[schema.name]):
            if self._random.random() > chance:
                continue
            deeper = chance if self._complete else chance / 1.2
            value = self._of(field.schema, deeper, depth + 1)
            # What is no pointer is left out by Go where it is zero; and so are empty lists.
            if value or (field.is_pointer and field.schema.form in ("value", "struct")):
                made[field.name] = value
        return made

    def _of(self, schema: Schema, chance: float, depth: int) -> Any:
        if schema.form == "struct":
            return self._struct(schema, chance, depth)
        count = 1 if self._complete else self._random.randint(0, 2)
        if schema.form == "list":
            return [self._of(schema.items, chance, depth) for _ in range(count)]
        if schema.form == "map":
            keys = self._random.sample(("a", "b" * 150, "c/d", ""), count)
            return {key: self._of(schema.items, chance, depth) for key in sorted(keys)}
        return {} if schema.form == "any" else self._value(schema.name)

    def _value(self, name: str) -> Any:
        choose = self._random.choice
        match name:
            case "int32" | "int64":
                return choose(_INTEGERS[self._complete :])
            case "boolean":
                return self._complete or choose((True, False))
            case "time" | "microtime":
                return format_time(self._random.randint(0, 4_000_000_000))
            case "quantity":
                return choose(_QUANTITIES[self._complete :])
            case "intorstring":
                return choose((1, "80%"))
        return choose(_TEXTS[self._complete :])


def _fields(numbers: Numbers) -> Iterator[_Field]:
    """All fields of a message, also those of messages that JSON has inline."""
    for about in numbers.values():
        if isinstance(about, dict):
            yield from _fields(about)
        else:
            yield about


def _without_empty(value: dict[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in value.items() if inner != ""}
