"""ControllerRevisions: the former templates of a DaemonSet or StatefulSet, for `rollout undo`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from mooring.client.errors import ConflictError, NotFound
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.base import REVISION_HASH, BuiltInController, owner_reference

REVISIONS: Final = known("controllerrevisions", "apps")
_HISTORY: Final = 10  # old revisions that are kept


def keep_revisions(
    controller: BuiltInController, owner: Object, template: bytes, mark: str, live: Collection[str]
) -> None:
    """Record the current template under the `mark` of its pods; delete old ones that no pod has."""
    present = sorted(_revisions(controller, owner), key=_number)
    newest = _number(present[-1]) if present else 0
    current = next((one for one in present if _hash(one) == mark), None)
    meta = owner["metadata"]
    if current is None:
        _create(controller, owner, template, mark, newest + 1)
    elif _number(current) < newest:  # rolled back

        def renumber(value: Object) -> None:
            value["revision"] = newest + 1

        name = current["metadata"]["name"]
        controller.verbs.modify(REVISIONS, meta["namespace"], name, renumber)
    limit = owner["spec"].get("revisionHistoryLimit")
    limit = _HISTORY if limit is None else int(limit)
    old = [one for one in present if _hash(one) != mark and _hash(one) not in live]
    for one in old[: max(len(old) - limit, 0)]:
        try:
            controller.verbs.delete(REVISIONS, meta["namespace"], one["metadata"]["name"])
        except NotFound:
            continue


def _revisions(controller: BuiltInController, owner: Object) -> list[Object]:
    kin = controller.owner_graph.dependents(owner["metadata"]["uid"])
    read = (
        controller.read(REVISIONS, (namespace, name))
        for of, namespace, name in kin
        if of == REVISIONS.key
    )
    return [one for one in read if one is not None]


def _create(
    controller: BuiltInController, owner: Object, template: bytes, mark: str, number: int
) -> None:
    meta = owner["metadata"]
    copy: dict[str, Any] = msgspec.json.decode(template)
    labels = (copy.get("metadata") or {}).get("labels") or {}
    value = {
        "metadata": {
            "name": mark if mark.startswith(f"{meta['name']}-") else f"{meta['name']}-{mark}",
            "labels": {**labels, REVISION_HASH: mark},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": {"spec": {"template": {**copy, "$patch": "replace"}}},
        "revision": number,
    }
    try:
        controller.verbs.create(REVISIONS, value, namespace=meta["namespace"])
    except ConflictError:
        return  # of an earlier owner with this name; it is collected soon


def _number(revision: Object) -> int:
    return int(revision.get("revision") or 0)


def _hash(revision: Object) -> str:
    return str((revision["metadata"].get("labels") or {}).get(REVISION_HASH, ""))
