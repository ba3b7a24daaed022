"""Objects from YAML, files, dictionaries, structs and builders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from mooring.api.codec import DecodeError, to_builtins, yaml_documents
from mooring.api.meta import Object as ApiObject
from mooring.api.unreadable import why_unreadable
from mooring.cache.node import Node
from mooring.cache.pods import Pod
from mooring.cluster.apiserver.decoding import decode_object, fit
from mooring.cluster.apiserver.errors import bad_request
from mooring.cluster.apiserver.options import WriteOptions
from mooring.cluster.apiserver.patching.patch import MERGE_PATCH, STRATEGIC_PATCH, patched
from mooring.cluster.apiserver.requests import JSON
from mooring.cluster.apiserver.resources import RESOURCES, Resource, by_kind
from mooring.cluster.apiserver.store import Object
from mooring.cluster.apiserver.verbs import Verbs
from mooring.lens.exports import manifest
from mooring.lens.reading import is_snapshot, read_snapshot
from mooring.lens.snapshot import Snapshot

_SERVER_FIELDS: Final = ("uid", "resourceVersion", "creationTimestamp")
# What a dump of a cluster has, and a server refuses or sets itself; uids stay, for the owners.
_DUMPED_FIELDS: Final = ("resourceVersion", "creationTimestamp", "managedFields", "selfLink")
# A snapshot has no templates, without which these are nothing.
_WITHOUT_TEMPLATE: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")


def read_objects(*given: Any) -> Iterator[Object]:
    """Every object in the arguments.

    Text is YAML or JSON with one or more documents; a `Path` is a file of it, or a snapshot.
    ValueError if something in it is not an object.
    """
    for value in given:
        if isinstance(value, Path) and is_snapshot(value):
            value = read_snapshot(value)
        if isinstance(value, Snapshot):
            found = (one for one in value.cluster.objects() if one.KIND not in _WITHOUT_TEMPLATE)
            yield from map(manifest, found)
        elif isinstance(value, Path):
            yield from _of_dump(list(_documents(value.read_text(encoding="utf-8"), str(value))))
        elif isinstance(value, str):
            yield from _of_dump(list(_documents(value, "manifest")))
        elif isinstance(value, Mapping):
            yield from _flattened(dict(value), "object")
        elif isinstance(value, Pod):
            yield _plain(value.api)
        elif isinstance(value, Node):
            yield _plain(value.api)
            yield from (_plain(pod.api) for pod in value.pods)
        elif isinstance(value, ApiObject):
            yield _plain(value)
        else:
            raise ValueError(f"expected a manifest or an object, got {type(value).__name__}")


def put(verbs: Verbs, value: Object) -> Object:
    """Create an object, or merge it into the existing one, as the first `kubectl apply` would."""
    of = resource_of(value, verbs.custom.by_kind)
    value, strangers = decode_object(of, msgspec.json.encode(value), JSON)
    if strangers:  # report misspelt fields instead of dropping them
        start = f'{of.kind} in version "{of.version}" cannot be handled as a {of.kind}'
        raise bad_request(f"{start}: strict decoding error: {', '.join(strangers)}")
    meta = value.setdefault("metadata", {})
    namespace = str(meta.get("namespace") or "default") if of.namespaced else ""
    name = str(meta.get("name", ""))
    if not name or verbs.store.get(of, namespace, name) is None:
        options = WriteOptions(uid=str(meta.get("uid") or ""))
        made = verbs.create(of, value, namespace=namespace, options=options)
        if value.get("status") and "status" in of.subresources:
            return _with_status(verbs, of, made, value["status"])
        return made
    meta.pop("uid", None)  # of a dump: here the object has another one already
    body = msgspec.json.encode(value)
    merge = _merge_patch(of)

    def lay_over(current: Object) -> Object:
        return fit(of, patched(of, current, body, merge))

    changed = verbs.modify(of, namespace, name, lay_over)
    if "status" in value and "status" in of.subresources:
        changed = verbs.modify(of, namespace, name, lay_over, subresource="status")
    return changed


def _with_status(verbs: Verbs, of: Resource, made: Object, status: Object) -> Object:
    """Nodes from a file offer what it says, and pods are as far as they were."""
    meta = made["metadata"]
    change = msgspec.json.encode({"status": status})

    def lay_over(current: Object) -> Object:
        return fit(of, patched(of, current, change, _merge_patch(of)))

    namespace = meta.get("namespace", "")
    return verbs.modify(of, namespace, meta["name"], lay_over, subresource="status")


def _merge_patch(of: Resource) -> str:
    """Custom objects have no strategic merge patches."""
    return MERGE_PATCH if of.is_custom else STRATEGIC_PATCH


def resource_of(
    value: Object, by_kind: Callable[[str, str], Resource | None] = by_kind
) -> Resource:
    """The resource of an object; LookupError if the server has none."""
    api_version, kind = str(value.get("apiVersion", "")), str(value.get("kind", ""))
    found = by_kind(api_version, kind)
    if found is None:
        raise LookupError(f"the server has no resource for {kind!r} in {api_version!r}")
    return found


def find_resource(word: str, custom: Iterable[Resource] = ()) -> Resource:
    """The resource with this name: `pods`, `pod`, `po`, `Pod`; LookupError if there is none."""
    for of in (*RESOURCES, *custom):
        if word.lower() in (of.name, of.singular, of.kind.lower(), *of.short):
            return of
    raise LookupError(f"expected the name of a resource such as pods or deploy, got {word!r}")


def _documents(text: str, where: str) -> Iterator[Object]:
    try:
        documents = yaml_documents(text)
    except DecodeError as error:
        raise ValueError(f"{where}: {error}") from error
    for index, document in enumerate(documents):
        if document is None:
            continue
        place = f"{where}, document {index}"
        try:
            yield from _flattened(document, place)
        except (TypeError, RecursionError) as error:  # a non-string key, a recursive object
            raise ValueError(f"{place}: {why_unreadable(error)}") from error


def _flattened(document: Any, where: str) -> Iterator[Object]:
    if not isinstance(document, dict) or not document.get("kind"):
        raise ValueError(f"{where}: expected an object with apiVersion and kind")
    if str(document["kind"]).endswith("List") and isinstance(document.get("items"), list):
        for index, item in enumerate(document["items"]):
            yield from _flattened(item, f"{where}, item {index}")
        return
    # A copy: the server takes ownership of its argument.
    copy: Object = msgspec.json.decode(msgspec.json.encode(document))
    yield copy


def _of_dump(objects: list[Object]) -> list[Object]:
    """Objects that a server has stored before, so that another one takes them.

    Owners that are not among them are forgotten: garbage collection would take what they own.
    """
    metas = [meta for one in objects if isinstance(meta := one.get("metadata"), dict)]
    uids = {meta.get("uid") for meta in metas} - {None}
    for meta in metas:
        if meta.get("uid"):
            for field in _DUMPED_FIELDS:
                meta.pop(field, None)
            owners = meta.pop("ownerReferences", None) or ()
            kept = [owner for owner in owners if owner.get("uid") in uids]
            if kept:
                meta["ownerReferences"] = kept
    return objects


def _plain(value: ApiObject) -> Object:
    plain: Object = to_builtins(value)
    for field in _SERVER_FIELDS:
        plain.get("metadata", {}).pop(field, None)
    return plain
