"""A device selector: an expression, compiled once, and what it says of a device."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from mooring.api.resource import Device, DeviceAttribute
from mooring.plugins.dynamicresources.cel.checker import TypeProblem, check
from mooring.plugins.dynamicresources.cel.closures import compiled
from mooring.plugins.dynamicresources.cel.reads import Path, paths_of
from mooring.plugins.dynamicresources.cel.syntax import SyntaxProblem, parse
from mooring.plugins.dynamicresources.cel.types import ANY, BOOL, DYN, text_of
from mooring.plugins.dynamicresources.cel.values import (
    CelError,
    Domains,
    Semver,
    kind_of,
    parse_semver,
)

_MOST_SELECTORS: Final = 4096  # kept compiled; they take little, and clusters have few


class CompileError(msgspec.Struct, frozen=True):
    """An expression that cannot run."""

    text: str


class CelSelector:
    """A compiled expression."""

    def __init__(
        self, expression: str, run: Callable[[Any], Any], reads: tuple[Path, ...] | None
    ) -> None:
        self.expression: str = expression
        self.reads: tuple[Path, ...] | None = reads
        self.known: dict[Any, bool | str] = {}  # answers, by what is read
        self._run = run

    def matches(self, device: DeviceValue | CelError) -> bool:
        """Whether it selects a device. Raises CelError."""
        if isinstance(device, CelError):
            raise device
        try:
            value = self._run(device)
        except RecursionError:
            raise CelError("operation cancelled: expression is nested too deeply") from None
        if type(value) is not bool:
            raise CelError(
                f"CEL result of type {kind_of(value)} could not be converted to bool:"
                f" type conversion error from '{kind_of(value)}' to 'bool'"
            )
        return value


DeviceValue = dict[str, Any]


def compile_selector(expression: str, *, has_lists: bool = False) -> CelSelector | CompileError:
    """The selector, or why there is none; `has_lists`: attributes may have several values."""
    return _compile(expression, has_lists)


@lru_cache(maxsize=_MOST_SELECTORS)
def _compile(expression: str, has_lists: bool) -> CelSelector | CompileError:
    try:
        tree = parse(expression)
        type_ = check(tree, has_lists=has_lists)
        if type_ not in (BOOL, ANY) and not (has_lists and type_ == DYN):
            raise TypeProblem(f"must evaluate to bool or the unknown type, not {text_of(type_)}")
        return CelSelector(expression, compiled(tree), paths_of(tree))
    except (SyntaxProblem, TypeProblem, CelError) as problem:
        return CompileError(str(problem))


def attribute_problem(device: Device, *, has_lists: bool = False) -> CelError | None:
    """Why no selector can handle a device, if so."""
    for name, attribute in device.attributes.items():
        if attribute.string_value is None and attribute.int_value is None:
            try:
                _value(name, attribute, has_lists)
            except CelError as error:
                return error
    return None


def device_value(driver: str, device: Device, *, has_lists: bool = False) -> DeviceValue | CelError:
    """The variable `device`; an error if it has an attribute that no selector can handle."""
    attributes, capacity = Domains(), Domains()
    try:
        for name, attribute in device.attributes.items():
            domain, id_ = _split(name, driver)
            attributes.setdefault(domain, {})[id_] = _value(name, attribute, has_lists)
    except CelError as error:
        return error
    for name, one in device.capacity.items():
        domain, id_ = _split(name, driver)
        capacity.setdefault(domain, {})[id_] = one.value
    return {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": attributes,
        "capacity": capacity,
    }


def _split(name: str, driver: str) -> tuple[str, str]:
    domain, slash, id_ = name.partition("/")
    return (domain, id_) if slash else (driver, name)


def _value(name: str, attribute: DeviceAttribute, has_lists: bool) -> Any:
    if has_lists:
        several = attribute.int_values or attribute.bool_values or attribute.string_values
        if several:
            return several
        if attribute.version_values:
            return tuple(_version(name, one) for one in attribute.version_values)
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        return attribute.string_value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    return _version(name, attribute.version_value)


def _version(name: str, text: str) -> Semver:
    try:
        return parse_semver(text)
    except ValueError as error:
        raise CelError(f"attribute {name}: parse semantic version: {error}") from None
