"""Edits as they are told: what each changes, as JSON merge patches of the objects."""

from __future__ import annotations

from typing import Any

from mooring import config as cfg
from mooring.api import codec
from mooring.api.merging import merge_patch
from mooring.api.meta import Object
from mooring.cache.pods import Pod
from mooring.framework.explaining import Edit
from mooring.lens.explanation import AppliedEdit, ObjectPatch
from mooring.lens.private import PrivateCluster


def applied(private: PrivateCluster, pod: Pod, edit: Edit, text: str) -> AppliedEdit:
    """An edit of the cluster as it is now."""
    patches = []
    for change in edit.changes:
        before = private.current(change) if change.name else pod.api
        after: Object | None = change.to(before)
        value = after if after is not None else before
        if value is None:
            continue
        patches.append(
            ObjectPatch(
                kind=value.KIND,
                name=value.metadata.name,
                namespace=value.metadata.namespace if value.NAMESPACED else "",
                patch=None if after is None else merge_patch(_fields(before), _fields(after)),
            )
        )
    if edit.plugin is not None:
        patches.append(
            ObjectPatch(
                kind=cfg.KIND,
                name=private.profile.scheduler_name,
                patch=private.configuration_patch(edit.plugin),
            )
        )
    return AppliedEdit(target=edit.target, text=text, patches=tuple(patches))


def _fields(value: Object | None) -> dict[str, Any]:
    if value is None:
        return {}
    fields: dict[str, Any] = codec.to_builtins(value)
    return fields
