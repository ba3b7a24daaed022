"""Scripts about custom objects: metadata, patches, field validation, subresources, versions."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.compared_requests import (
    TABLE,
    Step,
    delete,
    get,
    patch,
    post,
    put,
)
from tests.cluster.apiserver.custom_object_steps import (
    ALL_WIDGETS,
    APPLY,
    CRD,
    JSON_PATCH,
    NUMBER,
    PROTOBUF,
    STRATEGIC,
    TEXT,
    WIDGETS,
    apply,
    serving,
    strictly,
    struct,
    texts,
    widget,
)
from tests.cluster.apiserver.scripts_definitions import (
    ANYTHING,
    DEFINITIONS,
    GROUP,
    definition,
    established,
    version,
)

YAML = "application/yaml"
CONFIG_MAPS = "/api/v1/namespaces/{ns}/configmaps"
_TWICE = """\
{apiVersion: {kind}, metadata: {name: x},
data: {a: "1",
a: "2"},
binaryData: {c: YQ==},
binaryData: {b: YQ==,
b: Yg==}}
"""
_LISTS = struct(
    tags=texts(**{"x-kubernetes-list-type": "set"}),
    ports={
        "type": "array",
        "items": {
            **struct(name=TEXT, port=NUMBER, note=TEXT),
            "required": ["name"],
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    whole=texts(),
    fixed={**struct(a=TEXT, b=TEXT), "x-kubernetes-map-type": "atomic"},
    loose=struct(a=TEXT, b=TEXT),
    size=NUMBER,
)
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_SCALED = struct(
    spec=struct(replicas=NUMBER, color=TEXT),
    status=struct(replicas=NUMBER, selector=TEXT, phase=TEXT),
)
_COLUMNS = [
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "its color"},
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio"},
    {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    {"name": "Rows", "type": "string", "jsonPath": ".spec.rows[*].a", "priority": 1},
    {"name": "Ready", "type": "string", "jsonPath": '.spec.conditions[?(@.type=="Ready")].status'},
    {"name": "Inner", "type": "string", "jsonPath": ".spec.inner"},
    {"name": "Quoted", "type": "string", "jsonPath": r".metadata.labels.a\.b/c"},
    {"name": "Wrong", "type": "integer", "jsonPath": ".spec.color"},
]
_PATHS = {
    "Quoted": ".metadata.labels['a.b/c']",
    "Escaped": r".metadata.labels['a\.b/c']",
    "First": ".spec.rows[0].a",
    "Last": ".spec.rows[-1].a",
    "Fifth": ".spec.rows[4].a",
    "Slice": ".spec.rows[1:].a",
    "Deep": "..a",
    "Has": ".spec.rows[?(@.b)].a",
    "Is": ".spec.rows[?(@.name=='y')].a",
    "Not": '.spec.rows[?(@.name!="x")].a',
    "Less": ".spec.rows[?(@.a<2)].name",
    "Least": ".spec.rows[?(@.a>=3)].name",
    "Words": '.spec.rows[?(@.name>"x")].a',
    "Mixed": '.spec.rows[?(@.a>"x")].name',
    "True": ".spec.rows[?(@.on==true)].name",
    "Bare": ".spec.rows[?(@.name==y)].a",
    "On": ".spec.rows[1].on",
}
_ROWS = [
    {"name": "x", "a": 1},
    {"name": "y", "a": 2, "b": "c", "on": True},
    {"name": "z", "a": 3, "on": False},
]

_ODD_METADATA: list[Any] = [
    widget({}, "X_y"),
    widget({}, metadata={"name": "x", "labels": {"a": 1}}),
    widget({}, metadata={"name": "x", "labels": {"a b": "c"}}),
    widget({}, metadata={"name": "x", "finalizers": ["bad"]}),
    widget({}, metadata={"name": "x", "finalizers": ["a.b/c"]}),
    widget({}, metadata={"name": "x", "strange": 1}),
    widget({}, metadata={"name": "x", "namespace": "other"}),
    widget({}, metadata={"name": "x", "ownerReferences": [{"kind": "A"}]}),
    widget({}, metadata={"name": 3}),
    widget({}, metadata="x"),
    widget({}, metadata={}),
    {"kind": "Widget", "metadata": {"name": "x"}},
    {"apiVersion": f"{GROUP}/v1", "metadata": {"name": "x"}},
    widget({}, kind="Other"),
    widget({}, apiVersion=f"{GROUP}/v2"),
    widget({}, apiVersion="v1"),
    [],
]

SCRIPTS: dict[str, list[Step]] = {
    "custom objects: metadata": [
        *serving(ANYTHING),
        *(post(f"{WIDGETS}?dryRun=All", body) for body in _ODD_METADATA),
        Step("POST", WIDGETS, "{", "application/json"),
        Step("POST", WIDGETS, "<a/>", "text/xml"),
        Step(
            "POST",
            f"{WIDGETS}?dryRun=All",
            "{apiVersion: '{ns}.example.com/v1', kind: Widget, metadata: {name: yy}}",
            "application/yaml",
        ),
        get(WIDGETS, accept=f"{PROTOBUF},application/json"),
    ],
    "custom objects: verbs": [
        *serving(struct(spec=struct(a=NUMBER, b=TEXT), status=struct(c=NUMBER))),
        post(WIDGETS, widget({"a": 1}, status={"c": 1})),
        post(WIDGETS, widget({"a": 1})),
        get(f"{WIDGETS}/x"),
        get(f"{WIDGETS}/y"),
        get(WIDGETS),
        get(ALL_WIDGETS),
        get(f"{WIDGETS}?labelSelector=a%3Db"),
        get(f"{WIDGETS}?fieldSelector=metadata.name%3Dx"),
        get(f"{WIDGETS}?fieldSelector=spec.a%3D1"),
        get(f"{WIDGETS}/x/status"),
        get(f"{WIDGETS}/x/scale"),
        get(f"{WIDGETS}/x/other"),
        put(f"{WIDGETS}/x", widget({"a": 2})),
        put(f"{WIDGETS}/y", widget({"a": 2}, "y")),
        put(f"{WIDGETS}/x", widget({"a": 2}, metadata={"name": "x", "resourceVersion": "1"})),
        patch(f"{WIDGETS}/x", {"spec": {"a": 2}}),
        patch(f"{WIDGETS}/x", {"spec": {"a": 2}}),
        patch(f"{WIDGETS}/x", {"spec": {"a": "x"}}),
        patch(f"{WIDGETS}/x", {"spec": {"strange": 1}}),
        patch(f"{WIDGETS}/x", {"spec": {"a": None}}),
        patch(f"{WIDGETS}/x", {"metadata": {"labels": {"l": "m"}}}),
        patch(f"{WIDGETS}/x", {"metadata": {"name": "z"}}),
        patch(f"{WIDGETS}/x", {"kind": "Other"}),
        patch(f"{WIDGETS}/x", {"apiVersion": f"{GROUP}/v7"}),
        patch(f"{WIDGETS}/x", {"status": {"c": 5}}),
        patch(f"{WIDGETS}/x", [{"op": "add", "path": "/spec/b", "value": "t"}], JSON_PATCH),
        patch(f"{WIDGETS}/x", [{"op": "remove", "path": "/spec/none"}], JSON_PATCH),
        patch(f"{WIDGETS}/x", [{"op": "test", "path": "/spec/b", "value": "u"}], JSON_PATCH),
        patch(f"{WIDGETS}/x", {"spec": {"b": "u"}}, STRATEGIC),
        patch(f"{WIDGETS}/x", "[]", "text/plain"),
        patch(f"{WIDGETS}/y", {"spec": {"a": 1}}),
        post(ALL_WIDGETS, widget({"a": 1})),
        delete(f"{WIDGETS}/y"),
        delete(f"{WIDGETS}/x?dryRun=All"),
        delete(f"{WIDGETS}/x"),
        post(WIDGETS, widget({"a": 1}, metadata={"name": "f", "finalizers": ["a.b/c"]})),
        delete(f"{WIDGETS}/f"),
        patch(f"{WIDGETS}/f", {"metadata": {"finalizers": ["a.b/c", "a.b/d"]}}),
        patch(f"{WIDGETS}/f", {"metadata": {"finalizers": []}}),
        get(f"{WIDGETS}/f"),
        post(WIDGETS, widget({"a": 1}, "one")),
        post(WIDGETS, widget({"a": 1}, metadata={"name": "two", "labels": {"l": "m"}})),
        delete(f"{WIDGETS}?labelSelector=l%3Dm"),
        get(WIDGETS),
        delete(WIDGETS),
        get(WIDGETS),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets"),
        get(f"/apis/{GROUP}/v1/namespaces/{{ns}}/gadgets"),
    ],
    "custom objects: apply": [
        *serving(struct(spec=_LISTS)),
        apply(widget({"size": 1, "tags": ["a", "b"], "ports": [{"name": "http", "port": 80}]})),
        apply(widget({"size": 2, "tags": ["c"]}), "you"),
        apply(widget({"tags": ["c"], "ports": [{"name": "dns", "port": 53}]}), "you"),
        apply(widget({"ports": [{"name": "http", "port": 81}]}), "you"),
        apply(widget({"ports": [{"name": "http", "port": 81}]}), "you", "&force=true"),
        apply(widget({"size": 1, "tags": ["a"], "ports": [{"name": "http", "note": "n"}]})),
        apply(widget({"whole": ["a"], "fixed": {"a": "1"}, "loose": {"a": "1"}}), "third"),
        apply(widget({"loose": {"b": "2"}}), "fourth"),
        apply(widget({"fixed": {"b": "2"}}), "fourth"),
        apply(widget({"whole": ["b"]}), "fourth"),
        apply(widget({"loose": {"b": "2"}}), "fourth"),
        apply(widget({"tags": ["a", "a"]}), "fifth"),
        apply(widget({"ports": [{"name": "a"}, {"name": "a"}]}), "fifth"),
        apply(widget({"ports": [{"port": 3}]}), "fifth"),
        apply(widget({"strange": 1}), "fifth"),
        apply(widget({"size": "x"}), "fifth"),
        apply(widget({"loose": "x"}), "fifth"),
        apply(widget({"ports": "x"}), "fifth"),
        apply(widget({"size": 1}), ""),
        apply(widget({"size": 1}, apiVersion=f"{GROUP}/v9"), "fifth"),
        apply(widget({"size": 1}, metadata={"name": "other"}), "fifth"),
        apply(widget({"size": 1}, metadata={}), "fifth"),
        apply(widget({}), "you"),
        get(f"{WIDGETS}/x"),
        post(WIDGETS, widget({"tags": ["a", "a"]}, "dup")),
        post(WIDGETS, widget({"ports": [{"name": "a"}, {"name": "a"}]}, "dup")),
        post(WIDGETS, widget({"ports": [{"port": 3}]}, "dup")),
    ],
    "custom objects: field validation": [
        *serving(
            struct(
                spec=struct(
                    a=NUMBER,
                    inner=struct(b=TEXT),
                    rows={"type": "array", "items": struct(c=TEXT)},
                )
            )
        ),
        post(WIDGETS, widget({"a": 1}, "old")),
        *strictly("Strict", {"a": 1, "strange": 1, "inner": {"x": 1}, "rows": [{"y": 1}]}),
        *strictly("Warn", {"a": 1, "strange": 1}),
        *strictly("Ignore", {"a": 1, "strange": 1}),
        post(f"{WIDGETS}?fieldValidation=Strict", widget({}, strange=1)),
        post(f"{WIDGETS}?fieldValidation=Strict", widget({}, metadata={"name": "m", "strange": 1})),
        Step(
            "POST",
            f"{WIDGETS}?fieldValidation=Strict",
            '{"apiVersion":"{ns}.example.com/v1","kind":"Widget","metadata":{"name":"d"},'
            '"spec":{"a":1,"a":2}}',
        ),
    ],
    "keys that YAML has twice": [
        *serving(ANYTHING),
        *(
            Step(method, f"{path}?fieldManager=me&dryRun=All&fieldValidation={mode}", text, media)
            for mode in ("Strict", "Warn", "Ignore")
            for place, text in (
                (WIDGETS, _TWICE.replace("{kind}", f"{GROUP}/v1, kind: Widget")),
                (CONFIG_MAPS, _TWICE.replace("{kind}", "v1, kind: ConfigMap")),
            )
            for method, path, media in (("POST", place, YAML), ("PATCH", f"{place}/x", APPLY))
        ),
    ],
    "custom objects: status": [
        *serving(
            struct(spec=struct(a=NUMBER), status={**struct(c=NUMBER), "required": ["c"]}),
            subresources={"status": {}},
        ),
        post(WIDGETS, widget({"a": 1}, status={"c": 1})),
        patch(f"{WIDGETS}/x", {"spec": {"a": 2}, "status": {"c": 2}}),
        patch(
            f"{WIDGETS}/x/status",
            {"spec": {"a": 3}, "status": {"c": 3}, "metadata": {"labels": {"l": "m"}}},
        ),
        patch(f"{WIDGETS}/x/status", {"status": {"c": "x"}}),
        patch(f"{WIDGETS}/x/status", {"status": {"d": 4}}),
        patch(f"{WIDGETS}/x/status", {"status": None}),
        patch(f"{WIDGETS}/x/status", {"status": {"c": 7}}),
        patch(f"{WIDGETS}/x", {"metadata": {"labels": {"l": "m"}}}),
        patch(f"{WIDGETS}/x", {"metadata": {"annotations": {"l": "m"}}, "spec": {"a": 9}}),
        get(f"{WIDGETS}/x/status"),
        put(f"{WIDGETS}/x/status", widget({"a": 1}, status={"c": 8})),
        put(f"{WIDGETS}/y/status", widget({"a": 1}, "y", status={"c": 8})),
        patch(f"{WIDGETS}/y/status", {"status": {"c": 8}}),
        delete(f"{WIDGETS}/x/status"),
        post(f"{WIDGETS}/x/status", widget({})),
        apply(widget(None, status={"c": 9}), "operator", path=f"{WIDGETS}/x/status"),
        apply(widget({"a": 5}, status={"c": 1}), "person", "&force=true"),
        get(f"{WIDGETS}/x"),
    ],
    "custom objects: scale": [
        *serving(_SCALED, subresources={"status": {}, "scale": _SCALE}),
        post(WIDGETS, widget({"color": "red"})),
        get(f"{WIDGETS}/x/scale"),
        patch(f"{WIDGETS}/x/scale", {"spec": {"replicas": 3}}),
        patch(f"{WIDGETS}/x/status", {"status": {"replicas": 2, "selector": "a=b"}}),
        get(f"{WIDGETS}/x/scale"),
        get(f"{WIDGETS}/x"),
        patch(f"{WIDGETS}/x/scale", {"spec": {"replicas": -1}}),
        put(
            f"{WIDGETS}/x/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "x", "namespace": "{ns}"},
                "spec": {"replicas": 5},
            },
        ),
        get(f"{WIDGETS}/y/scale"),
        post(WIDGETS, widget({"replicas": -1}, "neg")),
        patch(f"{WIDGETS}/x", {"spec": {"replicas": -4}}),
    ],
    "custom objects: columns": [
        *serving(ANYTHING, additionalPrinterColumns=_COLUMNS),
        post(
            WIDGETS,
            widget(
                {
                    "color": "red",
                    "size": 3,
                    "ratio": 0.5,
                    "on": True,
                    "rows": [{"a": 1}, {"a": 2}],
                    "conditions": [
                        {"type": "X", "status": "1"},
                        {"type": "Ready", "status": "True"},
                    ],
                    "inner": {"b": [1, "c"]},
                },
                metadata={"name": "x", "labels": {"a.b/c": "v"}},
            ),
        ),
        post(WIDGETS, widget({}, "y")),
        post(WIDGETS, widget({"size": "x", "on": "yes", "ratio": 3}, "z")),
        get(WIDGETS, accept=TABLE),
        get(f"{WIDGETS}/x", accept=TABLE),
        get(f"{WIDGETS}?includeObject=None", accept=TABLE),
    ],
    "custom objects: paths of columns": [
        *serving(
            ANYTHING,
            additionalPrinterColumns=[
                *(
                    {"name": name, "type": "string", "jsonPath": path}
                    for name, path in _PATHS.items()
                ),
                {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
            ],
        ),
        post(
            WIDGETS,
            widget(
                {"rows": _ROWS, "since": "soon"},
                metadata={"name": "x", "labels": {"a.b/c": "v"}},
            ),
        ),
        post(WIDGETS, widget({"rows": "none", "since": 3}, "y")),
        get(WIDGETS, accept=TABLE),
    ],
    "custom objects: a column that can't be read": [
        *serving(
            ANYTHING,
            additionalPrinterColumns=[
                {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                {"name": "Double", "type": "string", "jsonPath": '.spec["color"]'},
                {"name": "Size", "type": "string", "jsonPath": ".spec.size"},
            ],
        ),
        post(WIDGETS, widget({"color": "red", "size": "big"})),
        get(WIDGETS, accept=TABLE),
    ],
    "custom objects: no columns": [
        *serving(ANYTHING),
        post(WIDGETS, widget({})),
        get(f"{WIDGETS}?labelSelector=none", accept=TABLE),
        get(f"{WIDGETS}/x", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
    ],
    "custom objects: selectable fields": [
        *serving(
            struct(spec=struct(color=TEXT, size=NUMBER, on={"type": "boolean"})),
            selectableFields=[
                {"jsonPath": ".spec.color"},
                {"jsonPath": ".spec.size"},
                {"jsonPath": ".spec.on"},
            ],
        ),
        post(WIDGETS, widget({"color": "red", "size": 1, "on": True}, "a")),
        post(WIDGETS, widget({"color": "blue", "size": 2, "on": False}, "b")),
        post(WIDGETS, widget({}, "c")),
        *(
            get(
                f"{WIDGETS}?fieldSelector={selector}",
                accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            )
            for selector in (
                "spec.color%3Dred",
                "spec.color%21%3Dred",
                "spec.size%3D2",
                "spec.on%3Dfalse",
                "spec.color%3D",
                "spec.color%3Dred,metadata.name%3Da",
                "spec.other%3D1",
            )
        ),
    ],
    "custom objects: cluster scope": [
        *serving(ANYTHING, spec={"scope": "Cluster"}),
        post(ALL_WIDGETS, widget({})),
        post(WIDGETS, widget({}, "y")),
        post(ALL_WIDGETS, widget({}, metadata={"name": "z", "namespace": "other"})),
        get(f"{ALL_WIDGETS}/x"),
        get(WIDGETS),
        delete(f"{ALL_WIDGETS}/x"),
    ],
    "custom objects: versions": [
        post(
            DEFINITIONS,
            definition(
                "Widget",
                version("v1", struct(spec=struct(a=NUMBER, b=TEXT))),
                version(
                    "v2", struct(spec=struct(a=NUMBER, c={**TEXT, "default": "d"})), storage=False
                ),
                version("v3", ANYTHING, storage=False, served=False),
            ),
        ),
        established(),
        post(WIDGETS, widget({"a": 1, "b": "x"})),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets/x"),
        get(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets"),
        get(f"/apis/{GROUP}/v3/namespaces/{{ns}}/widgets"),
        patch(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets/x", {"spec": {"a": 2}}),
        get(f"{WIDGETS}/x"),
        post(
            f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets",
            widget({"a": 1}, "y", apiVersion=f"{GROUP}/v2"),
        ),
        get(f"{WIDGETS}/y"),
        post(f"/apis/{GROUP}/v2/namespaces/{{ns}}/widgets", widget({"a": 1}, "z")),
        Step("GET", f"/apis/{GROUP}", until="v2"),
        Step("GET", f"/apis/{GROUP}/v2", until="widgets"),
    ],
    "custom objects: discovery": [
        *serving(
            ANYTHING,
            subresources={"status": {}, "scale": _SCALE},
            spec={
                "names": {
                    "plural": "widgets",
                    "kind": "Widget",
                    "shortNames": ["wd"],
                    "categories": ["all", "things"],
                }
            },
        ),
        Step("GET", f"/apis/{GROUP}", until="v1"),
        Step("GET", f"/apis/{GROUP}/v1", until="widgets/scale"),
        delete(CRD),
        Step("GET", f"/apis/{GROUP}/v1", until="404"),
        Step("GET", f"/apis/{GROUP}", until="404"),
        get(WIDGETS),
    ],
    "custom objects: deletion of the definition": [
        *serving(ANYTHING),
        post(WIDGETS, widget({})),
        post(WIDGETS, widget({}, metadata={"name": "f", "finalizers": ["a.b/c"]})),
        delete(CRD),
        Step("GET", CRD, until="InstanceDeletionInProgress"),
        Step("GET", f"{WIDGETS}/x", until="NotFound"),
        Step("GET", f"{WIDGETS}/f", until="deletionTimestamp"),
        post(WIDGETS, widget({}, "late")),
        patch(f"{WIDGETS}/f", {"metadata": {"finalizers": []}}),
        Step("GET", CRD, until="NotFound"),
        get(f"{WIDGETS}/f"),
    ],
}
