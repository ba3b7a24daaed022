"""The rules for CustomResourceDefinitions, with kube-apiserver's messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mooring.cluster.apiserver import names
from mooring.cluster.apiserver.customresources.json_paths import BadPath, json_path, schema_at
from mooring.cluster.apiserver.customresources.schema_rules import validate_schema
from mooring.cluster.apiserver.errors import (
    ErrorList,
    FieldError,
    duplicate,
    invalid_value,
    invalid_values,
    required,
    unsupported,
)
from mooring.cluster.apiserver.store import Object

APPROVED: Final = "api-approved.kubernetes.io"
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_BAD_1035: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    "byte", "date", "date-time", "double", "float", "int32", "int64", "password",
)  # fmt: skip
_LONGEST_WARNING: Final = 256  # characters
_SAID_ALIKE: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
NO_WEBHOOKS: Final = (
    "conversion by webhook is not supported: this server calls no webhooks; serve the versions "
    'with strategy "None"'
)


def validate_definition(value: Object) -> ErrorList:
    """What is wrong with a new definition."""
    spec = value.get("spec") or {}
    name = value["metadata"].get("name", "")
    found: ErrorList = []
    if name != f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}":
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(invalid_value("metadata.name", name, why))
    return [*found, *_validate(value)]


def validate_definition_update(new: Object, old: Object) -> ErrorList:
    """What is wrong with a changed definition; some of it can't change once it is established."""
    spec, before = new.get("spec", {}), old.get("spec", {})
    spec.setdefault("versions", [])
    found: ErrorList = []
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
        for field in ("scope", "group"):
            if spec.get(field) != before.get(field):
                found.append(_immutable(f"spec.{field}", spec.get(field)))
        for field in ("plural", "kind"):
            name = (spec.get("names") or {}).get(field)
            if name != (before.get("names") or {}).get(field):
                found.append(_immutable(f"spec.names.{field}", name))
    return [*found, *_validate(new)]


def _immutable(field: str, value: Any) -> FieldError:
    return invalid_value(field, value, "field is immutable")


def _validate(value: Object) -> Iterator[FieldError]:
    spec = value.get("spec") or {}
    given = spec.get("names") or {}
    group = spec.get("group", "")
    if not group:
        yield required("spec.group")
    else:
        faults = names.subdomain_faults(group)
        yield from invalid_values("spec.group", group, faults)
        if not faults and "." not in group:
            yield invalid_value("spec.group", group, "should be a domain with at least one dot")
    yield from _approval(value["metadata"], group)
    scope = spec.get("scope", "")
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield invalid_value("spec.preserveUnknownFields", True, why)
    yield from _versions(spec)
    yield from _names(given)
    yield from _conversion(spec.get("conversion") or {})
    yield from _stored_versions(spec, value.get("status") or {})


def _approval(meta: Object, group: str) -> Iterator[FieldError]:
    """Groups of the Kubernetes project need its approval, or a word why there is none."""
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return
    field = f"metadata.annotations[{APPROVED}]"
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    found = (meta.get("annotations") or {}).get(APPROVED, "")
    if not found:
        why = f'protected groups must have approval annotation "{APPROVED}", {see}'
        yield required(field, why)
    elif not found.startswith(("unapproved", "https://", "http://")):
        why = f'protected groups must have approval annotation "{APPROVED}" with either a URL or a '
        yield invalid_value(field, found, f'{why}reason starting with "unapproved", {see}')


# --- versions -------------------------------------------------------------------------------------


def _versions(spec: Object) -> Iterator[FieldError]:
    versions: list[Object] | None = spec.get("versions")
    listed = versions or []
    found = [one.get("name", "") for one in listed]
    alike = {
        word: all(one.get(word) == listed[0].get(word) for one in listed)
        for word in _SAID_ALIKE
        if listed
    }
    if len(set(found)) < len(found):
        yield _about_versions(versions, "must contain unique version names")
    for index, version in enumerate(listed):
        yield from _version(version, f"spec.versions[{index}]", alike, is_first=not index)
    if sum(bool(one.get("storage")) for one in listed) != 1:
        yield _about_versions(versions, "must have exactly one version marked as storage version")
    if listed and found[0] and _LABEL_1035.fullmatch(found[0]) is None:
        yield invalid_value("spec.version", found[0], _BAD_1035)


def _about_versions(versions: list[Object] | None, why: str) -> FieldError:
    """The message quotes the versions as Go structs."""
    if versions is None:
        return invalid_value("spec.versions", None, why)
    shown = [
        {
            "Name": one.get("name", ""),
            "Served": bool(one.get("served")),
            "Storage": bool(one.get("storage")),
            "Deprecated": bool(one.get("deprecated")),
            "DeprecationWarning": one.get("deprecationWarning"),
            "Schema": None,
            "Subresources": None,
            "AdditionalPrinterColumns": None,
            "SelectableFields": None,
        }
        for one in versions
    ]
    return invalid_value("spec.versions", shown, why)


def _version(
    version: Object, field: str, alike: dict[str, bool], *, is_first: bool
) -> Iterator[FieldError]:
    """One version; what all versions say alike is reported once, at the place for all."""
    name = version.get("name", "")
    if _LABEL_1035.fullmatch(name) is None:
        yield invalid_value(f"{field}.name", name, _BAD_1035)
    yield from _deprecation(version, f"{field}.deprecationWarning")
    places = {
        word: f"spec.{common}" if alike[word] else f"{field}.{word}"
        for word, common in _SAID_ALIKE.items()
    }
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        yield required(f"{field}.schema.openAPIV3Schema")
    elif is_first or not alike["schema"]:
        yield from validate_schema(schema, f"{places['schema']}.openAPIV3Schema")
    if is_first or not alike["subresources"]:
        yield from _scale((version.get("subresources") or {}).get("scale"), places["subresources"])
    if is_first or not alike["additionalPrinterColumns"]:
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column(column, f"{places['additionalPrinterColumns']}[{index}]")
    if is_first or not (alike["selectableFields"] and alike["schema"]):
        selectable = version.get("selectableFields") or []
        yield from _selectable(selectable, schema or {}, places["selectableFields"])


