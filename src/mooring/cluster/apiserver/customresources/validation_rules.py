"""x-kubernetes-validations: rules in CEL that values must fulfil.

`self` is the value that a rule is attached to, `oldSelf` what it was before the update; rules with
`oldSelf` are for updates only. kube-apiserver checks the types of rules against the schema and
estimates their cost; here the fields of `self` are looked up in the schema, everything else is
found out when a rule is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from mooring.cluster.apiserver.customresources.json_paths import BadPath, json_path, schema_at
from mooring.cluster.apiserver.customresources.structural import (
    EMBEDDED,
    LIST_TYPE,
    MAP_KEYS,
    OF_OBJECTS,
    PRESERVE,
    VALIDATIONS,
)
from mooring.cluster.apiserver.errors import (
    ErrorList,
    FieldError,
    invalid_value,
    required,
    shown,
    unsupported,
)
from mooring.cluster.apiserver.store import Object
from mooring.plugins.dynamicresources.cel import CelError
from mooring.plugins.dynamicresources.cel.expression import (
    CelExpression,
    ExpressionProblem,
    compile_expression,
)
from mooring.plugins.dynamicresources.cel.values import NONE, Optional

_NAMES: Final = ("self", "oldSelf")
_RULE_TYPES: Final = ("bool", "dyn", "any")
_MESSAGE_TYPES: Final = ("string", "dyn", "any")
_REASONS: Final = {
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueInvalid": "Invalid value",
    "FieldValueRequired": "Required value",
}
# Functions of kube-apiserver that the evaluator of device selectors does not have.
_MISSING: Final = ("timestamp", "duration")
_ESCAPED: Final = re.compile(r"__(underscores|dot|dash|slash)__")
_MARKS: Final = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}
_KEYWORD: Final = re.compile(
    "__(true|false|null|in|as|break|const|continue|else|for|function|if|import|let|loop|package|"
    "namespace|return|var|void|while)__"
)
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)


def field_of(name: str) -> str:
    """The field that a name in CEL stands for: `my__dash__prop` is `my-prop`."""
    if match := _KEYWORD.fullmatch(name):
        return match[1]
    return _ESCAPED.sub(lambda mark: _MARKS[mark[1]], name)


def _compiled(text: str) -> CelExpression:
    return compile_expression(text, _NAMES, field_of)


# --- of a definition ------------------------------------------------------------------------------


def rule_faults(schema: Object, field: str, *, is_object: bool) -> Iterator[FieldError]:
    """What is wrong with the rules of one schema."""
    for index, rule in enumerate(schema.get(VALIDATIONS) or ()):
        place = f"{field}.{VALIDATIONS}[{index}]"
        text = rule.get("rule", "")
        if not text.strip():
            yield required(f"{place}.rule", "rule is not specified")
        else:
            why = _fault(text, _RULE_TYPES, schema, is_object=is_object)
            if why == "type":
                why = "cel expression must evaluate to a bool"
            elif why:
                why = f"compilation failed: {why}"
            if why:
                yield invalid_value(f"{place}.rule", _as_go(rule), why)
        if message := rule.get("messageExpression"):
            why = _fault(message, _MESSAGE_TYPES, schema, is_object=is_object)
            if why:
                why = "must evaluate to a string" if why == "type" else f"compilation failed: {why}"
                told = f"messageExpression {why}"
                yield invalid_value(f"{place}.messageExpression", _as_go(rule), told)
        if "\n" in rule.get("message", ""):
            yield invalid_value(f"{place}.message", rule["message"], "must not contain line breaks")
        if (reason := rule.get("reason")) and reason not in _REASONS:
            yield unsupported(f"{place}.reason", reason, tuple(_REASONS))
        if (path := rule.get("fieldPath")) and not _is_path(path, schema):
            yield invalid_value(f"{place}.fieldPath", path, "must be a valid path")


def _fault(text: str, types: tuple[str, ...], schema: Object, *, is_object: bool) -> str:
    """Why an expression can't be used; `type` if only its type is wrong."""
    try:
        found = _compiled(text)
    except ExpressionProblem as problem:
        missing = next((name for name in _MISSING if f"'{name}'" in str(problem)), "")
        return f"{problem}; this server has no {missing}() in CEL" if missing else str(problem)
    if found.type[0] not in types:
        return "type"
    for variable, *fields in found.selections:
        if variable in _NAMES and (unknown := _unknown_field(fields, schema, is_object)):
            return f"undefined field '{unknown}'"
    return ""


def _unknown_field(fields: list[str], schema: Object, is_object: bool) -> str:
    """The first field that the schema does not have; empty if that can't be told."""
    here: Any = schema
    for name in fields:
        has_head = is_object or here.get(EMBEDDED)
        is_object = False
        if has_head and name in OF_OBJECTS:
            return ""
        properties = here.get("properties") or {}
        if name in properties:
            here = properties[name]
            continue
        is_known = here.get("type") == "object" and here.get("additionalProperties") is None
        return name if is_known and not here.get(PRESERVE) else ""
    return ""


def _is_path(path: str, schema: Object) -> bool:
    try:
        return schema_at(schema, json_path(path, whole_keys=True)) is not None
    except BadPath:
        return False


def _as_go(rule: Object) -> Object:
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


# --- of an object ---------------------------------------------------------------------------------


