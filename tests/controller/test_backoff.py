import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.loop_rig import LoopRig

from mooring.controller import Backoff, TokenBucket


@given(
    first=st.floats(0.001, 10),
    factor=st.floats(1, 1e6),
    times=st.integers(1, 200),
    seed=st.integers(),
)
def test_waits_longer_each_time_and_never_longer_than_the_longest(
    first: float, factor: float, times: int, seed: int
) -> None:
    longest = first * factor
    backoff: Backoff[str] = Backoff(first, longest, jitter=0.2, rng=random.Random(seed))
    waits = [backoff.next("a") for _ in range(times)]
    for number, wait in enumerate(waits):
        whole = min(first * 2.0**number, longest)
        assert 0.8 * whole <= wait * (1 + 1e-9)
        assert wait <= whole
    assert backoff.failures("a") == times


def test_counts_each_key_by_itself_and_begins_anew_when_it_is_forgotten() -> None:
    backoff: Backoff[str] = Backoff(1.0, 60.0, jitter=0.0)
    assert [backoff.next("a"), backoff.next("a"), backoff.next("b")] == [1.0, 2.0, 1.0]
    backoff.forget("a")
    assert [backoff.next("a"), backoff.next("b")] == [1.0, 2.0]


@pytest.mark.parametrize(
    ("first", "longest", "jitter"), [(0, 1, 0), (2, 1, 0), (1, 2, 1), (1, 2, -1)]
)
def test_refuses_times_that_make_no_sense(first: float, longest: float, jitter: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        Backoff(first, longest, jitter=jitter)


def test_tells_each_who_asks_when_its_turn_is() -> None:
    with LoopRig() as rig:
        bucket = TokenBucket(rate=10, burst=2)
        turns = [rig.call(bucket.reserve) for _ in range(4)]
        assert turns == pytest.approx([0.0, 0.0, 0.1, 0.2])
        rig.advance(10)
        assert rig.call(bucket.reserve) == 0.0


def test_lets_everybody_through_without_a_rate() -> None:
    assert [TokenBucket(rate=0).reserve() for _ in range(1000)] == [0.0] * 1000
