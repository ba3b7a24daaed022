"""OpenAPI definitions of custom resources: their schema, as the definition gives it.

Version 3 has the schema as it is. Version 2 knows less: what it can't say is left out, as on the
real server, so that clients which validate by it do not refuse what the server accepts.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from mooring.cluster.apiserver.customresources.resource import CustomResource
from mooring.cluster.apiserver.customresources.structural import EMBEDDED, INT_OR_STRING, PRESERVE
from mooring.cluster.apiserver.store import Object

_TEXT: Final = {"type": "string"}
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_KIND: Final = "x-kubernetes-group-version-kind"
_OF_ANYTHING: Final = ("type", "description", _KIND)  # in version 2
_NOT_IN_V2: Final = ("anyOf", "oneOf", "not", "nullable")


def definition_name(resource: CustomResource) -> str:
    """Such as `com.example.v1.Widget`."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def definition_v3(resource: CustomResource, refs: str) -> Object:
    """The definition in version 3; `refs` is where the document has its definitions."""
    return _definition(resource, resource.served.document, refs)


def definition_v2(resource: CustomResource, refs: str) -> Object:
    """The definition in version 2."""
    document = resource.served.document
    if document.get(PRESERVE):  # nothing is known of the whole
        found = _definition(resource, document, refs)
        return {key: part for key, part in found.items() if key in _OF_ANYTHING}
    return _definition(resource, _as_v2(document), refs)


def list_definition(resource: CustomResource, refs: str) -> Object:
    """The definition of a list."""
    kind = {"group": resource.group, "kind": resource.list_kind, "version": resource.version}
    items = {"type": "array", "items": {"$ref": refs + definition_name(resource)}}
    return {
        "type": "object",
        "description": f"{resource.list_kind} is a list of {resource.kind}",
        "required": ["items"],
        "properties": {"apiVersion": _TEXT, "items": items, "kind": _TEXT},
        _KIND: [kind],
    }


def _definition(resource: CustomResource, document: Object, refs: str) -> Object:
    found = copy.deepcopy(document)
    found.pop(PRESERVE, None)
    meta = {"allOf": [{"$ref": refs + _META}]} if "components" in refs else {"$ref": refs + _META}
    about = (document.get("properties") or {}).get("metadata", {}).get("description")
    if about:
        meta["description"] = about
    own = {"apiVersion": _TEXT, "kind": _TEXT}
    properties = {**own, **(found.get("properties") or {}), "metadata": meta}
    kind = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    found |= {"properties": properties, _KIND: [kind]}
    if resource.served.selectable:
        found["x-kubernetes-selectable-fields"] = [
            {"fieldPath": path} for path in resource.served.selectable
        ]
    return found


def _as_v2(schema: Any) -> Any:
    """A schema without what version 2 can't say."""
    if not isinstance(schema, dict):
        return schema
    found = {key: part for key, part in schema.items() if key not in _NOT_IN_V2}
    if schema.get(INT_OR_STRING) or schema.get("nullable"):
        found.pop("type", None)
    if schema.get(PRESERVE) and not schema.get(EMBEDDED):
        found.pop("properties", None)
        found.pop("items", None)
    if isinstance(found.get("properties"), dict):
        found["properties"] = {name: _as_v2(one) for name, one in found["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in found:
            found[word] = _as_v2(found[word])
    if isinstance(found.get("allOf"), list):
        found["allOf"] = [_as_v2(one) for one in found["allOf"]]
    return found
