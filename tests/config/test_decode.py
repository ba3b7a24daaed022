import enum
from typing import Annotated, Literal, NewType

import msgspec
import pytest
from msgspec import Meta

from mooring.config.decode import decode, decode_args, decode_partly
from mooring.config.duration import Duration

Label = NewType("Label", str)


class Mode(enum.Enum):
    FAST = "fast"
    SAFE = "safe"


class Inner(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    name: str
    weight_limit: Annotated[int, Meta(ge=0)] = 1


class Outer(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    share: Annotated[float, Meta(ge=0, lt=1)] = 0.1
    low: int = 0
    high: int = 10
    timeout: Duration = Duration.of(5)
    items: tuple[Inner, ...] = ()
    table: dict[str, Inner] = {}
    pair: tuple[int, str] = (0, "")
    maybe: Inner | None = None
    mode: Mode = Mode.FAST
    colour: Literal["red", "blue"] = "red"
    limit: int | None = 7
    either: int | str | list[Inner] = 0
    some: Annotated[list[int], Meta(max_length=2)] = []
    label: Label = Label("")

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low must not be above high")


def problems(raw: object, path: str = "") -> list[str]:
    value, found = decode(raw, Outer, path)
    assert (value is None) == bool(found)
    return [str(problem) for problem in found]


def test_decodes_nested_data() -> None:
    raw = {
        "share": 0.5,
        "timeout": "1m30s",
        "items": [{"name": "a"}, {"name": "b", "weightLimit": 3}],
        "table": {"x": {"name": "c"}},
        "pair": [1, "one"],
        "maybe": {"name": "d"},
        "mode": "safe",
        "either": [{"name": "e"}],
        "some": [1, 2],
        "label": "l",
    }
    value, found = decode(raw, Outer)
    assert found == []
    assert value == Outer(
        share=0.5,
        timeout=Duration.of(90),
        items=(Inner("a"), Inner("b", 3)),
        table={"x": Inner("c")},
        pair=(1, "one"),
        maybe=Inner("d"),
        mode=Mode.SAFE,
        either=[Inner("e")],
        some=[1, 2],
        label=Label("l"),
    )


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"low": "seven"}, 'low: expected int, got str "seven"'),
        ({"low": True}, "low: expected int, got bool true"),
        ({"low": 1.5}, "low: expected int, got float 1.5"),
        ({"limit": "x"}, 'limit: expected int, got str "x"'),
        ({"share": 1}, "share: expected float < 1.0"),
        ({"share": -0.5}, "share: expected float >= 0.0"),
        ({"items": {}}, "items: expected array, got object"),
        ({"items": [3]}, "items[0]: expected object, got int 3"),
        ({"items": [{"name": "a", "weightLimit": -1}]}, "items[0].weightLimit: expected int >= 0"),
        ({"items": [{}]}, "items[0].name: Required value"),
        ({"items": [{"name": None}]}, "items[0].name: Required value"),
        ({"table": {"k": {"name": 1}}}, "table.k.name: expected str, got int 1"),
        ({"table": {"k/x": {"name": 1}}}, "table[k/x].name: expected str, got int 1"),
        ({"pair": [1, 2]}, "pair[1]: expected str, got int 2"),
        ({"pair": [1]}, "pair: expected array of length 2, got 1"),
        ({"maybe": {"name": 1}}, "maybe.name: expected str, got int 1"),
        ({"maybe": 3}, "maybe: expected object, got int 3"),
        ({"mode": "slow"}, 'mode: invalid value "slow"; expected one of: fast, safe'),
        ({"colour": "green"}, 'colour: invalid value "green"; expected one of: red, blue'),
        ({"either": 1.5}, "either: expected int | str | array, got float 1.5"),
        ({"either": [{"name": 1}]}, "either[0].name: expected str, got int 1"),
        ({"some": [1, 2, 3]}, "some: expected array of length <= 2"),
        ({"some": [1, "x"]}, 'some[1]: expected int, got str "x"'),
        ({"label": 5}, "label: expected str, got int 5"),
        ({"timeout": 5}, "timeout: expected a duration such as 15s or 1m30s, got 5"),
        ({"timeout": "5"}, 'timeout: time: missing unit in duration "5"'),
        ({"low": 5, "high": 4}, "low must not be above high"),
        ([], "expected object, got array"),
        (None, "expected object, got null"),
    ],
)
def test_says_what_is_wrong_and_where(raw: object, expected: str) -> None:
    assert problems(raw) == [expected]


