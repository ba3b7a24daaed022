"""Requests that are made to break the server, or to keep it busy: refused, and quickly."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.api.go_protobuf import field
from tests.cluster.apiserver.compared_requests import container
from tests.cluster.apiserver.in_process_server import PODS, InProcessServer
from tests.cluster.apiserver.record_answers import SCRIPTS
from tests.test_any_bytes import PROTOBUF_EVENT, protobuf

from mooring import config as cfg
from mooring.api import codec
from mooring.api.meta import parse_time
from mooring.api.yaml import load
from mooring.client.kubeconfig import load_kubeconfig
from mooring.cluster.apiserver.decoding import YAML
from mooring.cluster.apiserver.patching.patch import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from mooring.cluster.apiserver.protobuf import PROTOBUF
from mooring.cluster.apiserver.requests import JSON, MAX_NODES, ApiRequest, ApiResponse
from mooring.errors import ConfigError

PATH: Final = "/api/v1/namespaces/default/pods"
POD: Final = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **container()}
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
ROUNDS: Final = 3_000


def answer(
    body: bytes, media: str, method: str = "POST", path: str = PATH, **query: str
) -> tuple[int, str]:
    """Code and message, from a server that has the pod `p`."""
    server = InProcessServer()
    server.create(PODS, "p")
    reply = server.server.answer(
        ApiRequest(
            method=method,
            path=path,
            query={"fieldManager": "m", **query},
            headers={"content-type": media},
            body=body,
        )
    )
    assert isinstance(reply, ApiResponse)
    return reply.status, json.loads(reply.body).get("message", "")


# --- small texts that stand for large data --------------------------------------------------------


def levels(first: str, level: str) -> bytes:
    """YAML that stands for some millions of values: each level refers to the one before."""
    lines = [f"a: &a {first}"]
    lines += [
        f"{to}: &{to} {level % ','.join([f'*{of}'] * 9)}"
        for of, to in zip("abcdef", "bcdefg", strict=True)
    ]
    return "\n".join(lines).encode()


BOMBS: Final = {
    "aliases of aliases": levels("[x, x, x, x, x, x, x, x, x]", "[%s]"),
    "merged maps": levels("{x: y}", "{<<: [%s]}"),
    "a long text": b"a: &a " + b"x" * 20_000 + b"\nb: [" + b"*a," * 200 + b"]",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_refuses_yaml_that_is_much_larger_than_its_text(bomb: str) -> None:
    body, why = BOMBS[bomb], "document contains excessive aliasing"
    for code, message in (
        answer(body, YAML),
        answer(body, APPLY_PATCH, "PATCH", f"{PATH}/p"),
    ):
        assert code == 400
        assert message.endswith((why, f"document has more than {MAX_NODES} keys and values"))
    with pytest.raises(codec.DecodeError, match=why):
        codec.yaml_documents(body.decode())
    with pytest.raises(ConfigError, match=why):
        cfg.load_text(body.decode())


def test_refuses_a_kubeconfig_that_is_much_larger_than_its_text(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(BOMBS["merged maps"])
    with pytest.raises(ConfigError, match="document contains excessive aliasing"):
        load_kubeconfig(str(file), environ={})


def test_reads_aliases_in_every_document_of_a_text() -> None:
    text = "a: &a [1, {b: 2}]\nb: *a\n---\na: &a {c: 3}\nb: {<<: *a}\n"
    assert codec.yaml_documents(text) == [
        {"a": [1, {"b": 2}], "b": [1, {"b": 2}]},
        {"a": {"c": 3}, "b": {"c": 3}},
    ]


def test_refuses_numbers_that_take_long_to_read() -> None:
    with pytest.raises(ValueError, match="at most 4300 digits"):
        load("a: 1" + ":1" * 5_000)


def test_refuses_patches_that_copy_a_list_into_itself() -> None:
    steps = [{"op": "add", "path": "/spec/x", "value": ["x" * 1_000]}]
    steps += [{"op": "copy", "from": "/spec/x", "path": "/spec/x/-"}] * 14
    code, message = answer(json.dumps(steps).encode(), JSON_PATCH, "PATCH", f"{PATH}/p")
    assert (code, message[:30]) == (422, "the server rejected our reques")


# --- large bodies ---------------------------------------------------------------------------------


def large(values: int) -> list[tuple[str, bytes]]:
    """Bodies with so many values, as media types and bytes."""
    spec = {**POD, "spec": {"containers": [{}] * values}}
    pairs = field(1, b"") * (values // 2)
    flow = b"{apiVersion: v1, kind: Pod, x: [" + b"[]," * values + b"]}"
    block = b"apiVersion: v1\nkind: Pod\nx:\n" + b"- 1\n" * values
    return [
        (JSON, json.dumps(spec).encode()),
        (YAML, flow),
        (YAML, block),
        (PROTOBUF, protobuf(pairs)),
        (APPLY_PATCH, block),
    ]


@pytest.mark.parametrize("kind", range(5))
def test_refuses_bodies_with_too_many_values(kind: int) -> None:
    media, body = large(MAX_NODES + 10)[kind]
    where = ("PATCH", f"{PATH}/p") if media == APPLY_PATCH else ("POST", PATH)
    code, message = answer(body, media, *where)
    assert code == 400
    assert str(MAX_NODES) in message


def test_takes_long_texts_for_what_they_are() -> None:
    text = '{"a": [1, 2, "' * 20_000
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"t": text},
    }
    path = PATH.replace("pods", "configmaps")
    assert answer(json.dumps(config).encode(), JSON, path=path)[0] == 201
    assert answer(yaml.safe_dump(config).encode(), YAML, path=path)[0] == 201


# --- times --------------------------------------------------------------------------------------

EVENT: Final = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "involvedObject": {"namespace": "default"},
}


@given(
    st.from_regex(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9])?Z", fullmatch=True
    )
)
@example("2023-02-29T00:00:00Z")
@example("2024-02-29T00:00:00Z")
@example("1900-02-29T00:00:00Z")
@example("0000-01-01T00:00:00Z")
@example("2024-01-01T00:00:00+24:00")
@example("9999-12-31T23:59:59-23:59")
@example("x")
def test_takes_times_that_it_can_show(time: str) -> None:
    """One that it can't would break every table of its kind."""
    try:
        parse_time(time)
        is_time = True
    except ValueError:
        is_time = False
    server = InProcessServer()
    path = PATH.replace("pods", "events")
    body = json.dumps(EVENT | {"lastTimestamp": time}).encode()
    made = server.server.answer(ApiRequest(method="POST", path=path, body=body))
    listed = server.server.answer(ApiRequest(method="GET", path=path, headers={"accept": TABLE}))
    assert isinstance(made, ApiResponse)
    assert isinstance(listed, ApiResponse)
    assert (made.status, listed.status) == (201 if is_time else 400, 200)
    assert is_time or b"parsing time" in made.body


