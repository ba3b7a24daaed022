"""Steps of scripts about custom objects, which are Widgets."""

from __future__ import annotations

from typing import Any

from tests.cluster.apiserver.compared_requests import (
    Object,
    Step,
    patch,
    post,
)
from tests.cluster.apiserver.scripts_definitions import (
    DEFINITIONS,
    GROUP,
    definition,
    established,
    version,
)

APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/widgets"
ALL_WIDGETS = f"/apis/{GROUP}/v1/widgets"
CRD = f"{DEFINITIONS}/widgets.{GROUP}"

TEXT: Object = {"type": "string"}
NUMBER: Object = {"type": "integer"}


def struct(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def texts(**more: Any) -> Object:
    return {"type": "array", "items": TEXT, **more}


def widget(spec: Any = None, name: str = "x", **fields: Any) -> Object:
    found: Object = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
        **fields,
    }
    return {key: value for key, value in found.items() if value is not None}


def serving(schema: Any, **fields: Any) -> list[Step]:
    """The first steps of a script: a definition with this schema, waited for."""
    spec = fields.pop("spec", {})
    return [
        post(DEFINITIONS, definition("Widget", version("v1", schema, **fields), **spec)),
        established(),
    ]


def tries(*specs: Any) -> list[Step]:
    """Create widgets with these specs, as a dry run."""
    return [post(f"{WIDGETS}?dryRun=All", widget(spec)) for spec in specs]


def apply(body: Any, manager: str = "me", query: str = "", path: str = f"{WIDGETS}/x") -> Step:
    return Step("PATCH", f"{path}?fieldManager={manager}{query}", body, APPLY)


def strictly(mode: str, spec: Any) -> list[Step]:
    """Create, update and patch with this validation of fields."""
    query = f"?fieldValidation={mode}&dryRun=All"
    body = widget(spec, "old")
    steps = [
        post(f"{WIDGETS}{query}", widget(spec, "new")),
        Step("PATCH", f"{WIDGETS}/old{query}&fieldManager=me", body, APPLY),
    ]
    if mode != "Strict":  # that answer quotes the whole object
        steps.append(patch(f"{WIDGETS}/old{query}", {"spec": spec}))
    return steps