def test_names_the_expected_fields_and_the_one_that_was_meant() -> None:
    assert problems({"items": [{"name": "a", "weightlimit": 1}]}) == [
        "items[0].weightlimit: unknown field; expected one of: name, weightLimit; "
        'did you mean "weightLimit"?'
    ]
    assert problems({"maybe": {"name": "a", "zzz": 1}}) == [
        "maybe.zzz: unknown field; expected one of: name, weightLimit"
    ]


def test_reports_every_problem_at_once() -> None:
    raw = {
        "share": 2,
        "items": [{"name": 1}, {"weightLimit": "x"}],
        "shar": 0,
        "timeout": "soon",
    }
    found = [line.split(":")[0] for line in problems(raw, "args")]
    assert found == [
        "args.shar",
        "args.share",
        "args.timeout",
        "args.items[0].name",
        "args.items[1].name",
        "args.items[1].weightLimit",
    ]


def test_reports_a_rule_between_fields_next_to_an_unknown_field() -> None:
    found = problems({"low": 5, "high": 4, "zzz": 1}, "args")
    assert found[0].startswith("args.zzz: unknown field")
    assert found[1:] == ["args: low must not be above high"]


def test_does_not_report_a_rule_that_only_a_lost_value_breaks() -> None:
    assert problems({"low": 50, "high": "many"}) == ['high: expected int, got str "many"']


def test_takes_null_for_a_field_that_was_left_out() -> None:
    value, found = decode({"share": None, "items": None, "limit": None}, Outer)
    assert found == []
    assert value == Outer(limit=None)


def test_accepts_a_bare_zero_as_a_duration() -> None:
    value, _ = decode({"timeout": 0}, Outer)
    assert value is not None
    assert value.timeout == Duration()


def test_keeps_what_it_can_when_asked_to() -> None:
    raw = {"low": 3, "share": "x", "items": [{"name": 1}], "zzz": 1}
    value, found = decode_partly(raw, Outer)
    assert value == Outer(low=3)
    assert len(found) == 3
    assert decode_partly({"name": 1}, Inner)[0] is None
    assert decode_partly({"low": 50, "high": "x"}, Outer)[0] is None


def test_cuts_long_values_short() -> None:
    (line,) = problems({"low": "x" * 500})
    assert len(line) < 130
    assert line.endswith("…")


class HeadroomArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    resource: str = "cpu"
    reserve: Annotated[float, Meta(ge=0, lt=1)] = 0.1


PATH = "profiles[0].pluginConfig[Headroom].args"


def test_decodes_plugin_args_and_strips_the_header() -> None:
    raw = {"apiVersion": "x/v1", "kind": "HeadroomArgs", "resource": "memory"}
    value, found = decode_args(raw, HeadroomArgs, "Headroom", PATH)
    assert (value, found) == (HeadroomArgs(resource="memory"), [])


@pytest.mark.parametrize("raw", [None, {}])
def test_gives_all_defaults_for_absent_plugin_args(raw: object) -> None:
    assert decode_args(raw, HeadroomArgs, "Headroom", PATH) == (HeadroomArgs(), [])


def test_refuses_args_of_another_kind_along_with_bad_fields() -> None:
    raw = {"kind": "FitArgs", "reserve": 1.0}
    value, found = decode_args(raw, HeadroomArgs, "Headroom", PATH)
    assert value is None
    assert [str(problem) for problem in found] == [
        f'{PATH}.kind: Invalid value: "FitArgs": has to match plugin args HeadroomArgs',
        f"{PATH}.reserve: expected float < 1.0",
    ]


def test_tells_a_plugin_without_args_apart() -> None:
    class NoArgs(msgspec.Struct, forbid_unknown_fields=True):
        pass

    _, found = decode_args({"x": 1}, NoArgs, "Simple", PATH)
    assert [str(problem) for problem in found] == [
        f"{PATH}.x: unknown field; no fields are expected here"
    ]


class Cat(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    lives: int = 9


class Dog(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    tricks: int = 0


class Pets(msgspec.Struct, forbid_unknown_fields=True):
    one: Cat = msgspec.field(default_factory=Cat)
    any: Cat | Dog = msgspec.field(default_factory=Cat)


def test_understands_tagged_structs() -> None:
    value, found = decode({"one": {"type": "Cat", "lives": 3}, "any": {"type": "Dog"}}, Pets)
    assert (value, found) == (Pets(one=Cat(3), any=Dog()), [])
    _, found = decode({"any": {"type": "Dog", "tricks": "x"}}, Pets)
    assert [problem.path for problem in found] == ["any.tricks"]
