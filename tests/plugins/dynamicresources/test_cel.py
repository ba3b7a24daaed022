"""CEL of device selectors: what compiles, what it says, and how it fails."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plugins.dynamicresources.cel_expressions import DO_NOT_COMPILE, FAILS, TRUE
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
        *TRUE,
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
        # absorbed errors
        f"{G}.none == 1 || true",
        f"!({G}.none == 1 && false)",
        # Kubernetes
        f"{C}.cores.asInteger() == 108 && {C}.memory.asApproximateFloat() > 8.5e10",
        f'{G}.version.isGreaterThan(semver("535.1.2-rc.1")) && {G}.version == semver("535.1.2")',
        'cidr("10.2.0.0/15").containsIP(device.attributes["other.io"].addr)',
    ],
)
def test_selects(expression: str) -> None:
    assert evaluate(expression) is True


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        *DO_NOT_COMPILE,
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("dyn(true)", "must evaluate to bool or the unknown type, not dyn"),
        (f"{G}.model.size()", "must evaluate to bool or the unknown type, not int"),
        ("device.none", "undefined field 'none'"),
        (f"{G}.model.exists(x, x)", "cannot be range of a comprehension"),
        ("true )", "mismatched input"),
        ("if == 1", "reserved identifier"),
        ("has(device)", "invalid argument to has() macro"),
        ('"a".matches("(")', "error parsing regexp"),
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
        *FAILS,
        (f"{G}.none == 1", "no such key: none"),
        ('device.attributes["x"].y', "no such key: y"),
        (f"{G}.index.startsWith('a')", "no such overload"),
        (f"{G}.model", "CEL result of type string could not be converted to bool"),
        ("lists.range(2000).all(i, lists.range(2000).all(j, i + j >= 0))", "cost limit exceeded"),
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