class _Rule:
    """One rule, compiled."""

    def __init__(self, rule: Object) -> None:
        self.text: str = rule["rule"].strip()
        self.run: CelExpression = _compiled(rule["rule"])
        self.message: str = rule.get("message") or f"failed rule: {self.text}"
        expression = rule.get("messageExpression")
        self.told: CelExpression | None = _compiled(expression) if expression else None
        self.reason: str = rule.get("reason") or "FieldValueInvalid"
        self.path: str = rule.get("fieldPath") or ""
        self.is_transition: bool = "oldSelf" in self.run.variables
        self.has_optional_old: bool = bool(rule.get("optionalOldSelf"))


class _Branch:
    """The rules of a schema and of all below it; only branches with rules are there."""

    def __init__(self, schema: Object) -> None:
        self.rules: list[_Rule] = [_Rule(rule) for rule in schema.get(VALIDATIONS) or ()]
        self.fields: dict[str, _Branch] = {}
        for name, part in (schema.get("properties") or {}).items():
            if (branch := _Branch(part)).has_rules:
                self.fields[name] = branch
        self.values: _Branch | None = _branch_of(schema.get("additionalProperties"))
        self.items: _Branch | None = _branch_of(schema.get("items"))
        self.keys: tuple[str, ...] = ()
        if schema.get(LIST_TYPE) == "map":
            self.keys = tuple(schema.get(MAP_KEYS) or ())

    @property
    def has_rules(self) -> bool:
        return bool(self.rules or self.fields or self.values or self.items)


def _branch_of(schema: Any) -> _Branch | None:
    branch = _Branch(schema) if isinstance(schema, dict) else None
    return branch if branch is not None and branch.has_rules else None


class RuleSet:
    """The rules of one version."""

    def __init__(self, document: Object) -> None:
        self._document = document
        self._root = _Branch(document)

    def validate(self, value: Object, old: Object | None, *, only: str = "") -> ErrorList:
        """The rules that an object breaks; with `only`, those of one of its fields."""
        if not self._root.has_rules:
            return []
        value = _as_cel(value, self._document)
        old = _as_cel(old, self._document)
        if only:
            branch = self._root.fields.get(only)
            if branch is None or only not in value:
                return []
            return list(_check(branch, value[only], (old or {}).get(only), only))
        return list(_check(self._root, value, old, ""))

    def unchecked(self) -> ErrorList:
        """What to say if an object is invalid before its rules are looked at."""
        if not self._root.has_rules:
            return []
        return [FieldError("<nil>", f"Invalid value: null: {_NOT_CHECKED}")]


def _as_cel(value: Any, schema: Any) -> Any:
    """A copy with numbers of the type that the schema gives them: JSON has only one."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        return {name: _as_cel(part, properties.get(name, more)) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_cel(part, schema.get("items")) for part in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        kind = schema.get("type")
        return float(value) if kind == "number" else int(value) if kind == "integer" else value
    return value


def _check(branch: _Branch, value: Any, old: Any, field: str) -> Iterator[FieldError]:
    if value is None:
        return
    for rule in branch.rules:
        if rule.is_transition and old is None and not rule.has_optional_old:
            continue
        yield from _apply(rule, value, old, field)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, part in value.items():
            if name in branch.fields:
                below = f"{field}.{name}" if field else name
                yield from _check(branch.fields[name], part, before.get(name), below)
            elif branch.values is not None:
                yield from _check(branch.values, part, before.get(name), f"{field}[{name}]")
    elif isinstance(value, list) and branch.items is not None:
        known = _by_keys(old, branch.keys)
        for index, part in enumerate(value):
            was = known.get(_keys_of(part, branch.keys)) if branch.keys else None
            yield from _check(branch.items, part, was, f"{field}[{index}]")


def _by_keys(old: Any, keys: tuple[str, ...]) -> Mapping[bytes, Any]:
    """The elements of a list before; only lists with keys know which is which."""
    if not keys or not isinstance(old, list):
        return {}
    return {_keys_of(part, keys): part for part in old}


def _keys_of(part: Any, keys: tuple[str, ...]) -> bytes:
    return msgspec.json.encode([part.get(key) for key in keys] if isinstance(part, dict) else part)


def _apply(rule: _Rule, value: Any, old: Any, field: str) -> Iterator[FieldError]:
    before = old
    if rule.has_optional_old:
        before = NONE if old is None else Optional(old, True)
    place = f"{field}{rule.path}" if field else rule.path.removeprefix(".") or "<nil>"
    try:
        passes = rule.run.evaluate(value, before)
    except CelError as error:
        why = f"{error} evaluating rule: {rule.text}"
        yield FieldError(place, f"Invalid value: {shown(_kind(value))}: {why}")
        return
    if passes is True:
        return
    message = rule.message
    if rule.told is not None:
        try:
            message = str(rule.told.evaluate(value, before)).strip() or message
        except CelError:
            message = rule.message  # as kube-apiserver: the rule counts, its words are lost
    words = _REASONS[rule.reason]
    is_plain = not isinstance(value, dict | list)
    if rule.reason in ("FieldValueInvalid", "FieldValueDuplicate") and is_plain and not rule.path:
        words = f"{words}: {shown(value)}"
    yield FieldError(place, f"{words}: {message}", rule.reason)


def _kind(value: Any) -> str:
    return {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}.get(
        type(value), "number"
    )
