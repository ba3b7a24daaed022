"""The description of `/lens/v1` as OpenAPI 3.1, made from the structs of its answers.

`python -m mooring.ui.openapi` prints it; it is checked in as `lens-v1.openapi.json`.
"""

from __future__ import annotations

import json
import sys
from inspect import cleandoc
from typing import Any, Final

import msgspec

from mooring.lens.api import (
    DEPTHS,
    LensQueue,
    LensState,
    NodePage,
    NodesFrame,
    QueueFrame,
    RecordPage,
    RecordsFrame,
    ResetFrame,
)
from mooring.lens.explanation import Explanation
from mooring.lens.live_views import MOST_RECORDS
from mooring.lens.waiting_list import MOST_ROWS, PLACES
from mooring.ui.lens import OUTCOMES

_STRUCTS: Final = (
    LensState,
    LensQueue,
    NodePage,
    RecordPage,
    Explanation,
    NodesFrame,
    QueueFrame,
    RecordsFrame,
    ResetFrame,
)
_REF: Final = "#/components/schemas/{name}"


def document() -> dict[str, Any]:
    """All of it."""
    _, schemas = msgspec.json.schema_components(_STRUCTS, ref_template=_REF)
    for schema in schemas.values():
        if "description" in schema:  # a docstring, which Python indents as in the source until 3.12
            schema["description"] = cleandoc(schema["description"])
    schemas["Status"] = {
        "type": "object",
        "description": "Why there is no answer, as from any Kubernetes component.",
        "properties": {
            "kind": {"const": "Status"},
            "message": {"type": "string"},
            "reason": {"type": "string"},
            "code": {"type": "integer"},
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mooring lens",
            "version": "1",
            "description": "What a running scheduler sees, decided and would decide. Read-only.",
        },
        "servers": [{"url": "/lens/v1"}],
        "security": [{"bearer": []}],
        "paths": _paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> dict[str, Any]:
    pod = [_in_path("namespace"), _in_path("name")]
    return {
        "/state": _get("The cluster in columns", LensState, [_namespace()]),
        "/stream": {
            "get": {
                "summary": "Changes as Server-Sent Events: nodes, queue, records, reset",
                "parameters": [_namespace()],
                "responses": {
                    "200": {
                        "description": "NodesFrame, QueueFrame, RecordsFrame, ResetFrame",
                        "content": {"text/event-stream": {"schema": {"type": "string"}}},
                    },
                    **_refusals(),
                },
            }
        },
        "/queue": _get(
            "Pods without a node",
            LensQueue,
            [
                _namespace(),
                _query("place", {"enum": list(PLACES.values())}),
                _query("limit", _whole(MOST_ROWS)),
            ],
        ),
        "/nodes/{name}": _get("One node and its pods", NodePage, [_in_path("name")]),
        "/pods/{namespace}/{name}/explain": _get(
            "Why a pod is where it is, or is not",
            Explanation,
            [
                *pod,
                _query("depth", {"enum": list(DEPTHS), "default": "groups"}),
                _query("node", {"type": "string"}),
                _query("preemption", {"enum": ["true", "false"], "default": "true"}),
                _query("at", {"type": "integer", "minimum": 1}),
            ],
        ),
        "/records": _get(
            "Attempts, the newest first",
            RecordPage,
            [
                _namespace(),
                _query("limit", _whole(MOST_RECORDS)),
                _query("before", {"type": "integer", "minimum": 1}),
                _query("pod", {"type": "string"}),
                _query("outcome", {"enum": list(OUTCOMES)}),
                _query("since", {"type": "string", "format": "date-time"}),
            ],
        ),
        "/snapshot": {
            "get": {
                "summary": "The cluster as a file for `mooring explain --from` and others",
                "responses": {
                    "200": {"description": "The file", "content": {"application/gzip": {}}},
                    **_refusals(),
                },
            }
        },
        "/what-if": _post("The answer of `mooring what-if -o json`"),
        "/capacity": _post("The answer of `mooring capacity -o json`"),
        "/openapi.json": {
            "get": {
                "summary": "This description",
                "responses": {
                    "200": {"description": "OpenAPI 3.1", "content": {"application/json": {}}}
                },
            }
        },
    }


def _get(summary: str, answer: type, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    schema = {"$ref": _REF.format(name=answer.__name__)}
    return {
        "get": {
            "summary": summary,
            "parameters": parameters,
            "responses": {
                "200": {
                    "description": summary,
                    "content": {"application/json": {"schema": schema}},
                },
                **_refusals(),
            },
        }
    }


def _post(summary: str) -> dict[str, Any]:
    body = {"content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "post": {
            "summary": summary,
            "requestBody": {**body, "description": "The flags of the command, in camelCase"},
            "responses": {"200": {"description": summary, **body}, **_refusals()},
        }
    }


def _refusals() -> dict[str, Any]:
    schema = {"schema": {"$ref": _REF.format(name="Status")}}
    refused = {"description": "Refused", "content": {"application/json": schema}}
    return {"4XX": refused, "5XX": refused}


def _namespace() -> dict[str, Any]:
    return _query("namespace", {"type": "string"})


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _whole(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


def text() -> str:
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
