import pytest

from mooring.api import core
from mooring.api.meta import ObjectMeta
from mooring.api.storage import StorageClass
from mooring.cache.objects import Objects


def service(name: str, namespace: str = "shop", version: str = "1") -> core.Service:
    meta = ObjectMeta(name=name, namespace=namespace, resource_version=version)
    return core.Service(metadata=meta)


def test_is_empty_handed_about_kinds_it_never_saw() -> None:
    objects = Objects()
    assert objects.get(core.Service, "web", "shop") is None
    assert objects.list(core.Service) == []
    assert objects.remove(service("web")) is None


def test_finds_an_object_by_kind_namespace_and_name() -> None:
    objects = Objects()
    fast = StorageClass(metadata=ObjectMeta(name="fast"))
    objects.put(service("web"))
    objects.put(service("web", "test"))
    objects.put(fast)
    assert objects.get(core.Service, "web", "shop") == service("web")
    assert objects.get(core.Service, "web", "test") == service("web", "test")
    assert objects.get(core.Service, "web") is None
    assert objects.get(StorageClass, "fast") is fast
    assert objects.list(core.Service) == [service("web"), service("web", "test")]


def test_returns_what_it_replaces() -> None:
    objects = Objects()
    assert objects.put(service("web")) is None
    assert objects.put(service("web", version="2")) == service("web")
    assert objects.list(core.Service) == [service("web", version="2")]


def test_returns_what_it_forgets() -> None:
    objects = Objects()
    objects.put(service("web"))
    assert objects.remove(service("web", version="9")) == service("web")
    assert objects.remove(service("web")) is None
    assert objects.list(core.Service) == []


def test_a_list_does_not_change_after_it_was_given() -> None:
    objects = Objects()
    objects.put(service("web"))
    listed = objects.list(core.Service)
    objects.put(service("db"))
    assert len(listed) == 1


def test_lists_what_is_in_one_namespace() -> None:
    objects = Objects()
    objects.put(service("web"))
    objects.put(service("web", version="2"))
    objects.put(service("db", "test"))
    assert list(objects.in_namespace(core.Service, "shop")) == [service("web", version="2")]
    assert list(objects.in_namespace(StorageClass, "shop")) == []
    objects.remove(service("web"))
    assert list(objects.in_namespace(core.Service, "shop")) == []
    assert list(objects.in_namespace(core.Service, "test")) == [service("db", "test")]


def test_lets_only_declared_kinds_be_read() -> None:
    objects = Objects()
    objects.put(core.Namespace(metadata=ObjectMeta(name="a")))
    objects.declare([core.Service])
    assert objects.list(core.Service) == []
    for read in (
        lambda: objects.get(core.Namespace, "a"),
        lambda: objects.list(core.Namespace),
        lambda: objects.in_namespace(core.Namespace, ""),
        lambda: objects.select(core.Namespace, str, ""),
    ):
        with pytest.raises(LookupError, match="name them in `reads`"):
            read()
    objects.declare([core.Namespace])
    assert [found.name for found in objects.list(core.Namespace)] == ["a"]
    assert objects.list(core.Service) == []


def test_every_reader_gets_the_keys_of_what_changed() -> None:
    objects = Objects()
    objects.put(service("a"))
    unread = objects.unread(core.Service)
    assert unread == {("shop", "a")}  # it was there before
    unread.clear()
    later = objects.unread(core.Service)
    later.clear()
    objects.put(service("a"))  # even if nothing shows
    objects.put(StorageClass(metadata=ObjectMeta(name="b")))
    assert unread == later == {("shop", "a")}
    unread.clear()
    objects.remove(service("a"))
    assert unread == {("shop", "a")}
