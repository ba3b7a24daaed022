"""CEL of device selectors: what compiles, what it says, and how it fails."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plugins.dynamicresources.objects import resource_slice

from mooring.api.codec import convert
from mooring.api.resource import Device
from mooring.plugins.dynamicresources.cel import (
    CelError,
    CompileError,
    compile_selector,
    device_value,
)
from mooring.plugins.dynamicresources.pools import PoolDevice

DRIVER = "gpu.example.com"
DEVICE: dict[str, Any] = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "A100"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "version": {"version": "535.1.2+build.5"},
        "other.io/addr": {"string": "10.2.3.4"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "cores": {"value": "108"}},
}
G = f'device.attributes["{DRIVER}"]'
C = f'device.capacity["{DRIVER}"]'


def evaluate(expression: str, device: dict[str, Any] = DEVICE) -> bool | str:
    selector = compile_selector(expression)
    if isinstance(selector, CompileError):
        return f"does not compile: {selector.text}"
    try:
        return selector.matches(device_value(DRIVER, convert(device, Device)))
    except CelError as error:
        return f"fails: {error}"


@pytest.mark.parametrize(
    "expression",
    [
        # formats
        '"%s-%d %%".format(["a", dyn(1)]) == "a-1 %"',
        '"%x %X %o %b".format([dyn(255), dyn("hi"), dyn(8), dyn(5)]) == "ff 6869 10 101"',
        '"%b".format([true]) == "1"',
        '"%.1f %e".format([1.25, 1.5]) == "1.2 1.500000e+00"',
        '"%s".format([{"b": 1, "a": 2}]) == "{a: 2, b: 1}" && "%s".format([null]) == "null"',
        '!format.dns1123Label().validate("abc").hasValue()',
        'format.dns1123Label().validate("A_").value().size() == 1',
        'format.named("none") == optional.none() && format.named("uuid").hasValue()',
        '!format.dns1035LabelPrefix().validate("abc-").hasValue()',
        'format.dns1035Label().validate("1abc").hasValue()',
        '!format.qualifiedName().validate("example.com/Name_1").hasValue()',
        'format.datetime().validate("2024-13-01T00:00:00Z").hasValue()',
        '!format.date().validate("2024-02-29").hasValue()',
        'format.byte().validate("?").hasValue()',
        '!format.uri().validate("https://a/b").hasValue()',
        'format.uri().validate("a b").hasValue()',
        # devices
        f'device.driver == "{DRIVER}"',
        f'{G}.model == "A100" && {C}.memory.isGreaterThan(quantity("10Gi"))',
        f'{G}["model"].lowerAscii() == "a100"',
        'device.attributes["other.io"].addr.startsWith("10.")',
        "!device.allowMultipleAllocations",
        f'"model" in {G} && !("none" in {G})',
        '"other.io" in device.attributes && !("none.io" in device.attributes)',
        "has(device.attributes.none)",  # an unknown domain is an empty map
        'size(device.attributes["none.io"]) == 0',
        "size(device.attributes) == 2",
        f'{G}.?none.orValue("x") == "x" && {G}.?model.hasValue()',
        f"cel.bind(g, {G}, g.ecc && g.index == 3)",
        f'{G}.exists(name, name == "model")',
        # numbers
        "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1 && 7 % -3 == 1",
        "1.5 < 2 && 3u > 2 && dyn(3) == 3.0 && dyn(1u) == 1",
        "0x10 == 16 && 1e3 == 1000.0 && int('12') == 12 && double('1.5') == 1.5",
        # texts
        r'"a\u00e9\n".size() == 3 && r"\n".size() == 2 && b"\x41" == bytes("A")',
        '"a-b-c".split("-").join("+") == "a+b+c" && "abc".substring(1, 2) == "b"',
        '"abcabc".indexOf("c", 3) == 5 && "abcabc".lastIndexOf("b") == 4 && "abc".charAt(3) == ""',
        '" x ".trim() == "x" && "xyx".replace("x", "a", 1) == "ayx"',
        'strings.quote("a") == "\\"a\\""',
        '"abc123".find("[0-9]+") == "123" && "a1b2".findAll("[a-z]") == ["a", "b"]',
        '"A100".matches("^[AH][0-9]{3}$") && !"xA100".matches("^A") && "x\\ny".matches("(?s)x.y")',
        # lists, maps, sets
        "[1, 2, 3].all(x, x > 0) && [1, 2].exists_one(x, x == 2) && [1, 2].map(x, x * 2) == [2, 4]",
        "[3, 1, 2].sort() == [1, 2, 3] && [1, 2].sum() == 3 && [1, 3].max() == 3 && [1].isSorted()",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2]",
        "lists.range(2) == [0, 1]",
        "[2, 1].sortBy(x, -x) == [2, 1] && [1, 1].distinct() == [1] && [1].reverse() == [1]",
        "sets.contains([1, 2], [1]) && sets.intersects([1], [1]) && sets.equivalent([1, 1], [1])",
        '{"a": 1}.a == 1 && {"a": 1}["a"] == 1 && !("b" in {"a": 1})',
        '{"a": 1}.?b == optional.none()',
        '[1, 2].exists(i, v, i == 0 && v == 1) && {"a": 1}.transformMap(k, v, v + 1) == {"a": 2}',
        "[?optional.of(1), ?optional.none()] == [1]",
        "optional.of(1).optMap(x, x + 1).value() == 2",
        # absorbed errors
        f"{G}.none == 1 || true",
        f"!({G}.none == 1 && false)",
        "[1, 0].exists(x, 1 / x == 1) && ![0, 2].all(x, 1 / x == 1)",
        # Kubernetes
        'quantity("1Gi").add(quantity("1Gi")).compareTo(quantity("2Gi")) == 0',
        'sign(quantity("-1")) == -1',
        f"{C}.cores.asInteger() == 108 && {C}.memory.asApproximateFloat() > 8.5e10",
        'quantity("1000m") == quantity("1") && isQuantity("1Gi") && !isQuantity("x")',
        f'{G}.version.isGreaterThan(semver("535.1.2-rc.1")) && {G}.version == semver("535.1.2")',
        'semver("v1.2", true).minor() == 2 && isSemver("1.2.3") && !isSemver("01.2.3")',
        'cidr("10.2.0.0/15").containsIP(device.attributes["other.io"].addr)',
        'ip("::1").isLoopback()',
        'url("https://a.b:80/c?d=e").getHost() == "a.b:80" && isURL("/x") && !isURL("x")',
    ],
)
def test_selects(expression: str) -> None:
    assert evaluate(expression) is True


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
        (f"{G}.model.size()", "must evaluate to bool or the unknown type, not int"),
        ("device.none", "undefined field 'none'"),
        ("nothing", "undeclared reference to 'nothing'"),
        ("nothing(1)", "undeclared reference to 'nothing'"),
        ('1 + "a" == 2', "found no matching overload for '+'"),
        ("1 == 1.0", "found no matching overload for '=='"),
        ('[1, "a"] == []', "expected type"),
        (f"{G}.model.exists(x, x)", "cannot be range of a comprehension"),
        ("1 +", "mismatched input"),
        ("true )", "mismatched input"),
        ("if == 1", "reserved identifier"),
        ('"a', "token recognition error"),
        ("9223372036854775808 == 0", "invalid int literal"),
        ("has(device)", "invalid argument to has() macro"),
        ('"a".matches("(")', "error parsing regexp"),
        ("'\\q' == ''", "unable to unescape"),
        ("(" * 300 + "true" + ")" * 300, "recursion limit"),
        ("true" + " " * 10240, "size exceeds limit"),
    ],
)
def test_does_not_compile(expression: str, problem: str) -> None:
    found = evaluate(expression)
    assert isinstance(found, str)
    assert found.startswith("does not compile: ")
    assert problem in found


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (f"{G}.none == 1", "no such key: none"),
        ('device.attributes["x"].y', "no such key: y"),
        (f"{G}.index.startsWith('a')", "no such overload"),
        ("1 / 0 == 1", "division by zero"),
        ("[1][5] == 1", "index out of bounds: 5"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        (f"{G}.model", "CEL result of type string could not be converted to bool"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("lists.range(2000).all(i, lists.range(2000).all(j, i + j >= 0))", "cost limit exceeded"),
        ('quantity("x") == quantity("1")', "quantities must match"),
    ],
)
def test_fails_at_run_time(expression: str, problem: str) -> None:
    found = evaluate(expression)
    assert isinstance(found, str)
    assert found.startswith("fails: ")
    assert problem in found


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        ({"version": "1.x"}, "attribute odd: parse semantic version:"),
        ({"ints": [1]}, "attribute odd: unsupported attribute value"),
    ],
)
def test_an_attribute_that_cannot_be_read_fails_every_selector(
    attribute: dict[str, Any], problem: str
) -> None:
    device = {"name": "d", "attributes": {"odd": attribute}}
    found = evaluate("true", device)
    assert isinstance(found, str)
    assert found.startswith(f"fails: {problem}")
    slice_ = resource_slice("n", [device])
    said = PoolDevice(slice_, slice_.spec.devices[0]).selected_by("true")
    assert str(said).startswith(f"CEL runtime error: {problem}")


def test_no_pattern_takes_longer_than_its_text() -> None:
    assert evaluate('"' + "a" * 60 + '!".matches("^(a+)+$")') is False


def test_devices_that_are_alike_where_it_reads_are_evaluated_once() -> None:
    expression = (
        f'{G}.model == "A100" && "numa" in {G} && {C}.memory.isGreaterThan(quantity("1Gi"))'
    )
    selector = compile_selector(expression)
    assert not isinstance(selector, CompileError)
    devices = [
        {
            "name": f"d{number}",
            "attributes": {"model": {"string": "A100"}, "uuid": {"string": str(number)}}
            | ({"numa": {"int": 0}} if number % 2 else {}),
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for number in range(20)
    ]
    slice_ = resource_slice("n", devices)
    said = [PoolDevice(slice_, one).selected_by(expression) for one in slice_.spec.devices]
    assert said == [False, True] * 10
    assert len(selector.known) == 2
