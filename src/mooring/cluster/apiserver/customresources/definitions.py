"""Defaults of CustomResourceDefinitions, and what the server sets in them."""

from __future__ import annotations

from typing import Final

from mooring.cluster.apiserver.store import Object

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"


def set_defaults_definition(value: Object) -> None:
    spec = value.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind", "")
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    conversion = spec.setdefault("conversion", {})
    conversion.setdefault("strategy", "None")
    if conversion["strategy"] == "None":
        conversion.pop("webhook", None)
    if spec.get("preserveUnknownFields") is False:
        del spec["preserveUnknownFields"]


def prepare_definition(value: Object, old: Object | None) -> None:
    """The status of a new definition; the storage version is among the stored ones ever after."""
    status = value.setdefault("status", {})
    if old is None:
        status = value["status"] = {"acceptedNames": {"plural": "", "kind": ""}}
    stored = list(status.get("storedVersions") or ())
    for version in value.get("spec", {}).get("versions") or ():
        name = version.get("name", "")  # validated later
        if version.get("storage") and name not in stored:
            stored.append(name)
            break
    if stored:
        status["storedVersions"] = stored
    if status.get("conditions"):
        empty = {"type": "", "status": ""}  # users may write conditions without
        status["conditions"] = [{**empty, **one} for one in status["conditions"]]


def begin_deletion(value: Object, now: str) -> None:
    """Mark a definition that is deleted; its objects follow."""
    meta = value["metadata"]
    if FINALIZER not in (meta.get("finalizers") or ()):
        meta["finalizers"] = [*(meta.get("finalizers") or ()), FINALIZER]
    meta["deletionTimestamp"] = now
    said = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    condition = condition_of("Terminating", "True", "InstanceDeletionPending", said)
    status = value.setdefault("status", {})
    status["conditions"] = merged_conditions(status.get("conditions") or [], [condition], now)


def condition_of(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def merged_conditions(old: list[Object], new: list[Object], now: str) -> list[Object]:
    """Conditions by type; the time is that of the last change of a status."""
    found = {one["type"]: one for one in old}
    for one in new:
        before = found.get(one["type"])
        is_same = before is not None and before["status"] == one["status"]
        since = before.get("lastTransitionTime", now) if before is not None and is_same else now
        found[one["type"]] = {
            "type": one["type"],
            "status": one["status"],
            "lastTransitionTime": since,
            "reason": one["reason"],
            "message": one["message"],
        }
    return list(found.values())
