"""Scripts about CustomResourceDefinitions: what is filled in, and which ones are refused."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.compared_requests import (
    Object,
    Step,
    delete,
    get,
    patch,
    post,
    put,
    trying,
)

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "{ns}.example.com"
ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def version(name: str = "v1", schema: Any = None, **fields: Any) -> Object:
    """A version that is served, and stored unless it says otherwise."""
    found: Object = {"name": name, "served": True, "storage": True, **fields}
    found["schema"] = {"openAPIV3Schema": ANYTHING if schema is None else schema}
    return {key: value for key, value in found.items() if value is not None}


def definition(kind: str = "Widget", *versions: Object, **spec: Any) -> Object:
    """A definition; fields of its spec may be overridden, None removes one."""
    plural = f"{kind.lower()}s"
    whole: Object = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind},
        "versions": list(versions) or [version()],
        **spec,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def established(kind: str = "Widget") -> Step:
    """Wait until a definition is served."""
    name = f"{kind.lower()}s.{GROUP}"
    return Step("GET", f"{DEFINITIONS}/{name}", until='"type": "Established", "status": "True"')


def schemas(*properties: Any) -> list[Object]:
    """Definitions whose schema has one property, a different one each."""
    return [
        definition(
            "Widget",
            version(schema={"type": "object", "properties": {"spec": one}}),
        )
        for one in properties
    ]


def approved(why: str) -> Object:
    """A definition in a group of the Kubernetes project."""
    annotations = {"api-approved.kubernetes.io": why}
    metadata = {"name": "widgets.{ns}.k8s.io", "annotations": annotations}
    return {**definition(group="{ns}.k8s.io"), "metadata": metadata}


def changed(**spec: Any) -> Object:
    return definition("Widget", **spec)


_TEXT = {"type": "string"}
_NAMES = {"plural": "widgets", "kind": "Widget"}
_WIDGET = f"{DEFINITIONS}/widgets.{GROUP}"

SCRIPTS: dict[str, list[Step]] = {
    "definitions: names and scope": trying(
        DEFINITIONS,
        [
            definition(),
            definition(names={**_NAMES, "singular": "gizmo", "shortNames": ["w"], "listKind": "W"}),
            {**definition(), "metadata": {"name": "other"}},
            {**definition(), "spec": {}},
            definition(scope="Other"),
            definition(scope=None),
            definition(names={}),
            definition(names={**_NAMES, "plural": "Widgets"}),
            definition(names={**_NAMES, "kind": "wid get"}),
            definition(names={**_NAMES, "kind": "widget-x"}),
            definition(names={**_NAMES, "singular": "Gizmo", "listKind": "Widget"}),
            definition(names={**_NAMES, "shortNames": ["W", "w"], "categories": ["All", "b"]}),
            definition(group="example"),
            definition(group=""),
            definition(group="Bad_Group.x"),
            definition(group="widgets.k8s.io"),
            approved("it is fine"),
            approved("unapproved, for a test"),
            {**definition(), "status": {"storedVersions": ["v7"]}},
            {**definition(), "metadata": {"name": f"widgets.{GROUP}", "labels": {"a b": "c"}}},
        ],
    ),
    "definitions: versions": trying(
        DEFINITIONS,
        [
            definition(versions=[]),
            definition("Widget", version(), version()),
            definition("Widget", version(storage=False)),
            definition("Widget", version(), version("v2")),
            definition("Widget", version(served=False)),
            definition("Widget", version("V1")),
            definition("Widget", version(""), version("v1.2", storage=False)),
            definition("Widget", version("v1", storage=False), version("v2beta1")),
            definition("Widget", {"name": "v1", "served": True, "storage": True}),
            definition("Widget", {**version(), "schema": {}}),
            definition("Widget", version(deprecated=True, deprecationWarning="old")),
            definition("Widget", version(deprecationWarning="old")),
            definition("Widget", version(deprecated=True, deprecationWarning="")),
            definition("Widget", version(deprecated=True, deprecationWarning="x" * 257)),
            definition("Widget", version(deprecated=True, deprecationWarning="a\tb")),
            definition("Widget", {"name": 3}),
            definition("Widget", version(served="yes")),
            definition(version="v1"),
            definition(conversion={"strategy": "Other"}),
            definition(conversion={"strategy": "None", "webhook": {}}),
            definition(preserveUnknownFields=True),
            definition(preserveUnknownFields=False),
        ],
    ),
    "definitions: subresources and columns": trying(
        DEFINITIONS,
        [
            definition("Widget", version(subresources={"status": {}})),
            definition("Widget", version(subresources={"scale": {}})),
            definition(
                "Widget",
                version(
                    subresources={
                        "scale": {
                            "specReplicasPath": "spec.replicas",
                            "statusReplicasPath": ".spec.replicas",
                            "labelSelectorPath": ".other",
                        }
                    }
                ),
            ),
            definition(
                "Widget",
                version(
                    subresources={
                        "scale": {
                            "specReplicasPath": ".spec.replicas[0]",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.selector",
                        }
                    }
                ),
            ),
            definition(
                "Widget",
                version(
                    additionalPrinterColumns=[
                        {"name": "", "type": "", "jsonPath": ""},
                        {"name": "A", "type": "text", "jsonPath": ".spec"},
                        {"name": "A", "type": "string", "jsonPath": "spec.a"},
                        {"name": "B", "type": "string", "jsonPath": ".spec[?(@.a==", "format": "x"},
                        {"name": "C", "type": "integer", "jsonPath": ".c", "format": "int32"},
                    ]
                ),
            ),
            definition(
                "Widget",
                version(
                    schema={
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "color": _TEXT,
                                    "list": {"type": "array", "items": _TEXT},
                                },
                            }
                        },
                    },
                    selectableFields=[
                        {"jsonPath": ".spec.color"},
                        {"jsonPath": ".spec.list"},
                        {"jsonPath": ".spec.none"},
                        {"jsonPath": ".metadata.name"},
                        {"jsonPath": "spec.color"},
                        {"jsonPath": ".spec.color"},
                        {"jsonPath": ""},
                    ],
                ),
            ),
        ],
    ),
    "definitions: structural schemas": trying(
        DEFINITIONS,
        [
            *(
                definition("Widget", version(schema=schema))
                for schema in (
                    {},
                    {"type": "string"},
                    {"type": "object"},
                    {"properties": {"spec": {"type": "object"}}},
                    {"type": "object", "properties": {"metadata": {"type": "object"}}},
                    {"type": "object", "properties": {"metadata": {"type": "string"}}},
                    {
                        "type": "object",
                        "properties": {
                            "metadata": {
                                "type": "object",
                                "properties": {"name": {**_TEXT, "maxLength": 3}, "labels": {}},
                            }
                        },
                    },
                    {"type": "object", "properties": {"apiVersion": {"type": "integer"}}},
                    {"type": "object", "properties": {"kind": _TEXT, "apiVersion": _TEXT}},
                    {"type": "object", "nullable": True},
                    {"type": "object", "x-kubernetes-embedded-resource": True},
                )
            ),
            *schemas(
                {},
                {"type": "array"},
                {"type": "array", "items": {}},
                {"type": "array", "items": [{"type": "string"}]},
                {"type": "object", "properties": {"a": {}}},
                {"type": "object", "properties": {"a": _TEXT}, "additionalProperties": _TEXT},
                {"type": "object", "additionalProperties": {}},
                {"type": "object", "additionalProperties": True},
                {"type": "object", "additionalProperties": False},
                {"type": "number", "minimum": 3, "maximum": 1},
                {"type": "text"},
                {"type": "null"},
                {"type": "string", "format": "weird"},
                {"type": "string", "pattern": "(("},
                {"type": "string", "enum": []},
                {"type": "string", "enum": ["a", "a", 3]},
                {"type": "string", "uniqueItems": True},
                {"type": "array", "items": _TEXT, "uniqueItems": True},
                {"type": "string", "$ref": "#/x"},
                {"type": "string", "definitions": {"a": {}}, "id": "x", "readOnly": True},
                {"type": "object", "patternProperties": {"a": _TEXT}, "dependencies": {"a": ["b"]}},
                {"type": "array", "items": _TEXT, "additionalItems": True},
                {"type": "object", "description": "d", "title": "t", "example": 3, "default": {}},
                {"type": "object", "title": 3},
                {"type": "object", "unknownWord": 3},
            ),
        ],
    ),
    "definitions: junctors": trying(
        DEFINITIONS,
        schemas(
            {"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]},
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "anyOf": [{"properties": {"a": {"minimum": 1}}}, {"required": ["a"]}],
            },
            {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
                "allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}],
            },
            {"type": "object", "not": {"required": ["a"], "description": "x", "default": {}}},
            {"type": "string", "oneOf": [{"format": "date"}, {"nullable": True}, {"title": "x"}]},
            {"type": "object", "allOf": [{"additionalProperties": _TEXT}]},
            {"type": "object", "allOf": [{"x-kubernetes-preserve-unknown-fields": True}]},
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True, "type": "string"},
            {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
            },
            {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            {"type": "array", "items": _TEXT, "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
            {"type": "object", "x-kubernetes-embedded-resource": True},
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            {"type": "string", "x-kubernetes-embedded-resource": True},
        ),
    ),
    "definitions: lists and maps": trying(
        DEFINITIONS,
        schemas(
            {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
            {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "other"},
            {"type": "string", "x-kubernetes-list-type": "set"},
            {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "map"},
            {"type": "array", "items": _TEXT, "x-kubernetes-list-map-keys": ["a"]},
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": _TEXT}},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            },
            {
                "type": "array",
                "items": {"type": "object", "properties": {"a": _TEXT}, "required": ["a"]},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            },
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"a": {"type": "object"}, "b": {**_TEXT, "nullable": True}},
                    "required": ["a", "b"],
                },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a", "b", "c", "a"],
            },
            {
                "type": "array",
                "items": {"type": "object", "nullable": True},
                "x-kubernetes-list-type": "set",
            },
            {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"},
            {
                "type": "array",
                "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
                "x-kubernetes-list-type": "set",
            },
            {
                "type": "array",
                "items": {"type": "array", "items": _TEXT},
                "x-kubernetes-list-type": "set",
            },
            {
                "type": "array",
                "items": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
                "x-kubernetes-list-type": "set",
            },
            {"type": "object", "x-kubernetes-map-type": "other"},
            {"type": "string", "x-kubernetes-map-type": "atomic"},
        ),
    ),
    "definitions: defaults": trying(
        DEFINITIONS,
        schemas(
            {"type": "string", "default": "a"},
            {"type": "string", "default": 3},
            {"type": "string", "default": None},
            {"type": "string", "default": None, "nullable": True},
            {"type": "string", "default": "abc", "maxLength": 2},
            {"type": "object", "properties": {"a": _TEXT}, "default": {"b": 1}},
            {"type": "object", "properties": {"a": {**_TEXT, "default": "x"}}, "default": {}},
            {"type": "object", "properties": {"a": _TEXT}, "required": ["a"], "default": {}},
            {"type": "array", "items": {**_TEXT, "default": "x"}},
            {"type": "string", "enum": ["a"], "default": "b"},
        ),
    ),
    "definitions: rules": trying(
        DEFINITIONS,
        schemas(
            *(
                {
                    "type": "object",
                    "properties": {"min": {"type": "integer"}},
                    "x-kubernetes-validations": [rule],
                }
                for rule in (
                    {"rule": "self.min > 1", "fieldPath": ".min"},
                    {"rule": "oldSelf.min == self.min"},
                    {"rule": "1 + 1"},
                    {"rule": ""},
                    {"rule": "self.min > 1", "messageExpression": "1 + 1"},
                    {"rule": "self.min > 1", "message": "a\nb"},
                    {"rule": "self.min > 1", "reason": "Odd"},
                    {"rule": "self.min > 1", "fieldPath": ".none"},
                )
            ),
            *(
                {
                    "type": "object",
                    "properties": {"a.b": _TEXT},
                    "x-kubernetes-validations": [{"rule": "true", "fieldPath": path}],
                }
                for path in ("['a.b']", ".a.b")
            ),
        ),
    ),
    "a definition and its life": [
        post(
            DEFINITIONS, definition(names={**_NAMES, "shortNames": ["wd"], "categories": ["all"]})
        ),
        post(DEFINITIONS, definition()),
        established(),
        get(f"{DEFINITIONS}?fieldSelector=metadata.name%3Dwidgets.{GROUP}"),
        get(f"{DEFINITIONS}?fieldSelector=spec.group%3D{GROUP}"),
        put(_WIDGET, definition()),
        patch(_WIDGET, {"spec": {"names": {"shortNames": ["wi"]}}}),
        Step(
            "GET",
            _WIDGET,
            until='"singular": "widget", "shortNames": ["wi"], "kind": "Widget", "listKind": '
            '"WidgetList", "categories": ["all"]}, "storedVersions"',
        ),
        patch(_WIDGET, {"spec": {"scope": "Cluster"}}),
        patch(_WIDGET, {"spec": {"group": "other.example.com"}}),
        patch(_WIDGET, {"spec": {"names": {"kind": "Gadget", "listKind": "GadgetList"}}}),
        patch(_WIDGET, {"spec": {"names": {"plural": "gadgets"}}}),
        patch(_WIDGET, {"spec": {"versions": [version("v2")]}}),
        patch(_WIDGET, {"spec": {"versions": [version("v2"), version("v1", storage=False)]}}),
        Step("GET", _WIDGET, until='"storedVersions": ["v1", "v2"]'),
        patch(f"{_WIDGET}/status", {"status": {"storedVersions": ["v2"]}}),
        patch(f"{_WIDGET}/status", {"status": {"storedVersions": []}}),
        patch(_WIDGET, {"spec": {"versions": [version("v2")]}}),
        get(f"{_WIDGET}/status"),
        patch(_WIDGET, {"spec": {"versions": []}}),
        patch(_WIDGET, {"metadata": {"annotations": {"a": "b"}}}),
        patch(
            _WIDGET,
            {"metadata": {"annotations": {"c": "d"}}},
            "application/strategic-merge-patch+json",
        ),
        delete(_WIDGET),
        Step("GET", _WIDGET, until="NotFound"),
    ],
    "a definition with a condition that has no type": [
        post(DEFINITIONS, definition()),
        established(),
        Step(
            "PATCH",
            f"{_WIDGET}/status",
            [{"op": "add", "path": "/status/conditions/-", "value": {"message": "odd"}}],
            "application/json-patch+json",
        ),
        post(f"/apis/{GROUP}/v1/namespaces/{{ns}}/widgets?dryRun=All", {"kind": "Other"}),
        delete(_WIDGET),
        Step("GET", _WIDGET, until="NotFound"),
    ],
    "a definition whose names are taken": [
        post(DEFINITIONS, definition(names={**_NAMES, "shortNames": ["wd"]})),
        established(),
        post(
            DEFINITIONS,
            definition(
                "Gadget", names={"plural": "gadgets", "kind": "Widget", "shortNames": ["wd"]}
            ),
        ),
        Step("GET", f"{DEFINITIONS}/gadgets.{GROUP}", until="NamesAccepted"),
        get(f"/apis/{GROUP}/v1/gadgets"),
        delete(_WIDGET),
        established("Gadget"),
        delete(f"{DEFINITIONS}/gadgets.{GROUP}"),
    ],
}