def _deprecation(version: Object, field: str) -> Iterator[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield invalid_value(field, warning, "can only be set for deprecated versions")
    if not warning:
        yield invalid_value(field, warning, "must not be an empty string")
    if len(warning) > _LONGEST_WARNING:
        why = f"must be <= {_LONGEST_WARNING} characters long"
        yield invalid_value(field, warning, why)
    odd = next((at for at, letter in enumerate(warning) if not letter.isprintable()), None)
    if odd is not None:
        why = "must only contain printable UTF-8 characters; non-printable character found at index"
        yield invalid_value(field, warning, f"{why} {odd}")


def _stored_versions(spec: Object, status: Object) -> Iterator[FieldError]:
    stored: list[str] = status.get("storedVersions") or []
    if not stored:
        why = "must have at least one stored version"
        yield invalid_value("status.storedVersions", status.get("storedVersions"), why)
        return
    versions = spec.get("versions") or ()
    known = {one.get("name") for one in versions}
    storage = [one.get("name") for one in versions if one.get("storage")]
    # Of several storage versions the last one counts; of equal ones, the first is forgotten.
    if storage and (storage[-1] not in stored or len(storage) > len(set(storage))):
        why = f"must have the storage version {storage[-1]}"
        yield invalid_value("status.storedVersions", stored, why)
    for index, one in enumerate(stored):
        if one not in known:
            why = (
                f"missing from spec.versions; {one} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {one} and removes {one} from status.storedVersions"
            )
            yield invalid_value(f"status.storedVersions[{index}]", one, why)


# --- names ----------------------------------------------------------------------------------------


def _names(given: Object) -> Iterator[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        name = given.get(field, "")
        place = f"spec.names.{field}"
        if not name:
            yield required(place)
        elif field in ("kind", "listKind"):
            if _LABEL_1035.fullmatch(name.lower()) is None:
                why = f"may have mixed case, but should otherwise match: {_BAD_1035}"
                yield invalid_value(place, name, why)
        elif _LABEL_1035.fullmatch(name) is None:
            yield invalid_value(place, name, _BAD_1035)
    for field in ("shortNames", "categories"):
        for index, name in enumerate(given.get(field) or ()):
            if _LABEL_1035.fullmatch(name) is None:
                yield invalid_value(f"spec.names.{field}[{index}]", name, _BAD_1035)
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        why = "kind and listKind may not be the same"
        yield invalid_value("spec.names.listKind", given["listKind"], why)


def _conversion(conversion: Object) -> Iterator[FieldError]:
    strategy = conversion.get("strategy", "None")
    if strategy == "Webhook":
        yield invalid_value("spec.conversion.strategy", strategy, NO_WEBHOOKS)
    elif strategy != "None":
        yield unsupported("spec.conversion.strategy", strategy, ("None", "Webhook"))


# --- paths ----------------------------------------------------------------------------------------


def _scale(scale: Object | None, field: str) -> Iterator[FieldError]:
    if scale is None:
        return
    for word, roots in (
        ("specReplicasPath", (".spec",)),
        ("statusReplicasPath", (".status",)),
        ("labelSelectorPath", (".spec", ".status")),
    ):
        path, place = scale.get(word, ""), f"{field}.scale.{word}"
        if not path:
            if word != "labelSelectorPath":
                yield required(place)
            continue
        if not path.startswith("."):
            yield invalid_value(place, path, "must be a simple json path starting with .")
        elif not path.startswith(tuple(f"{root}." for root in roots)):
            listed = " or ".join(roots)
            under = f"either {listed}" if len(roots) > 1 else listed
            yield invalid_value(place, path, f"should be a json path under {under}")


def _column(column: Object, field: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(f"{field}.name")
    kind, types = column.get("type", ""), ",".join(_COLUMN_TYPES)
    if not kind:
        yield required(f"{field}.type", f"must be one of {types}")
    elif kind not in _COLUMN_TYPES:
        yield invalid_value(f"{field}.type", kind, f"must be one of {types}")
    form = column.get("format", "")
    if form and form not in _COLUMN_FORMATS:
        listed = ",".join(_COLUMN_FORMATS)
        yield invalid_value(f"{field}.format", form, f"must be one of {listed}")
    path = column.get("jsonPath", "")
    if not path:
        yield required(f"{field}.JSONPath")
    elif not path.startswith("."):
        why = "must be a simple json path starting with ."
        yield invalid_value(f"{field}.JSONPath", path, why)


def _selectable(fields: list[Object], schema: Object, place: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, one in enumerate(fields):
        path, field = one.get("jsonPath", ""), f"{place}[{index}].jsonPath"
        if not path:
            yield required(field)
            continue
        if path in seen:
            yield duplicate(field, path)
            continue
        try:
            found = schema_at(schema, json_path(path, whole_keys=True))
        except BadPath as error:
            yield invalid_value(field, path, f"is an invalid path: {error}")
            continue
        seen.add(path)
        if found is None or path.startswith(".metadata"):
            why = "is an invalid path: does not refer to a valid field"
            yield invalid_value(field, path, why)
        elif found.get("type") not in ("string", "boolean", "integer"):
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with formats are allowed."
            )
            yield invalid_value(field, path, why)
