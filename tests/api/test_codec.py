import functools
import json
import types
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.garbage import NO_JSON, NO_TEXT

from mooring.api import (
    KINDS,
    CSIStorageCapacity,
    DecodeError,
    Extra,
    FrozenDict,
    Node,
    Object,
    Pod,
    Quantity,
    ResourceList,
    Value,
    convert,
    decode,
    encode,
    parse_quantity,
    to_builtins,
)
from mooring.api.codec import _MAPS, _RESOURCES, SharingDecoder, yaml_documents
from mooring.api.resource import Json

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}}}]
    },
}

# Few characters, but of every kind: plain, escaped, multi-byte.
TEXT = st.text('aZ0 ./"\\é\n', max_size=3)


@functools.cache
def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values of any type our structs use."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(strategy(arg) for arg in args))
    if origin is tuple:
        return st.lists(strategy(args[0]), max_size=2).map(tuple)
    if origin is FrozenDict:
        return st.dictionaries(TEXT, TEXT, max_size=2).map(FrozenDict)
    if hint is ResourceList:
        return st.dictionaries(TEXT, strategy(Quantity), max_size=2).map(ResourceList)
    if hint is Extra:
        return st.dictionaries(TEXT, strategy(tuple[str, ...]), max_size=2).map(Extra)
    if hint in _MAPS:
        return st.dictionaries(TEXT, strategy(typing.get_args(_MAPS[hint])[1]), max_size=2).map(
            hint
        )
    if hint is Json:
        return st.sampled_from((Json("null"), Json('{"a":[1,"b"]}')))
    if hint is Quantity:
        return st.integers(-(10**20), 10**20).map(Quantity)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return struct(hint)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: TEXT,
        int: st.integers(-(2**31), 2**31 - 1),
        bool: st.booleans(),
        type(None): st.none(),
    }
    return simple[hint]


@functools.cache
def struct(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """A struct with a few of its fields set; all of them at once would be enormous."""
    hints = {
        name: hint
        for name, hint in typing.get_type_hints(kind).items()
        if name in kind.__struct_fields__
    }

    names = st.lists(st.sampled_from(sorted(hints)), unique=True, max_size=3)

    @st.composite
    def build(draw: st.DrawFn) -> Any:
        return kind(**{name: draw(strategy(hints[name])) for name in draw(names)})

    return build()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.KIND)
@given(data=st.data())
def test_round_trips_every_kind(kind: type[Object], data: st.DataObject) -> None:
    made = data.draw(struct(kind))
    text = encode(made)
    assert decode(text, kind) == made
    assert hash(decode(text, kind)) == hash(made)
    assert convert(to_builtins(made), kind) == made
    raw = json.loads(text)
    assert (raw["apiVersion"], raw["kind"]) == (kind.API_VERSION, kind.KIND)


def values(kind: type[Value]) -> set[type[Value]]:
    """The structs of this room: plugins derive arguments from them, whoever imported those."""
    ours = (child for child in kind.__subclasses__() if child.__module__.startswith("mooring.api"))
    return {kind}.union(*(values(child) for child in ours))


@pytest.mark.parametrize("kind", sorted(values(Value), key=str))
def test_makes_every_struct_frozen_hashable_and_untracked(kind: type[Value]) -> None:
    config = kind.__struct_config__
    assert (config.frozen, config.gc, config.omit_defaults) == (True, False, True)
    assert hash(kind()) == hash(kind())


def test_knows_every_kind_once() -> None:
    assert set(KINDS) == values(Object) - {Object}
    assert len({(kind.API_VERSION, kind.KIND) for kind in KINDS}) == len(KINDS)


def test_writes_the_irregular_field_names() -> None:
    names = {name for kind in values(Value) for name in kind.__struct_encode_fields__}
    irregular = {
        "hostIP", "podIP", "hostPID", "hostIPC", "providerID", "nodeID", "volumeID", "diskURI",
        "pdName", "fsType", "targetPortal", "iqn", "awsElasticBlockStore", "gcePersistentDisk",
        "requiredDuringSchedulingIgnoredDuringExecution", "os", "csi", "rbd", "iscsi",
    }  # fmt: skip
    assert irregular <= names
    assert not {name for name in names if name.endswith(("Ip", "Id", "Uri", "Pid", "Ipc"))}


def test_reads_a_pod_and_ignores_what_it_does_not_know() -> None:
    pod = decode(json.dumps(POD | {"surprise": [1, {"a": None}]}).encode(), Pod)
    assert pod.key == "shop/web"
    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.spec.containers[0].resources.requests["cpu"] == parse_quantity("250m")
    assert to_builtins(pod) == POD


def test_says_kind_and_version_even_of_an_empty_object() -> None:
    assert encode(Pod()) == b'{"apiVersion":"v1","kind":"Pod"}'
    assert encode(Pod().metadata) == b"{}"


def test_refuses_to_encode_what_it_does_not_know() -> None:
    with pytest.raises(NotImplementedError, match="cannot encode object"):
        encode({"a": object()})


def test_reads_nulls_as_absent() -> None:
    data = {
        "metadata": {"name": "web", "creationTimestamp": None, "labels": None},
        "spec": {"containers": [None, {"name": "c", "ports": None, "resources": {"limits": None}}]},
        "status": None,
    }
    expected = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c"}]}}
    assert decode(json.dumps(data).encode(), Pod) == convert(expected, Pod)


