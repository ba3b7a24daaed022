"""How much harm the evictions of a candidate do, in numbers that can be compared.

A row of numbers for each candidate, a column for each criterion: so the best of hundreds of
candidates is found without a loop over them.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Final

import msgspec
import numpy as np

from mooring.cache.arrays import FloatArray, IntArray
from mooring.framework.results import Candidate
from mooring.preemption.ranks import started_at

CRITERIA: Final = (
    "violations of disruption budgets",
    "highest priority of a victim",
    "sum of the priorities of the victims",
    "number of victims",
    "age of the most important victim",
)
"""The criteria for the best candidate, most important first; lower is better."""

_LOWEST_PRIORITY: Final = -(2**31)
_AGE: Final = CRITERIA.index("age of the most important victim")


class Criterion(msgspec.Struct, frozen=True):
    """What speaks for the best candidate: less of this than the next best has."""

    name: str
    best: float
    next: float


def harm_of(candidate: Candidate) -> tuple[float, ...]:
    """A number for each criterion; nan for the age of a pod that has not started."""
    victims = candidate.victims
    first = victims[0]  # the one of highest priority that started first
    return (
        candidate.pdb_violations,
        first.priority,
        # From zero up, so that more victims are never better, even of negative priority.
        sum([victim.priority - _LOWEST_PRIORITY for victim in victims]),
        len(victims),
        -started_at(first, now=nan),  # a late start is better
    )


def harm_of_all(candidates: Iterable[Candidate]) -> FloatArray:
    """A row for each candidate."""
    rows = [harm_of(candidate) for candidate in candidates]
    return np.array(rows, dtype=np.float64).reshape(-1, len(CRITERIA))


def least_harmful(harm: FloatArray, now: float) -> IntArray:
    """The places of the best candidates, in order; several if they are equal."""
    places = np.arange(len(harm))
    for column in _columns(harm, now):
        if len(places) < 2:
            break
        numbers = column[places]
        places = places[numbers == numbers.min()]
    return places


def decisive(harm: FloatArray, now: float) -> Criterion | None:
    """The criterion that left no more than the best; None if there never was a choice."""
    places, found = np.arange(len(harm)), None
    for name, column in zip(CRITERIA, _columns(harm, now), strict=True):
        numbers = np.unique(column[places])
        if len(numbers) > 1:
            found = Criterion(name, float(numbers[0]), float(numbers[1]))
            places = places[column[places] == numbers[0]]
    return found


def _columns(harm: FloatArray, now: float) -> Iterable[FloatArray]:
    """Column by column; pods that have not started start now."""
    for number, column in enumerate(harm.T):
        yield np.where(np.isnan(column), -now, column) if number == _AGE else column
