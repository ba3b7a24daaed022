"""Asks a real kube-apiserver for the types of our kinds and writes down what patches need.

    python -m tests.cluster.apiserver.make_schema

starts one and rewrites `src/mooring/cluster/apiserver/schema.txt`; `test_schema.py` checks that it
is what the server says. What stays of an OpenAPI document is: which fields a type has, of which
types they are, and how lists and maps are merged. Descriptions and the paths go.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.controlplane.admin import AdminApi
from tests.controlplane.cluster import ControlPlane

from mooring.cluster.apiserver.resources import RESOURCES
from mooring.cluster.apiserver.schema import SCHEMA_FILE

Schema = Mapping[str, Any]

_HEADER: Final = """\
# Types of the kinds served here, as kube-apiserver 1.36 describes them at /openapi/v3.
# Made by tests/cluster/apiserver/make_schema.py. A type and its fields; [T] is a list, {T} a map.
# atomic: replaced as a whole   set, map=KEYS: a list merged by value or by keys (KEY=DEFAULT, KEY?
# without default)   granular: merged although its type is atomic   merge, merge=KEY, replace,
# retainKeys: the strategy of strategic merge patches   always: written even when empty
"""
_PREFIXES: Final = (
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
)
# Types that are written as one value, and what they are called in the file.
_VALUES: Final = {
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.FieldsV1": "any",
    "api.resource.Quantity": "quantity",
    "runtime.RawExtension": "any",
    "util.intstr.IntOrString": "intorstring",
    "apiextensions.v1.JSON": "any",
    "apiextensions.v1.JSONSchemaPropsOrArray": "schemaorlist",
    "apiextensions.v1.JSONSchemaPropsOrBool": "schemaorbool",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "any",
}
# What requests may carry besides objects; kinds that are stored come from RESOURCES.
_OTHER_ROOTS: Final = (
    "authentication.v1.SelfSubjectReview",
    "authentication.v1.TokenRequest",
    "authentication.v1.TokenReview",
    "authorization.v1.LocalSubjectAccessReview",
    "authorization.v1.SelfSubjectAccessReview",
    "authorization.v1.SelfSubjectRulesReview",
    "authorization.v1.SubjectAccessReview",
    "autoscaling.v1.Scale",
    "core.v1.Binding",
    "meta.v1.DeleteOptions",
    "policy.v1.Eviction",
)
_OTHER_GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")


def describe(api: AdminApi) -> str:
    """The content of the file."""
    types = _types(api)
    lines: list[str] = []
    for name in sorted(_reachable(types, [*_roots(), *_OTHER_ROOTS])):
        schema = types[name]
        mark = schema.get("x-kubernetes-map-type")
        lines.append(f"{name} {mark}" if mark else name)
        for field, value in sorted(schema.get("properties", {}).items()):
            marks = [*_marks(value, types)]
            if _is_always_written(field, value, schema):
                marks.append("always")
            lines.append("  " + " ".join([field, _type(value), *marks]))
    return _HEADER + "\n".join(lines) + "\n"


def _roots() -> Iterable[str]:
    for resource in RESOURCES:
        group = resource.group.partition(".")[0] or "core"
        yield f"{group}.{resource.version}.{resource.kind}"


def _types(api: AdminApi) -> dict[str, Schema]:
    """All types of the groups we serve, by short name."""
    found: dict[str, Schema] = {}
    groups = {(resource.group, resource.version) for resource in RESOURCES}
    groups |= {(group, "v1") for group in _OTHER_GROUPS}
    for path in sorted(_document(*group) for group in groups):
        document = api.request("GET", f"/openapi/v3/{path}")
        for name, schema in document["components"]["schemas"].items():
            found[_short(name)] = schema
    return found


def _document(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _reachable(types: Mapping[str, Schema], roots: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in reached:
            continue
        reached.add(name)
        for value in types[name].get("properties", {}).values():
            inner = _type(value).strip("[]{}")
            if inner in types:
                waiting.append(inner)
    return reached


def _type(schema: Schema) -> str:
    if "allOf" in schema:
        return _type(schema["allOf"][0])
    if "$ref" in schema:
        name = _short(schema["$ref"].rpartition("/")[2])
        return _VALUES.get(name, name)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_type(schema['items'])}]"
    if "additionalProperties" in schema:
        return f"{{{_type(schema['additionalProperties'])}}}"
    if kind == "integer":
        return str(schema["format"])
    return {"object": "any", "number": "double"}.get(kind) or (
        "bytes" if schema.get("format") == "byte" else str(kind)
    )


def _marks(schema: Schema, types: Mapping[str, Schema]) -> Iterable[str]:
    """How it is merged; a list without a mark is atomic, a map without one is not."""
    if schema.get("x-kubernetes-list-type") == "set":
        yield "set"
    elif schema.get("x-kubernetes-list-type") == "map":
        element = types[_type(schema).strip("[]")].get("properties", {})
        keys = [_key(name, element) for name in schema["x-kubernetes-list-map-keys"]]
        yield f"map={','.join(keys)}"
    if mark := schema.get("x-kubernetes-map-type"):
        yield str(mark)
    strategies = schema.get("x-kubernetes-patch-strategy", "")
    key = schema.get("x-kubernetes-patch-merge-key")
    for strategy in filter(None, strategies.split(",")):
        yield f"merge={key}" if strategy == "merge" and key else strategy


def _is_always_written(field: str, value: Schema, owner: Schema) -> bool:
    """Structs that are no pointers, and required lists: an empty object has them, too."""
    is_struct = "allOf" in value and value.get("default") == {}
    return is_struct or (value.get("type") == "array" and field in owner.get("required", ()))


def _key(name: str, element: Mapping[str, Schema]) -> str:
    default = element[name].get("default")
    if default is None:
        return f"{name}?"
    return name if default == "" else f"{name}={default}"


def _short(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


if __name__ == "__main__":
    with ControlPlane() as control_plane:
        SCHEMA_FILE.write_text(describe(control_plane.admin))
    print(f"wrote {SCHEMA_FILE}", file=sys.stderr)
