"""Query parameters of requests: ListOptions, options of writes, DeleteOptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from mooring.api.selectors import Selector
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.errors import (
    ErrorList,
    bad_request,
    forbidden_field,
    invalid_kind,
    invalid_value,
    unsupported,
)
from mooring.cluster.apiserver.field_selectors import FieldSelector, parse_fields
from mooring.cluster.apiserver.label_selectors import parse_labels
from mooring.cluster.apiserver.requests import ApiRequest
from mooring.cluster.apiserver.resources import Resource
from mooring.cluster.apiserver.store import Item

_META: Final = "meta.k8s.io"
_MATCH: Final = "resourceVersionMatch"
_POLICIES: Final = ("Foreground", "Background", "Orphan", "nil")
_FALSE: Final = ("false", "0", "")
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")


class SelectionPredicate(msgspec.Struct, frozen=True):
    """Which objects a request selects."""

    namespace: str
    labels: Selector
    fields: FieldSelector

    @property
    def has_selector(self) -> bool:
        return bool(self.labels.requirements or self.fields.requirements)

    def matches(self, item: Item) -> bool:
        if self.namespace and item.namespace != self.namespace:
            return False
        if self.labels.requirements and not self.labels.matches(item.labels):
            return False
        return not self.fields.requirements or self.fields.matches(item)


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a list or a watch."""

    predicate: SelectionPredicate
    is_watch: bool = False
    version: str = ""
    match: str = ""
    limit: int = 0
    token: str = ""  # the continue token of the page before
    seconds: float = 0.0
    wants_bookmarks: bool = False
    initial: bool | None = None  # sendInitialEvents


def list_options(resource: Resource, namespace: str, query: Mapping[str, str]) -> ListOptions:
    options = ListOptions(
        predicate=SelectionPredicate(
            namespace,
            parse_labels(query.get("labelSelector", "")),
            parse_fields(resource, query.get("fieldSelector", "")),
        ),
        is_watch=flag(query, "watch"),
        version=query.get("resourceVersion", ""),
        match=query.get(_MATCH, ""),
        limit=max(_number(query, "limit"), 0),
        token=query.get("continue", ""),
        seconds=max(_number(query, "timeoutSeconds"), 0),
        wants_bookmarks=flag(query, "allowWatchBookmarks"),
        initial=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    _check(options)
    return options


def _check(options: ListOptions) -> None:
    match, is_watch = options.match, options.is_watch
    if not match and options.initial is None and not (is_watch and options.token):
        return
    field, why = _MATCH, ""
    if options.token:
        why = "resourceVersionMatch is forbidden when continue is provided"
    elif is_watch and options.initial is None:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    elif is_watch and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif not is_watch and options.initial is not None:
        field, why = "sendInitialEvents", "sendInitialEvents is forbidden for list"
    elif not is_watch and match not in ("Exact", "NotOlderThan"):
        problem = unsupported(_MATCH, match, ("Exact", "NotOlderThan", ""))
        raise invalid_kind("ListOptions", _META, "", [problem])
    elif not is_watch and not options.version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match == "Exact" and options.version == "0":
        why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if why:
        raise invalid_kind("ListOptions", _META, "", [forbidden_field(field, why)])


def read_version(options: ListOptions) -> int:
    """The resourceVersion as a number; raises kube-apiserver's error for anything else."""
    version = options.version or "0"
    if version.isdecimal() and version.isascii():
        return int(version)
    why = (
        f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": '
        "invalid syntax"
    )
    if options.is_watch:
        raise StatusError(why, code=500)
    raise bad_request(f"invalid resource version: {why}")


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean parameter: true unless it is absent, `0` or `false`."""
    return query.get(name, "").lower() not in _FALSE


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    try:
        return int(text) if text else 0
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


# --- writes ------------------------------------------------------------------------------------


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a create, an update or a patch."""

    dry_run: bool = False
    validation: str = "Warn"  # of fields: Ignore, Warn or Strict
    manager: str = ""  # the fieldManager, which owns the fields that are written
    agent: str = ""  # from the user agent; replaces a manager that is not named
    is_apply: bool = False
    part: str = ""  # the subresource that owns the fields, if another one is written
    uid: str = ""  # of an object from the dump of a cluster; others get a new one


def write_options(request: ApiRequest, kind: str) -> WriteOptions:
    """Options of a create, an update or a patch; `kind` is what messages call them."""
    query = request.query
    problems: ErrorList = []
    dry_run = query.get("dryRun", "")
    validation = query.get("fieldValidation", "")
    if dry_run not in ("", "All"):
        problems.append(unsupported("dryRun", [dry_run], ("All",)))
    if validation not in _VALIDATIONS:
        problems.append(unsupported("fieldValidation", validation, _VALIDATIONS))
    if problems:
        raise invalid_kind(kind, _META, "", problems)
    return WriteOptions(
        dry_run=dry_run == "All",
        validation=validation or "Warn",
        manager=query.get("fieldManager", ""),
        agent=request.headers.get("user-agent", "").partition("/")[0],
    )


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a deletion."""

    grace: int | None = None
    propagation: str = ""
    uid: str = ""
    version: str = ""
    dry_run: bool = False


class _Preconditions(msgspec.Struct):
    uid: str | None = None
    version: str | None = msgspec.field(default=None, name="resourceVersion")


class _DeleteBody(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: _Preconditions | None = None
    dry_run: list[str] | None = None


_read_body: Final = msgspec.json.Decoder(_DeleteBody).decode


def delete_options(request: ApiRequest) -> DeleteOptions:
    """From the body, or from the query if there is none."""
    if request.body:
        body = _delete_body(request.body)
    else:
        query = request.query
        policy, orphan = query.get("propagationPolicy"), query.get("orphanDependents")
        grace = _number(query, "gracePeriodSeconds") if "gracePeriodSeconds" in query else None
        body = _DeleteBody(
            grace_period_seconds=grace,
            propagation_policy=policy,
            orphan_dependents=None if orphan is None else flag(query, "orphanDependents"),
        )
    dry_run = body.dry_run or ([request.query["dryRun"]] if request.query.get("dryRun") else [])
    policy = body.propagation_policy or ""
    problems: ErrorList = []
    if policy and body.orphan_dependents is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(invalid_value("propagationPolicy", policy, why))
    elif policy and policy not in _POLICIES[:3]:
        problems.append(unsupported("propagationPolicy", policy, _POLICIES))
    if dry_run not in ([], ["All"]):
        problems.append(unsupported("dryRun", dry_run, ("All",)))
    if problems:
        raise invalid_kind("DeleteOptions", _META, "", problems)
    if body.orphan_dependents is not None:
        policy = "Orphan" if body.orphan_dependents else "Background"
    wanted = body.preconditions or _Preconditions()
    return DeleteOptions(
        grace=body.grace_period_seconds,
        propagation=policy,
        uid=wanted.uid or "",
        version=wanted.version or "",
        dry_run=bool(dry_run),
    )


def _delete_body(raw: bytes) -> _DeleteBody:
    try:
        body = _read_body(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why = f"couldn't get version/kind; json parse error: {error}"
        raise bad_request(why) from error
    if body.kind not in ("", "DeleteOptions"):
        version = body.api_version or "v1"
        raise bad_request(
            f'no kind "{body.kind}" is registered for version "{version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    return body