# --- anything -------------------------------------------------------------------------------------

SHARDS: Final = (
    b"", b"\x00", b"\xff", b'"', b"[", b"]", b"{", b"}", b",", b":", b"null", b"-1", b"1e999", b"5",
    b"*a", b"&a ", b"<<", b"%", b"..", b"/", b"\\ud800", b"\n", b"9" * 30, b"2020-99-99T00:00:00Z",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"!!int", b"~1", b"true", b"\xe2\x80\xa8",
)  # fmt: skip
MEDIA: Final = (JSON, YAML, PROTOBUF, APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, "x/y")
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE")
QUERY: Final = (
    "fieldSelector", "labelSelector", "limit", "continue", "resourceVersion", "dryRun",
    "resourceVersionMatch", "fieldValidation", "propagationPolicy", "gracePeriodSeconds", "pretty",
    "timeoutSeconds", "force", "orphanDependents",
)  # fmt: skip


def spoilt(data: bytes, rng: random.Random) -> bytes:
    """With other bytes in up to three places, or cut."""
    found = bytearray(data)
    for _ in range(rng.randrange(4)):
        start = rng.randint(0, len(found))
        found[start : start + rng.randrange(6)] = rng.choice(SHARDS)
    return bytes(found[: rng.randint(0, len(found))] if rng.random() < 0.2 else found)


def request(rng: random.Random) -> ApiRequest:
    """One of the recorded requests, with another method, media type, path, query or body."""
    step = rng.choice([step for steps in SCRIPTS.values() for step in steps])
    path, _, _ = step.path.replace("{ns}", "default").partition("?")
    media, body = rng.choice(MEDIA), json.dumps(step.body).encode()
    if media == YAML and rng.random() < 0.5:
        body = yaml.safe_dump(step.body).encode()
    elif media == PROTOBUF:
        path, body = "/api/v1/namespaces/default/events", PROTOBUF_EVENT
    if rng.random() < 0.3:
        path = spoilt(path.encode(), rng).decode(errors="replace")
    query = {name: spoilt(b"a=b", rng).decode(errors="replace") for name in rng.sample(QUERY, 2)}
    method = step.method if rng.random() < 0.7 else rng.choice(METHODS)
    if method == "PATCH":
        query["fieldManager"] = "m"
    return ApiRequest(
        method=method,
        path=path,
        query=query if rng.random() < 0.3 or method == "PATCH" else {},
        headers={
            "content-type": media,
            "accept": rng.choice(["", JSON, "x", TABLE]),
        },
        body=spoilt(body, rng),
    )


@pytest.mark.parametrize("seed", range(3))
def test_answers_anything_without_breaking(seed: int) -> None:
    async def ask_all() -> None:
        rng, server = random.Random(seed), InProcessServer()
        server.create(PODS, "p")
        for _ in range(ROUNDS):
            asked = request(rng)
            reply = await server.server.handle(asked)
            if isinstance(reply, ApiResponse) and reply.status >= 500:
                said: Any = json.loads(reply.body)
                assert said.get("reason") != "InternalError", (asked, said["message"])

    asyncio.run(ask_all())
