"""Schedules of CronJobs: five fields, or a name such as `@hourly`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[tuple[tuple[str, int, int, Mapping[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of week", 0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_YEARS: Final = 5  # within which a schedule must have a time


class CronSchedule(msgspec.Struct, frozen=True):
    """The minutes at which a CronJob runs."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    any_day: bool  # `*` in one of the two fields about days: both must match, else one is enough
    zone: tzinfo

    def next_after(self, time: float) -> float | None:
        """The first time after another one, in seconds since the epoch; None if there is none."""
        moment = datetime.fromtimestamp(int(time) // 60 * 60, UTC) + timedelta(minutes=1)
        end = moment + timedelta(days=366 * _YEARS)
        while moment < end:
            local = moment.astimezone(self.zone)
            if local.month not in self.months or not self._is_day(local):
                moment += timedelta(hours=24 - local.hour, minutes=-local.minute)
                moment = self._not_before_midnight(moment, local)
            elif local.hour not in self.hours:
                moment += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                moment += timedelta(minutes=1)
            else:
                return moment.timestamp()
        return None

    def _not_before_midnight(self, moment: datetime, before: datetime) -> datetime:
        """The begin of the next day, also where a day has 23 or 25 hours."""
        local = moment.astimezone(self.zone)
        if local.date() == before.date():
            return moment + timedelta(hours=1)
        return moment - timedelta(hours=local.hour, minutes=local.minute)

    def _is_day(self, local: datetime) -> bool:
        in_month = local.day in self.days
        in_week = local.isoweekday() % 7 in self.weekdays
        return in_month and in_week if self.any_day else in_month or in_week


@lru_cache(maxsize=1024)
def parse_schedule(text: str, zone: str = "") -> CronSchedule:
    """Read a schedule; ValueError says what is wrong with it."""
    zone_info: tzinfo = UTC
    if zone and zone not in ("Etc/UTC", "UTC"):
        try:
            zone_info = ZoneInfo(zone)
        except (KeyError, OSError, ValueError) as error:  # the first: there is no such zone
            raise ValueError(f"unknown time zone {zone}") from error
    fields = _NAMED.get(text.strip(), text).split()
    if len(fields) != len(_FIELDS):
        shown = " ".join(fields)
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: [{shown}]")
    minutes, hours, days, months, weekdays = (
        _numbers(field, *about) for field, about in zip(fields, _FIELDS, strict=True)
    )
    any_day = any(fields[place].startswith(("*", "?")) for place in (2, 4))
    return CronSchedule(minutes, hours, days, months, weekdays, any_day, zone_info)


def _numbers(
    field: str, called: str, least: int, most: int, names: Mapping[str, int]
) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step_text = part.partition("/")
        if step_text and not step_text.isdecimal():
            raise ValueError(f"{called}: expected a number after /, got {step_text!r}")
        step = int(step_text or 1)
        if not step:
            raise ValueError(f"{called}: step of range should be a positive number: {part}")
        first_text, dash, last_text = span.partition("-")
        if span in ("*", "?"):
            first, last = least, most
        else:
            first = _number(first_text, called, names)
            last = _number(last_text, called, names) if dash else first
            if step_text and not dash:
                last = most
        top = 7 if called == "day of week" else most  # 7 is Sunday, too
        if first < least:
            raise ValueError(f"beginning of range ({first}) below minimum ({least}): {part}")
        if last > top:
            raise ValueError(f"end of range ({last}) above maximum ({most}): {part}")
        if first > last:
            raise ValueError(f"beginning of range ({first}) beyond end of range ({last}): {part}")
        found.update(number % 7 if top == 7 else number for number in range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, called: str, names: Mapping[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not text.isdecimal():
        raise ValueError(f"{called}: expected a number, got {text!r}")
    return int(text)