def test_reads_null_values_of_maps_as_go_does() -> None:
    pod = convert({"metadata": {"labels": {"a": None}}, "spec": {"overhead": {"cpu": None}}}, Pod)
    assert pod.metadata.labels == {"a": ""}
    assert pod.spec.overhead == {"cpu": Quantity.ZERO}


def test_reads_numbers_as_quantities() -> None:
    capacity = convert({"capacity": 1024, "maximumVolumeSize": "1Gi"}, CSIStorageCapacity)
    assert capacity.capacity == parse_quantity("1Ki")
    node = convert({"status": {"allocatable": {"cpu": 4, "memory": 0.5}}}, Node)
    assert node.status.allocatable["memory"].milli == 500


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (
            {"spec": {"containers": [{"resources": {"requests": {"cpu": "lots"}}}]}},
            "Pod shop/web: spec.containers[0].resources.requests.cpu: expected a quantity such as",
        ),
        (
            {"spec": {"overhead": {"x.io/y": True}}},
            "Pod shop/web: spec.overhead[x.io/y]: expected a quantity such as",
        ),
        (
            {"spec": {"priority": "high"}},
            "Pod shop/web: spec.priority: expected int | null, got str",
        ),
        (
            {"spec": {"nodeSelector": {"a": 1}}},
            "Pod shop/web: spec.nodeSelector.a: expected str, got int",
        ),
        (
            {"spec": {"nodeSelector": ["a"]}},
            "Pod shop/web: spec.nodeSelector: expected object, got array",
        ),
        ({"spec": []}, "Pod shop/web: spec: expected object, got array"),
        (
            {"metadata": {"generateName": "w-", "uid": 1}},
            "Pod w-: metadata.uid: expected str, got int",
        ),
        ({"metadata": 1}, "Pod: metadata: expected object, got int"),
    ],
)
def test_says_which_object_and_which_field_is_wrong(patch: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(json.dumps(POD | patch).encode(), Pod)
    assert str(caught.value).startswith(message)
    with pytest.raises(DecodeError) as converted:
        convert(POD | patch, Pod)
    assert str(converted.value) == str(caught.value)


@pytest.mark.parametrize(
    "data", [*NO_JSON, *NO_TEXT, b"{'a': 1}", b'{"metadata": {"name": "\xff"}}']
)
def test_says_when_it_is_not_json(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^Pod: not valid JSON"):
        decode(data, Pod)


def test_refuses_json_that_is_no_object() -> None:
    with pytest.raises(DecodeError, match=r"^Pod: expected object, got array"):
        decode(b"[]", Pod)


def test_says_when_an_object_that_does_not_fit_is_nested_too_deeply() -> None:
    deep: list[Any] = []
    for _ in range(2_000):
        deep = [deep]
    for data in ({"spec": 5, "x": deep}, {"metadata": {"name": deep}}):
        with pytest.raises(DecodeError, match=r"^Pod: nested too deeply"):
            convert(data, Pod)


def test_reads_every_document_and_leaves_times_as_text() -> None:
    found = yaml_documents("# nothing here\n---\n{a: 2024-05-01T12:00:00Z}\n---\n[1, 2]\n")
    assert found == [{"a": "2024-05-01T12:00:00Z"}, [1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("a: !!int b", "not valid YAML: invalid literal for int()"),
        ("a: !!bool b", "not valid YAML"),
        ("a: \ud800", "not valid YAML"),
        ("[" * 200_000, "not valid YAML: nested too deeply"),
    ],
)
def test_says_why_a_text_is_no_yaml(text: str, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        yaml_documents(text)
    assert str(caught.value).startswith(message)


def test_equal_resources_become_one_object_and_no_more_are_kept_than_needed() -> None:
    def asked(amount: str) -> Any:
        return decode(json.dumps({"spec": {"overhead": {"cpu": amount}}}), Pod).spec.overhead

    assert asked("1") is asked("1")
    assert asked("2") == {"cpu": parse_quantity("2")}
    for number in range(10_000):
        asked(f"{number}m")
    assert len(_RESOURCES) < 5_000
    assert asked("9999m") is asked("9999m")


def test_equal_maps_become_one_object_and_lookalikes_do_not() -> None:
    sharing = SharingDecoder()

    def asked(amount: object) -> Any:
        raw = {"spec": {"overhead": {"cpu": amount}}, "metadata": {"labels": {"cpu": "1"}}}
        return sharing.decode(json.dumps(raw), Pod)

    first, second = asked("1"), asked("1")
    assert first.spec.overhead is second.spec.overhead
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.labels != first.spec.overhead  # of another type
    assert asked(1).spec.overhead == first.spec.overhead
    for broken in (True, "x", [1], {"a": "b"}):
        with pytest.raises(DecodeError, match=r"overhead\.cpu"):
            asked(broken)
    assert asked(None).spec.overhead == {"cpu": Quantity.ZERO}
    assert sharing.convert({"metadata": {"labels": {"cpu": "1"}}}, Pod).metadata.labels is (
        first.metadata.labels
    )
