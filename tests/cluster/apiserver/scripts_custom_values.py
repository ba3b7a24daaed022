"""Scripts about the values of custom objects: validation, defaults, pruning, rules in CEL."""

from __future__ import annotations

from tests.cluster.apiserver.compared_requests import (
    Object,
    Step,
    get,
    patch,
    post,
)
from tests.cluster.apiserver.custom_object_steps import (
    CRD,
    NUMBER,
    TEXT,
    WIDGETS,
    serving,
    struct,
    texts,
    tries,
    widget,
)
from tests.cluster.apiserver.scripts_definitions import (
    version,
)

_VALUES = struct(
    text={**TEXT, "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
    number={**NUMBER, "minimum": 1, "maximum": 9, "multipleOf": 2},
    open={
        **NUMBER,
        "minimum": 1,
        "exclusiveMinimum": True,
        "maximum": 9,
        "exclusiveMaximum": True,
    },
    real={"type": "number", "minimum": 0.5},
    flag={"type": "boolean"},
    mode={**TEXT, "enum": ["on", "off"]},
    level={**NUMBER, "enum": [1, 2]},
    small={**NUMBER, "format": "int32"},
    port={"x-kubernetes-int-or-string": True},
    nothing={**TEXT, "nullable": True},
    names=texts(minItems=1, maxItems=2),
    labels={
        "type": "object",
        "additionalProperties": TEXT,
        "maxProperties": 2,
        "minProperties": 1,
    },
    inner={**struct(a=TEXT, b=NUMBER), "required": ["a"]},
    rows={"type": "array", "items": {**struct(a=NUMBER), "required": ["a"]}},
    closed={"type": "object", "additionalProperties": False},
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
_FORMATS = struct(
    **{
        name: {**TEXT, "format": form}
        for name, form in {
            "date": "date",
            "time": "date-time",
            "email": "email",
            "ip": "ipv4",
            "uuid": "uuid",
            "byte": "byte",
            "duration": "duration",
            "uri": "uri",
            "host": "hostname",
            "cidr": "cidr",
            "weird": "weird",
            "color": "rgbcolor",
        }.items()
    }
)
_JUNCTORS: Object = {
    **struct(a=NUMBER, b=NUMBER, c=TEXT),
    "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    "not": {"required": ["c"], "properties": {"c": {"enum": ["no"]}}},
    "oneOf": [{"properties": {"a": {"minimum": 5}}}, {"properties": {"b": {"minimum": 5}}}],
    "allOf": [{"properties": {"a": {"maximum": 9}}}, {"properties": {"b": {"maximum": 9}}}],
}
_DEFAULTS = struct(
    color={**TEXT, "default": "red"},
    size={**NUMBER, "default": 3},
    inner={**struct(a={**TEXT, "default": "x"}, b=NUMBER), "default": {}},
    given=struct(a={**TEXT, "default": "y"}),
    rows={"type": "array", "items": struct(a={**NUMBER, "default": 1}, b=TEXT)},
    map={"type": "object", "additionalProperties": struct(a={**NUMBER, "default": 7})},
    maybe={**TEXT, "nullable": True, "default": "z"},
)
_PRUNED = struct(
    a=TEXT,
    inner=struct(b=TEXT),
    free={**struct(c=struct(d=TEXT)), "x-kubernetes-preserve-unknown-fields": True},
    rows={"type": "array", "items": struct(e=TEXT)},
    map={"type": "object", "additionalProperties": struct(f=TEXT)},
    pod={
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
    part={
        **struct(spec=struct(g=TEXT)),
        "x-kubernetes-embedded-resource": True,
    },
    port={"x-kubernetes-int-or-string": True},
)
_RULES = "x-kubernetes-validations"
_RULED: Object = {
    **struct(
        spec={
            **struct(
                min=NUMBER,
                max=NUMBER,
                name={
                    **TEXT,
                    "maxLength": 20,
                    _RULES: [
                        {"rule": "self.startsWith('a')", "message": "must start with a"},
                        {
                            "rule": "self == oldSelf",
                            "message": "is immutable",
                            "reason": "FieldValueForbidden",
                        },
                    ],
                },
                tags={
                    "type": "array",
                    "maxItems": 5,
                    "items": {**TEXT, "maxLength": 5, _RULES: [{"rule": "self.size() > 1"}]},
                },
                ports={
                    "type": "array",
                    "maxItems": 5,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        **struct(name={**TEXT, "maxLength": 9}, port=NUMBER),
                        "required": ["name"],
                        _RULES: [
                            {
                                "rule": "!has(oldSelf.port) || self.port >= oldSelf.port",
                                "messageExpression": "'port of ' + self.name + ' shrinks'",
                            }
                        ],
                    },
                },
                many={
                    "type": "array",
                    "maxItems": 3,
                    "items": {**TEXT, "maxLength": 5},
                    _RULES: [
                        {
                            "rule": "self.size() != 1",
                            "message": "must not be one",
                            "messageExpression": "'not only ' + self[1]",
                        }
                    ],
                },
                map={
                    "type": "object",
                    "maxProperties": 3,
                    "additionalProperties": {**NUMBER, _RULES: [{"rule": "self > 0"}]},
                },
                inner={
                    **struct(a=TEXT, b=TEXT),
                    _RULES: [
                        {
                            "rule": "has(self.a) || has(self.b)",
                            "fieldPath": ".a",
                            "reason": "FieldValueRequired",
                            "message": "a or b",
                        }
                    ],
                },
                odd={
                    **struct(**{"my-prop": NUMBER, "namespace": TEXT}),
                    _RULES: [{"rule": "self.my__dash__prop > 1 && self.__namespace__ != ''"}],
                },
                once={
                    **TEXT,
                    _RULES: [
                        {
                            "rule": "!oldSelf.hasValue() || oldSelf.value() == self",
                            "optionalOldSelf": True,
                        }
                    ],
                },
            ),
            _RULES: [{"rule": "!has(self.min) || self.min <= self.max"}],
        },
    ),
    _RULES: [{"rule": "self.metadata.name != 'bad'", "message": "bad name"}],
}

SCRIPTS: dict[str, list[Step]] = {
    "custom objects: values": [
        *serving(struct(spec=_VALUES)),
        *tries(
            {"text": "abc", "number": 2, "real": 0.5, "flag": True, "mode": "on"},
            {"text": "a", "number": 0, "real": 0.1, "mode": "half", "level": 3},
            {"text": "abcde", "number": 11, "names": [], "labels": {}},
            {"text": "AB", "number": 3, "names": ["a", "b", "c"]},
            {"labels": {"a": "1", "b": "2", "c": "3"}},
            {"labels": {"a": 1}},
            {"open": 1},
            {"open": 9},
            {"text": 3, "number": "2", "real": "x", "flag": "true", "names": "a", "labels": []},
            {"text": {}, "number": 1.5, "flag": 0, "names": [1], "inner": "x", "rows": {}},
            {"number": True, "real": False, "text": [], "mode": 5},
            {"number": 2.0, "real": 3, "small": 4294967296},
            {"small": 2147483647},
            {"inner": {}, "rows": [{"a": 1}, {}, {"a": "x"}]},
            {"inner": {"a": "x", "b": "y"}},
            {"port": 80},
            {"port": "http"},
            {"port": 1.5},
            {"port": True},
            {"nothing": None},
            {"text": None, "inner": None, "names": None},
            {"names": [None]},
            {"rows": [None]},
            {"labels": {"a": None}},
            {"closed": {}},
            {"closed": {"a": 1}},
            {"free": {"a": [1, {"b": None}]}},
            "text",
            [],
        ),
        post(f"{WIDGETS}?dryRun=All", widget(None)),
    ],
    "custom objects: formats": [
        *serving(struct(spec=_FORMATS)),
        *tries(
            *({"date": value} for value in ("2024-02-29", "2023-02-29", "x")),
            *(
                {"time": value}
                for value in (
                    "2024-01-01T00:00:00Z",
                    "2024-01-01T00:00:00.5+02:00",
                    "2024-01-01",
                    "x",
                )
            ),
            *({"email": value} for value in ("a@b.c", "x")),
            *({"ip": value} for value in ("10.0.0.1", "::1", "x")),
            *({"uuid": value} for value in ("123e4567-e89b-12d3-a456-426614174000", "x")),
            *({"byte": value} for value in ("YWJj", "x")),
            *({"duration": value} for value in ("1h", "3 days", "x")),
            *({"uri": value} for value in ("http://a.b/c", "x", "http://[::1")),
            *({"host": value} for value in ("a.b", "-x-")),
            *({"cidr": value} for value in ("10.0.0.0/8", "10.0.0.0", "x")),
            *({"color": value} for value in ("rgb(1,22,255)", "rgb(1,22,256)", "red")),
            {"weird": "x"},
        ),
    ],
    "custom objects: junctors": [
        *serving(struct(spec=_JUNCTORS)),
        *tries(
            {},
            {"a": 5},
            {"a": 5, "b": 5},
            {"a": 1, "b": 1},
            {"a": 10},
            {"a": 5, "c": "no"},
            {"a": 5, "c": "yes"},
        ),
    ],
    "custom objects: defaults": [
        *serving(struct(spec=_DEFAULTS)),
        *tries(
            {},
            {"color": "blue", "size": 0, "inner": {"b": 1}, "given": {}},
            {"rows": [{}, {"a": 2}, {"b": "x"}], "map": {"k": {}}},
            {"color": None, "maybe": None, "inner": None, "size": None},
            {"inner": {"a": None}},
        ),
        post(f"{WIDGETS}?dryRun=All", widget(None)),
    ],
    "custom objects: new defaults for old objects": [
        *serving(struct(spec=struct(color=TEXT, old=TEXT))),
        post(WIDGETS, widget({"color": "blue", "old": "x"})),
        patch(
            CRD,
            {
                "spec": {
                    "versions": [
                        version(
                            "v1", struct(spec=struct(color=TEXT, size={**NUMBER, "default": 3}))
                        )
                    ]
                }
            },
        ),
        Step("GET", f"{WIDGETS}/x", until='"size": 3'),
        get(WIDGETS),
        patch(f"{WIDGETS}/x", {"spec": {"color": "red"}}),
    ],
    "custom objects: pruning": [
        *serving(struct(spec=_PRUNED)),
        *tries(
            {"a": "x", "b": "y", "inner": {"b": "x", "z": 1}, "rows": [{"e": "x", "z": 1}]},
            {"free": {"z": {"y": 1}, "c": {"d": "x", "z": 1}}, "map": {"k": {"f": "x", "z": 1}}},
            {
                "pod": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": "p"},
                    "spec": {"z": 1},
                }
            },
            {"pod": {}},
            {"pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A_B", "z": 1}}},
            {"pod": {"apiVersion": "", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}},
            {
                "part": {
                    "apiVersion": "a/b",
                    "kind": "C",
                    "metadata": {},
                    "spec": {"g": "x", "z": 1},
                }
            },
            {"port": {"z": 1}},
        ),
        post(f"{WIDGETS}?dryRun=All", widget({}, other=1, status={"a": 1})),
    ],
    "custom objects: rules": [
        *serving(_RULED),
        *tries(
            {"min": 1, "max": 2},
            {"min": 3, "max": 2},
            {"min": 1},
            {"name": "bcd"},
            {"tags": ["a", "bb"]},
            {"many": ["a"]},
            {"map": {"k": 0}},
            {"inner": {}},
            {"odd": {"my-prop": 1, "namespace": "x"}},
            {"odd": {"my-prop": 2, "namespace": "x"}},
            {"min": 3, "max": 2, "name": "x"},
            {"min": "x", "max": 2, "name": "x"},
        ),
        post(f"{WIDGETS}?dryRun=All", widget({}, "bad")),
        post(
            WIDGETS,
            widget(
                {
                    "name": "abc",
                    "once": "x",
                    "ports": [{"name": "a", "port": 5}, {"name": "b", "port": 6}],
                }
            ),
        ),
        patch(f"{WIDGETS}/x", {"spec": {"name": "abd"}}),
        patch(f"{WIDGETS}/x", {"spec": {"once": "y"}}),
        patch(f"{WIDGETS}/x", {"spec": {"ports": [{"name": "b", "port": 3}, {"name": "a"}]}}),
        patch(f"{WIDGETS}/x", {"spec": {"ports": [{"name": "b", "port": 6}, {"name": "c"}]}}),
        patch(f"{WIDGETS}/x", {"spec": {"name": None}}),
    ],
}
