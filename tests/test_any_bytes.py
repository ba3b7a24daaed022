"""Whatever the bytes, a decoder gives a value or the one error that its callers expect."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.api.go_protobuf import encode, encode_list, enveloped, field
from tests.cluster.apiserver.compared_requests import container
from tests.cluster.apiserver.in_process_server import PODS, InProcessServer
from tests.garbage import NO_OBJECT, NO_TEXT
from tests.protobuf_transport import frame

from mooring import config as cfg
from mooring.api import codec
from mooring.api import protobuf as api_protobuf
from mooring.api.coordination import Lease
from mooring.api.core import Pod
from mooring.client._decoding import Reader, UnreadableProtobuf
from mooring.client._events import BOOKMARK, Events, JsonEvents, ProtobufEvents
from mooring.client.errors import StatusError, status_error
from mooring.client.kubeconfig import load_kubeconfig
from mooring.cluster.apiserver.decoding import YAML, decode_object, decode_unstored
from mooring.cluster.apiserver.patching.patch import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from mooring.cluster.apiserver.protobuf import PROTOBUF, decode_protobuf
from mooring.cluster.apiserver.requests import JSON, ApiRequest, ApiResponse
from mooring.cluster.manifests import read_objects
from mooring.errors import ApiError, ConfigError
from mooring.extender import wire
from mooring.simulator.scenario import read_scenarios

POD: Final = {"apiVersion": "v1", "kind": "Pod", **container(), "metadata": {"name": "p"}}
EVENT: Final = {"type": "BOOKMARK", "object": POD}
STATUS: Final = {"code": 410, "details": {"retryAfterSeconds": 5}}
ERROR: Final = {"type": "ERROR", "object": STATUS}
BINDING: Final = {"metadata": {"name": "p"}, "target": {"name": "n"}}
ARGS: Final = {"Pod": POD, "Nodes": {"items": [{"metadata": {"name": "n"}}]}, "NodeNames": ["n"]}
CONFIG: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "x", "profiles": [{}]}
KUBECONFIG: Final = {"kind": "Config", "users": [{"name": "a", "user": {"token": "t"}}]}
SCENARIO: Final = {"id": "1", "nodes": [{"metadata": {"name": "n"}}], "pod": POD}


def protobuf(metadata: bytes) -> bytes:
    """An Event with these fields of its metadata."""
    head = field(1, b"v1") + field(2, b"Event")
    return b"k8s\x00" + field(1, head) + field(2, field(1, metadata))


CREATED: Final = 8  # the number of creationTimestamp, a message whose first field are seconds
PROTOBUF_EVENT: Final = protobuf(field(CREATED, field(1, 1_700_000_000)))


class Decoder(NamedTuple):
    """One of our decoders, an input that is good, and what it may raise for another."""

    decode: Callable[[bytes], Any]
    good: bytes
    errors: tuple[type[Exception], ...] = ()


def json_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def text(decode: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """A decoder of text, for bytes; lone surrogates are left in it."""
    return lambda data: decode(data.decode(errors="surrogateescape"))


def kubeconfig_of(data: bytes) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config")
        file.write_bytes(data)
        return load_kubeconfig(str(file), environ={})


def event_of(events: Events[Any]) -> Callable[[bytes], Any]:
    def read(data: bytes) -> None:
        type_, encoded = events.read(data)
        (events.version if type_ == BOOKMARK else events.decode)(encoded)

    return read


def server(method: str, path: str, media: str) -> Callable[[bytes], Any]:
    """The embedded server, which says 500 and InternalError where something broke."""
    server = InProcessServer()
    server.create(PODS, "p")
    asked = ApiRequest(
        method=method,
        path=f"/api/v1/namespaces/default/{path}",
        query={"fieldManager": "m"},
        headers={"content-type": media},
    )

    def answer(body: bytes) -> None:
        reply = server.server.answer(msgspec.structs.replace(asked, body=body))
        assert isinstance(reply, ApiResponse)
        status = json.loads(reply.body)
        assert status.get("reason") != "InternalError", status["message"]

    return answer


DECODERS: Final = {
    **{
        f"codec {kind.KIND}": Decoder(
            lambda data, kind=kind: codec.decode(data, kind),  # type: ignore[misc] # a default
            json_of(POD),
            (codec.DecodeError,),
        )
        for kind in codec.KINDS
    },
    "codec text": Decoder(
        text(lambda data: codec.decode(data, Lease)), json_of(POD), (codec.DecodeError,)
    ),
    "manifest": Decoder(text(codec.yaml_documents), json_of(POD), (codec.DecodeError,)),
    "event": Decoder(event_of(JsonEvents(Reader(Pod))), json_of(EVENT), (ApiError,)),
    "error event": Decoder(JsonEvents(Reader(Pod)).read, json_of(ERROR), (ApiError,)),
    "protobuf event": Decoder(
        event_of(ProtobufEvents(Reader(Pod))),
        frame("BOOKMARK", POD)[4:],
        (ApiError, UnreadableProtobuf),
    ),
    "protobuf error event": Decoder(
        event_of(ProtobufEvents(Reader(Pod))),
        frame("ERROR", {"kind": "Status", **STATUS})[4:],
        (ApiError, UnreadableProtobuf),
    ),
    "protobuf frames": Decoder(
        lambda data: ProtobufEvents(Reader(Pod)).feed(data),
        frame("ADDED", POD),
        (UnreadableProtobuf,),
    ),
    "status": Decoder(lambda data: status_error(500, data), json_of(STATUS)),
    **{
        f"wire {kind.__name__}": Decoder(
            lambda data, kind=kind: wire.decode(data, kind),  # type: ignore[misc] # a default
            json_of(ARGS),
            (codec.DecodeError,),
        )
        for kind in (
            wire.ExtenderArgs,
            wire.ExtenderFilterResult,
            wire.ExtenderPreemptionArgs,
            wire.ExtenderPreemptionResult,
            wire.ExtenderBindingArgs,
            wire.ExtenderBindingResult,
        )
    },
    "configuration": Decoder(text(cfg.load_text), json_of(CONFIG), (ConfigError,)),
    "kubeconfig": Decoder(kubeconfig_of, json_of(KUBECONFIG), (ConfigError,)),
    "objects": Decoder(text(lambda data: list(read_objects(data))), json_of(POD), (ValueError,)),
    "scenarios": Decoder(lambda data: list(read_scenarios([data])), json_of(SCENARIO)),
    "object": Decoder(lambda data: decode_object(PODS, data, JSON), json_of(POD), (StatusError,)),
    "YAML object": Decoder(
        lambda data: decode_object(PODS, data, YAML), json_of(POD), (StatusError,)
    ),
    "binding": Decoder(
        lambda data: decode_unstored("v1", "Binding", data), json_of(POD), (StatusError,)
    ),
    **{
        f"protobuf {kind.KIND}": Decoder(
            lambda data, kind=kind: api_protobuf.decode(data, kind),  # type: ignore[misc] # a default
            encode("Pod", {**POD, "metadata": {"name": "p", "labels": {"a": "b"}}}),
            (codec.DecodeError,),
        )
        for kind in api_protobuf.KINDS
    },
    "protobuf list": Decoder(
        api_protobuf.read_list, encode_list("Pod", [POD, POD], "5"), (codec.DecodeError,)
    ),
    "protobuf status": Decoder(
        lambda data: status_error(500, data), enveloped("Status", field(3, b"no") + field(6, 403))
    ),
    "protobuf": Decoder(decode_protobuf, PROTOBUF_EVENT, (StatusError,)),
    **{
        f"{method} {path} {media}": Decoder(
            server(method, path, media), PROTOBUF_EVENT if media == PROTOBUF else json_of(POD)
        )
        for method, path, media in (
            ("POST", "pods", JSON),
            ("POST", "pods", YAML),
            ("POST", "events", PROTOBUF),
            ("PUT", "pods/p", JSON),
            ("POST", "pods/p/binding", JSON),
            ("POST", "pods/p/eviction", JSON),
            ("DELETE", "pods/q", JSON),
            ("PATCH", "pods/p", JSON_PATCH),
            ("PATCH", "pods/p", MERGE_PATCH),
            ("PATCH", "pods/p", STRATEGIC_PATCH),
            ("PATCH", "pods/p", APPLY_PATCH),
        )
    },
}  # fmt: skip

ODD: Final = (
    b"!!int x",
    b"a: !!bool x",
    b"!!timestamp x",
    b"!!int ''",
    b"a: &a [*a]",
    b"&a {apiVersion: v1, kind: List, items: [*a]}",
    b'{"apiVersion": "v1", "kind": "Pod", "spec": &a [*a]}',
    b'{"apiVersion": ["v1"], "kind": "Pod"}',
    b'{"apiVersion": "v1", "kind": "Pod", "spec": {null: 1}}',
    b'{"kind": 5, "kind": "Pod"}',
    b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\\ud800"}}',
    b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "\\udc00"}}}',
    b"9" * 5_000,
    b'{"apiVersion": "v1", "kind": 0x' + b"f" * 5_000 + b"}",
    b'{"metadata": {"annotations": {"a": null}}, "x": ' + b"[" * 400 + b"]" * 400 + b"}",
    b'{"target": null, "x": ' + b"[" * 400 + b"]" * 400 + b"}",
    b'{"kind": 1e999}',
    b"- " * 20_000,
    b'{"type": "ERROR", "object": {"details": {"retryAfterSeconds": 1' + b"0" * 400 + b"}}}",
    b'{"details": {"retryAfterSeconds": 1' + b"0" * 400 + b"}}",
    protobuf(field(CREATED, field(1, 1 << 62))),
    protobuf(field(CREATED, field(1, (1 << 64) - (1 << 62)))),
    protobuf(field(17, field(7, field(1, b"[" * 3_000)))),  # the fields of a manager, raw JSON
)  # fmt: skip


def attempt(decoder: Decoder, data: bytes) -> None:
    with suppress(*decoder.errors):
        decoder.decode(data)


@pytest.mark.parametrize("name", DECODERS)
def test_gives_a_value_or_our_error_for_garbage(name: str) -> None:
    for data in (*NO_OBJECT, *NO_TEXT, *ODD):
        attempt(DECODERS[name], data)


@st.composite
def spoilt(draw: st.DrawFn, good: bytes) -> bytes:
    """A good input that is cut, or has other bytes in one or two places."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 8)))
        data[start:stop] = draw(SHARDS)
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


SHARDS: Final = st.one_of(
    st.binary(max_size=6),
    st.sampled_from(
        [b"", b"null", b"5", b'"', b"{}", b"[", b"}", b",", b'"\\ud800"', b"\xff", b"1e999", b"-"]
    ),
)


@pytest.mark.parametrize("name", DECODERS)
@given(data=st.data())
def test_gives_a_value_or_our_error_for_any_bytes(name: str, data: st.DataObject) -> None:
    decoder = DECODERS[name]
    attempt(decoder, data.draw(st.one_of(st.binary(), spoilt(decoder.good))))


@given(depth=st.integers(1, 3_000), where=st.sampled_from([b"%s", b'{"x":%s}', b'{"spec":%s}']))
@example(depth=900, where=b'{"spec":5,"x":%s}')
def test_gives_a_value_or_our_error_at_any_depth(depth: int, where: bytes) -> None:
    data = where % (b"[" * depth + b"]" * depth)
    for name in ("codec Pod", "codec Lease", "event", "status"):
        attempt(DECODERS[name], data)
    for name in (f"POST pods {JSON}", f"PATCH pods/p {MERGE_PATCH}"):
        attempt(DECODERS[name], data)
