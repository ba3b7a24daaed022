"""Amounts such as `250m`, `1Gi` or `1e3`, held exactly.

A `Quantity` is a whole number of billionths, which is the finest step Kubernetes keeps, so sums and
comparisons never round. Rounding happens once, at the end, in `milli` and `value`. The decoder
parses every resource list through `parse_quantity`; clusters repeat a few spellings thousands of
times, so parsed spellings are remembered.
"""

import functools
import re
from enum import Enum
from typing import ClassVar, Final, NoReturn

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

_NANOS: Final = 10**9
# Characters; nothing sensible is longer, and int() on megabytes of digits is slow.
_LONGEST: Final = 256
_FURTHEST: Final = 1000  # largest exponent, for the same reason
_REMEMBERED: Final = 100_000  # spellings

_SPELLING: Final = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?[0-9]+))?"
)
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_DECIMAL_NAMES: Final = {power: name for name, power in _DECIMAL.items()} | {0: ""}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_NAMES: Final = ("", *_BINARY)


class Format(Enum):
    """The family of suffixes a quantity was written with, and is printed with."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@functools.total_ordering
class Quantity:
    """An exact, immutable amount. Its format only matters for printing: `1Ki` equals `1024`."""

    __slots__ = ("_milli", "_value", "format", "nanos")

    ZERO: ClassVar["Quantity"]

    nanos: int
    format: Format
    _milli: int | None  # computed when first asked for; parsed quantities are shared
    _value: int | None

    def __init__(self, nanos: int, format: Format = Format.DECIMAL_SI) -> None:
        object.__setattr__(self, "nanos", nanos)
        object.__setattr__(self, "format", format)
        object.__setattr__(self, "_milli", None)
        object.__setattr__(self, "_value", None)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero and kept within int64."""
        found = self._milli
        if found is None:
            found = _saturated(_rounded_out(self.nanos, 10**6))
            object.__setattr__(self, "_milli", found)
        return found

    @property
    def value(self) -> int:
        """The amount in whole units, rounded away from zero and kept within int64."""
        found = self._value
        if found is None:
            found = _saturated(_rounded_out(self.nanos, _NANOS))
            object.__setattr__(self, "_value", found)
        return found

    def __add__(self, other: "Quantity") -> "Quantity":
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.nanos, self.format)

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos == other.nanos

    def __lt__(self, other: "Quantity") -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Quantity is read-only; cannot set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Quantity is read-only; cannot delete {name!r}")

    def __reduce__(self) -> tuple[type["Quantity"], tuple[int, Format]]:
        return Quantity, (self.nanos, self.format)

    def __str__(self) -> str:
        if not self.nanos:
            return "0"
        sign = "-" if self.nanos < 0 else ""
        nanos = abs(self.nanos)
        # Small or fractional amounts have no exact binary spelling.
        if self.format is Format.BINARY_SI and nanos >= 1024 * _NANOS and nanos % _NANOS == 0:
            return sign + _binary_text(nanos // _NANOS)
        return sign + _decimal_text(nanos, exponent=self.format is Format.DECIMAL_EXPONENT)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


Quantity.ZERO = Quantity(0)


def parse_quantity(text: str | int | float) -> Quantity:
    """Read any spelling Kubernetes accepts; JSON and YAML numbers count as their own digits.

    Amounts finer than a billionth are rounded away from zero, and binary amounts beyond int64 are
    capped at it, as resource.ParseQuantity does. Anything else raises `ValueError`.
    """
    if isinstance(text, str):
        return _memo[text]
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _memo[repr(text)]
    raise ValueError(f"expected a quantity such as 250m or 1Gi, got {type(text).__name__}")


class _Memo(dict[str, Quantity]):
    """Spellings already parsed; emptied when full, because what is in use comes back at once."""

    def __missing__(self, text: str) -> Quantity:
        quantity = _parse(text)
        if len(self) >= _REMEMBERED:
            self.clear()
        self[text] = quantity
        return quantity


_memo: Final = _Memo()


def _parse(text: str) -> Quantity:
    if len(text) > _LONGEST:
        raise _nonsense(text[:20] + "...")
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise _nonsense(text)
    sign, whole, fraction, suffix, exponent = match.groups()
    fraction = fraction or ""
    digits = whole + fraction
    if not digits:
        raise _nonsense(text)

    format, power, shift = Format.DECIMAL_SI, 9 - len(fraction), 0
    if exponent is not None:
        format = Format.DECIMAL_EXPONENT
        power += int(exponent)
        if abs(int(exponent)) > _FURTHEST:
            raise ValueError(f"quantity {text!r} is out of range: exponents end at {_FURTHEST}")
    elif suffix in _BINARY:
        format, shift = Format.BINARY_SI, _BINARY[suffix]
    elif suffix is not None:
        power += _DECIMAL[suffix]

    nanos = int(digits) << shift
    nanos = nanos * 10**power if power >= 0 else _rounded_out(nanos, 10**-power)
    if format is Format.BINARY_SI:
        nanos = min(nanos, INT64_MAX * _NANOS)
        if 0 < nanos < _NANOS:
            format = Format.DECIMAL_SI
    return Quantity(-nanos if sign == "-" else nanos, format)


def _nonsense(text: str) -> ValueError:
    return ValueError(
        f"expected a quantity such as 250m, 1.5, 1Gi or 1e3 "
        f"(a number, then one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent), got {text!r}"
    )


def _rounded_out(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _saturated(number: int) -> int:
    return max(INT64_MIN, min(INT64_MAX, number))


def _binary_text(units: int) -> str:
    steps = 0
    while units % 1024 == 0 and steps < len(_BINARY):
        units //= 1024
        steps += 1
    return f"{units}{_BINARY_NAMES[steps]}"


def _decimal_text(nanos: int, *, exponent: bool) -> str:
    power = -9
    while nanos % 1000 == 0 and (exponent or power < 18):
        nanos //= 1000
        power += 3
    if not exponent:
        return f"{nanos}{_DECIMAL_NAMES[power]}"
    return f"{nanos}e{power}" if power else str(nanos)
