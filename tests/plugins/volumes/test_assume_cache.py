"""What is assumed about an object counts until the watch shows another version of it."""

import pytest
from msgspec import structs
from tests.plugins.volumes.storage import volume

from mooring.api.core import PersistentVolume
from mooring.cache.objects import Objects
from mooring.plugins.volumebinding.assume_cache import AssumeCache, OutOfDate


def version(number: int, name: str = "pv") -> PersistentVolume:
    value = volume(name)
    metadata = structs.replace(value.metadata, resource_version=str(number))
    return structs.replace(value, metadata=metadata)


def changed(value: PersistentVolume, phase: str = "Bound") -> PersistentVolume:
    return structs.replace(value, status=structs.replace(value.status, phase=phase))


@pytest.fixture
def objects() -> Objects:
    objects = Objects()
    objects.put(version(1))
    return objects


@pytest.fixture
def assumed(objects: Objects) -> AssumeCache[PersistentVolume]:
    return AssumeCache(PersistentVolume, lambda: objects)


def test_shows_what_is_stored_where_nothing_is_assumed(
    assumed: AssumeCache[PersistentVolume],
) -> None:
    assert assumed.get("pv") == version(1)
    assert assumed.get("other") is None


def test_shows_what_is_assumed_and_still_knows_what_is_stored(
    assumed: AssumeCache[PersistentVolume],
) -> None:
    ours = changed(version(1))
    assumed.assume(ours)
    assert assumed.get("pv") is ours
    assert assumed.latest(version(1)) is ours
    assert assumed.stored("pv") == version(1)


def test_believes_the_watch_once_it_shows_another_version(
    objects: Objects, assumed: AssumeCache[PersistentVolume]
) -> None:
    assumed.assume(changed(version(1)))
    objects.put(version(1))  # the same again is no news
    assert assumed.get("pv") == changed(version(1))
    objects.put(version(2))
    assert assumed.get("pv") == version(2)
    assert len(assumed) == 0


def test_forgets_what_is_gone(objects: Objects, assumed: AssumeCache[PersistentVolume]) -> None:
    assumed.assume(changed(version(1)))
    objects.remove(version(1))
    assert assumed.get("pv") is None
    assert len(assumed) == 0


def test_does_not_assume_what_was_made_from_another_version(
    assumed: AssumeCache[PersistentVolume],
) -> None:
    with pytest.raises(OutOfDate, match=r'"pv" is out of sync \(stored: 1, assume: 2\)'):
        assumed.assume(version(2))
    with pytest.raises(OutOfDate):
        assumed.assume(version(1, "other"))


def test_takes_back_only_its_own_assumption(assumed: AssumeCache[PersistentVolume]) -> None:
    first, second = changed(version(1), "Bound"), changed(version(1), "Released")
    assumed.assume(first)
    assumed.assume(second)
    assumed.restore(first)
    assert assumed.get("pv") is second
    assumed.restore(second)
    assert assumed.get("pv") == version(1)
    assumed.restore(second)
