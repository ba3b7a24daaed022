"""Durations as Go writes them: `15s`, `1m30s`, `1.5h`, `100ms`.

Configuration files, log lines and waiting messages all use this notation, so that text written
for kube-scheduler can be read here and text written here looks the same.
"""

import re
from functools import total_ordering

NANOSECONDS_PER_SECOND = 1_000_000_000

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": NANOSECONDS_PER_SECOND,
    "m": 60 * NANOSECONDS_PER_SECOND,
    "h": 3600 * NANOSECONDS_PER_SECOND,
}
_PART = re.compile(r"([0-9]*)\.?([0-9]*)([^0-9.]*)")
_LARGEST = 2**63 - 1  # Go keeps a duration in an int64


@total_ordering
class Duration:
    """A length of time, exact to the nanosecond; prints and parses Go's notation."""

    __slots__ = ("_nanoseconds",)

    def __init__(self, nanoseconds: int = 0) -> None:
        self._nanoseconds = nanoseconds

    @classmethod
    def of(cls, seconds: float) -> "Duration":
        """Build a duration from seconds, rounded to the nearest nanosecond."""
        return cls(round(seconds * NANOSECONDS_PER_SECOND))

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Read Go's notation; a ValueError explains what is wrong with the text."""
        return cls(_parse(text))

    @property
    def nanoseconds(self) -> int:
        return self._nanoseconds

    @property
    def seconds(self) -> float:
        return self._nanoseconds / NANOSECONDS_PER_SECOND

    def __str__(self) -> str:
        return format_nanoseconds(self._nanoseconds)

    def __repr__(self) -> str:
        return f"Duration.parse({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self._nanoseconds == other._nanoseconds
        return NotImplemented

    def __lt__(self, other: "Duration") -> bool:
        return self._nanoseconds < other._nanoseconds

    def __hash__(self) -> int:
        return hash(self._nanoseconds)

    def __bool__(self) -> bool:
        return self._nanoseconds != 0


def format_duration(seconds: float) -> str:
    """Write a number of seconds as Go would: `0s`, `1.5s`, `100ms`, `15m0s`."""
    return format_nanoseconds(round(seconds * NANOSECONDS_PER_SECOND))


def format_nanoseconds(nanoseconds: int) -> str:
    """Write a number of nanoseconds as Go would."""
    sign = "-" if nanoseconds < 0 else ""
    rest = abs(nanoseconds)
    if rest == 0:
        return "0s"
    if rest < NANOSECONDS_PER_SECOND:
        for unit in ("ms", "\u00b5s", "ns"):
            if rest >= _UNITS[unit]:
                return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    minutes, below_a_minute = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(below_a_minute, NANOSECONDS_PER_SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(nanoseconds: int, unit: int) -> str:
    whole, below = divmod(nanoseconds, unit)
    if below == 0:
        return str(whole)
    digits = len(str(unit)) - 1  # every unit printed with a fraction is a power of ten
    return f"{whole}.{below:0{digits}d}".rstrip("0")


def _parse(text: str) -> int:
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    total = 0
    position = 0
    while True:
        part = _PART.match(unsigned, position)
        if part is None or not (part[1] or part[2]):
            raise ValueError(f'time: invalid duration "{text}"')
        whole, fraction, unit = part.groups()
        if not unit:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if unit not in _UNITS:
            raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
        total += int(whole or "0") * _UNITS[unit]
        total += int(fraction or "0") * _UNITS[unit] // int("1" + "0" * len(fraction))
        position = part.end()
        if position == len(unsigned):
            break
    negative = text.startswith("-")
    if total > _LARGEST + negative:
        raise ValueError(f'time: invalid duration "{text}"')
    return -total if negative else total
