import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api import ObjectMeta, OwnerReference, Pod, format_time, parse_time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("2024-05-01T12:00:00.123456789Z", 1714564800.123456),
    ],
)
def test_reads_rfc3339(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2024-05-01", "2024-05-01T12:00:00", "12:00:00Z"]
)
def test_refuses_other_times(text: str) -> None:
    with pytest.raises(ValueError, match="expected an RFC 3339 time"):
        parse_time(text)


def test_refuses_a_day_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="is not a time"):
        parse_time("2024-02-31T12:00:00Z")


@given(st.integers(0, 2**32))
def test_writes_the_times_it_reads(seconds: int) -> None:
    assert parse_time(format_time(seconds)) == seconds
    assert parse_time(format_time(seconds, micros=True)) == seconds


def test_finds_the_controller_among_the_owners() -> None:
    owner = OwnerReference(kind="ReplicaSet", name="web", controller=True)
    meta = ObjectMeta(owner_references=(OwnerReference(kind="Node", name="n"), owner))
    assert meta.controller is owner
    assert ObjectMeta().controller is None


def test_names_an_object_by_namespace_and_name() -> None:
    pod = Pod(metadata=ObjectMeta(name="web", namespace="shop", uid="u1"))
    assert (pod.key, pod.name, pod.namespace, pod.uid) == ("shop/web", "web", "shop", "u1")
    assert Pod(metadata=ObjectMeta(name="web")).key == "web"


@pytest.mark.parametrize("micros", [False, True])
@pytest.mark.parametrize("seconds", [2.0**62, -(2.0**62), 1e18, -1e18, 1e300, math.inf, math.nan])
def test_refuses_an_instant_outside_of_the_calendar(seconds: float, micros: bool) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        format_time(seconds, micros=micros)
