"""Objects by what is said of them, and how often they changed."""

from mooring.api import core, volumes
from mooring.api.meta import ObjectMeta
from mooring.cache.objects import Objects


def volume(name: str, storage_class: str) -> core.PersistentVolume:
    spec = volumes.PersistentVolumeSpec(storage_class_name=storage_class)
    return core.PersistentVolume(metadata=ObjectMeta(name=name), spec=spec)


def by_class(value: core.PersistentVolume) -> str:
    return value.spec.storage_class_name


def names(objects: Objects, storage_class: str) -> list[str]:
    found = objects.select(core.PersistentVolume, by_class, storage_class)
    return sorted(value.name for value in found)


def test_selects_what_was_there_before_it_was_asked() -> None:
    objects = Objects()
    objects.put(volume("a", "fast"))
    objects.put(volume("b", "slow"))
    assert names(objects, "fast") == ["a"]
    assert names(objects, "none") == []


def test_follows_what_comes_changes_and_goes() -> None:
    objects = Objects()
    assert names(objects, "fast") == []
    objects.put(volume("a", "fast"))
    objects.put(volume("b", "fast"))
    assert names(objects, "fast") == ["a", "b"]
    objects.put(volume("a", "slow"))
    assert names(objects, "fast") == ["b"]
    assert names(objects, "slow") == ["a"]
    objects.remove(volume("b", "whatever it is now"))
    assert names(objects, "fast") == []


def test_answers_several_questions_about_one_kind() -> None:
    def by_initial(value: core.PersistentVolume) -> str:
        return value.name[0]

    objects = Objects()
    objects.put(volume("ab", "fast"))
    assert names(objects, "fast") == ["ab"]
    assert len(objects.select(core.PersistentVolume, by_initial, "a")) == 1
    objects.put(volume("ac", "slow"))
    assert names(objects, "fast") == ["ab"]
    assert len(objects.select(core.PersistentVolume, by_initial, "a")) == 2


def test_counts_the_changes_of_each_kind() -> None:
    objects = Objects()
    assert objects.version(core.PersistentVolume) == 0
    objects.put(volume("a", "fast"))
    first = objects.version(core.PersistentVolume)
    objects.put(core.Service(metadata=ObjectMeta(name="web")))
    assert objects.version(core.PersistentVolume) == first
    objects.put(volume("a", "slow"))
    second = objects.version(core.PersistentVolume)
    objects.remove(volume("a", "slow"))
    third = objects.version(core.PersistentVolume)
    assert 0 < first < second < third
    objects.remove(volume("a", "slow"))  # it was gone already
    assert objects.version(core.PersistentVolume) == third
