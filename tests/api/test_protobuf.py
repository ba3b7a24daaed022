"""Pods in protobuf become the same structs as in JSON."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.api.go_protobuf import encode, encode_list, enveloped, field
from tests.api.random_json import RandomJson

from mooring.api import codec, core, protobuf
from mooring.api._field_numbers import FIELD_NUMBERS, RENAMED
from mooring.api._messages import _TIMES, MEMORY, message
from mooring.api.codec import DecodeError
from mooring.api.meta import Object
from mooring.cluster.apiserver.protobuf import NUMBERS_FILE
from mooring.cluster.apiserver.schema import Schema

KINDS: dict[str, type[Object]] = {"Pod": core.Pod}
GO_NAMES = {"ResourceClaimRef": "ResourceClaim"}


def from_json(kind: str, value: dict[str, Any]) -> Object:
    return codec.decode(msgspec.json.encode(value), KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=1)
def test_reads_the_same_as_from_json(kind: str, seed: int) -> None:
    for value in RandomJson(seed).objects(kind, 6):
        assert protobuf.decode(encode(kind, value), KINDS[kind]) == from_json(kind, value)


def test_reads_every_field() -> None:
    reached: dict[str, set[str]] = {}

    def walk(value: Any) -> None:
        if isinstance(value, msgspec.Struct):
            fields = msgspec.structs.fields(value)
            changed = {f.name for f in fields if getattr(value, f.name) != f.default}
            reached.setdefault(type(value).__name__, set()).update(changed)
            for one in fields:
                walk(getattr(value, one.name))
        elif isinstance(value, tuple):
            for inner in value:
                walk(inner)

    for kind in KINDS:
        value = RandomJson(0, complete=True).object(kind)
        read = protobuf.decode(encode(kind, value), KINDS[kind])
        assert read == from_json(kind, value)
        walk(read)
    for name, numbers in FIELD_NUMBERS.items():
        struct = "Condition" if name.endswith("Condition") else name
        names = {f.encode_name: f.name for f in msgspec.structs.fields(_struct(struct))}
        known = {names[entry.partition("=")[0]] for entry in numbers.split()}
        assert known <= reached.get(struct, set()), name


def _struct(name: str) -> type[msgspec.Struct]:
    from mooring.api import meta, placement, volumes

    for module in (core, meta, placement, volumes):
        if hasattr(module, name):
            found: type[msgspec.Struct] = getattr(module, name)
            return found
    raise AssertionError(name)


def test_knows_the_numbers_and_pointers_of_the_go_types() -> None:
    text = NUMBERS_FILE.read_text()
    lines = dict(line.partition(" ")[::2] for line in text.splitlines() if line[0] != "#")
    for name, numbers in FIELD_NUMBERS.items():
        go_name = GO_NAMES.get(name, name)
        names = (f"{group}.v1.{go_name}" for group in ("core", "meta"))
        full = next(one for one in names if one in lines)
        theirs = dict(entry.split("=") for entry in lines[full].split())
        struct = _struct("Condition" if name.endswith("Condition") else name)
        hints = {f.encode_name: f for f in msgspec.structs.fields(struct)}
        for entry in numbers.split():
            one, _, number = entry.partition("=")
            assert theirs[one].rstrip("*") == number, (name, one)
            schema = Schema(form="struct", name=full).fields[one]
            assert (schema.name == "time") == (one in _TIMES), (name, one)
            may_be_none = type(None) in get_args(hints[one].type)
            if may_be_none and one not in _TIMES:
                assert theirs[one].endswith("*"), (name, one)
            elif theirs[one].endswith("*") and one not in _TIMES:
                # A zero that is said on purpose is the same as none.
                assert not hints[one].default, (name, one)
        # All fields are there, except that conditions of pods have fewer.
        if struct.__name__ != "Condition":
            assert {entry.partition("=")[0] for entry in numbers.split()} == set(hints), name
    assert set(RENAMED.values()) <= set(FIELD_NUMBERS)


def test_parts_that_are_the_same_bytes_are_one_object() -> None:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "priority": 5}
    pods = [
        protobuf.decode(
            encode(
                "Pod",
                {
                    "metadata": {"name": name, "namespace": "d", "labels": {"app": "web"}},
                    "spec": {**spec, "nodeName": name},
                },
            ),
            core.Pod,
        )
        for name in ("one", "two", "a-long-name")
    ]
    assert [pod.spec.node_name for pod in pods] == ["one", "two", "a-long-name"]
    for pod in pods[1:]:
        assert pod.metadata.labels is pods[0].metadata.labels
        assert pod.metadata.namespace is pods[0].metadata.namespace
        assert pod.spec.containers is pods[0].spec.containers
    protobuf.forget()


def test_remembers_a_limited_number_of_bytes() -> None:
    protobuf.forget()
    labels = (
        {"metadata": {"name": "p", "labels": {"a": f"{i:08d}" * 1_000}}} for i in range(1_500)
    )
    for value in labels:
        protobuf.decode(encode("Pod", value), core.Pod)
    kept = sum(len(data) for part in MEMORY._parts for data in part)
    assert 0 < kept < 5 * 1024 * 1024
    protobuf.forget()
    assert not any(MEMORY._parts)


def test_a_spec_with_two_node_names_is_no_template_for_others() -> None:
    twice = field(10, b"one") + field(19, b"s") + field(10, b"two")
    once = field(10, b"xxx") + field(19, b"s")
    read = message(core.PodSpec, "PodSpec").read
    for _ in range(2):
        assert (read(twice).node_name, read(twice).scheduler_name) == ("two", "s")
        assert (read(once).node_name, read(once).scheduler_name) == ("xxx", "s")


def test_a_message_that_is_cut_is_refused_even_if_it_begins_like_others() -> None:
    whole = encode("Pod", {"metadata": {"name": "p"}, "spec": {"nodeName": "node-1"}})
    protobuf.decode(whole, core.Pod)
    spec = field(3, b"Always") + field(10, b"node-1")
    read = message(core.PodSpec, "PodSpec").read
    assert read(spec).node_name == "node-1"
    with pytest.raises(IndexError):
        read(spec[:-7] + b"\x08node-1")
    for end in range(1, len(whole)):
        if end != len(field(1, b"")):
            try:
                protobuf.decode(whole[:end], core.Pod)
            except DecodeError:
                continue
            # Only where a field ends.
            assert whole[:end] in {whole[: len(whole) - len(rest)] for rest in _rests(whole)}


def _rests(data: bytes) -> list[bytes]:
    """What is left of a message after each of its fields."""
    from mooring.api._wire import _places

    return [data[stop:] for _, _, _, stop in _places(data)]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x0a", "it ends in the middle of a field"),
        (b"\x0a\x05ab", "it ends in the middle of a field"),
        (b"\xfb\x01", "wire type 3 is not used by Kubernetes"),
        (b"\x08\x01", "field 1 has wire type 0"),
        (b"\x00\x01", "field 0 has wire type 0"),
        (b"\xf8\x01" + b"\xff" * 11, "a number is longer than 64 bits"),
        (field(2, field(32, field(1, b"cpu") + field(2, field(1, b"lots")))), "a quantity such as"),
        (field(1, field(8, field(1, 1 << 62))), "is not a time"),
    ],
)
def test_says_what_is_wrong_with_an_object(data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        protobuf.decode(data, core.Pod)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{}", "the first bytes are not those of Kubernetes' protobuf"),
        (b"k8s\0" + field(1, b"v1") + field(2, 5), "a number where bytes are expected"),
        (b"k8s\0" + field(2, b"object")[:-1], "it ends in the middle of a field"),
        (b"k8s\0\x0a", "it ends in the middle of a field"),
    ],
)
def test_says_what_is_wrong_with_an_envelope(data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        protobuf.read_status(data)


def test_an_envelope_without_an_object_has_an_empty_one() -> None:
    assert protobuf.read_status(b"k8s\0" + field(1, b"v1") + field(4, 0))["message"] == ""


def test_text_that_is_no_unicode_is_shown_as_json_would() -> None:
    pod = protobuf.decode(field(1, field(1, b"a\xffb")), core.Pod)
    assert pod.metadata.name == "a�b"


def test_skips_fields_of_later_versions() -> None:
    later = field(900, b"x") + field(901, 5) + b"\xd5\x38abcd" + b"\xd1\x38abcdefgh"
    data = field(1, field(1, b"p") + later) + later
    assert protobuf.decode(data, core.Pod).metadata.name == "p"
    assert protobuf.decode(data, core.Pod).metadata.name == "p"


def test_reads_a_page_of_a_list() -> None:
    values = [{"metadata": {"name": name}} for name in ("a", "b")]
    page = protobuf.read_list(encode_list("Pod", values, "55", "next"))
    assert [protobuf.decode(item, core.Pod).name for item in page.items] == ["a", "b"]
    assert (page.resource_version, page.continue_) == ("55", "next")
    with pytest.raises(DecodeError, match=r"^List: not valid protobuf: the first bytes"):
        protobuf.read_list(b"{}")


def test_reads_a_status() -> None:
    details = field(1, b"pods") + field(3, b"Pod") + field(5, 7)
    status = field(2, b"Failure") + field(3, b"too many") + field(4, b"TooManyRequests")
    found = protobuf.read_status(enveloped("Status", status + field(5, details) + field(6, 429)))
    assert found["message"] == "too many"
    assert (found["reason"], found["code"]) == ("TooManyRequests", 429)
    assert found["details"]["retryAfterSeconds"] == 7


def with_token(token: str, node: str = "n1", **more: Any) -> dict[str, Any]:
    mount = {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    volumes = [{"name": token, "projected": {}}, {"name": "data", "emptyDir": {}}]
    container = {"name": "c", "image": "i", "volumeMounts": [mount], **more}
    return {"volumes": volumes, "containers": [container], "nodeName": node}


def read_specs(*specs: dict[str, Any]) -> list[core.PodSpec]:
    """By a reader that has read nothing before; each is compared with its JSON."""
    protobuf.forget()
    reader = message.__wrapped__(core.PodSpec, "PodSpec")
    found = [reader.read(encode("PodSpec", spec)) for spec in specs]
    for spec, read in zip(specs, found, strict=True):
        assert read == codec.convert(spec, core.PodSpec)
    return found


def test_pods_of_a_template_share_its_parts_although_each_has_a_token_volume() -> None:
    names = [f"kube-api-access-{end}" for end in ("abcde", "fghij", "9x4mz")]
    specs = read_specs(*(with_token(name, f"node-{name[-5:]}") for name in names))
    assert [spec.volumes[0].name for spec in specs] == names
    for spec in specs[1:]:
        assert spec.containers is specs[0].containers
        assert spec.volumes[1] is specs[0].volumes[1]


@pytest.mark.parametrize(
    "token", ["kube-api-access-", "kube-api-access-ab", "kube-api-access-abcdefgh", "kube-api-acc"]
)
def test_a_volume_that_is_named_like_that_of_a_token_keeps_its_name(token: str) -> None:
    both = with_token(token), with_token("kube-api-access-vwxyz")
    read_specs(*both, *reversed(both), with_token(token, "another-node"))


def test_a_name_of_a_token_volume_may_be_anywhere() -> None:
    token = "kube-api-access-abcde"
    said = with_token(token, args=["--volume", token]), with_token(token, image=f"x/{token}")
    selected = {**with_token(token), "nodeSelector": {token: token}}
    claim = {"name": "kube-api-access-other", "persistentVolumeClaim": {"claimName": token}}
    claimed = {**with_token(token), "volumes": [claim, {"name": token, "projected": {}}]}
    plain = with_token("kube-api-access-vwxyz")
    for odd in (*said, selected, claimed):
        read_specs(plain, odd, plain, odd, with_token("kube-api-access-99999"))
