"""Requests to the embedded server and to a real kube-apiserver, and comparison of the answers.

A script is a list of steps in a namespace of its own. Answers are compared without what can't be
the same: uids, versions, times and managed fields.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import yaml

from mooring.cluster.apiserver.requests import ApiRequest, WatchResponse
from mooring.cluster.apiserver.server import ApiServer
from mooring.cluster.apiserver.tokens import ISSUER
from mooring.simulator.clock import VirtualLoop

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"

Object = dict[str, Any]

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION = re.compile(
    r"((?:ResourceVersion in (?:record|object meta)|current)[ :(]+)\d+", re.IGNORECASE
)
_DROPPED = frozenset(
    ("managedFields", "resourceVersion", "creationTimestamp", "storageVersionHash")
)
# Descriptions of the columns Name and Age: ours have none.
_ABOUT_COLUMNS = ("Name must be unique", "CreationTimestamp is a timestamp")
# The fields of a custom object are checked in the order of a Go map.
_UNORDERED = re.compile(
    r"""(\w+\.(?:\{ns\}\.example\.com|apiextensions\.k8s\.io) "[^"]*" is invalid: )\[(.*)\]"""
)
_PATIENCE = 60.0  # seconds, for what a real server does in the background
_TIMES = frozenset(
    ("deletionTimestamp", "lastTransitionTime", "lastPhaseTransitionTime", "expirationTimestamp")
)
_ISSUER = re.compile(rf"https://rig\.example|{re.escape(ISSUER)}")  # of tokens


class Step(msgspec.Struct, frozen=True):
    """One request; `{ns}` in its path is the script's namespace."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON
    accept: str = JSON
    until: str = ""  # asked again until the answer has these words; ours has them at once
    without: str = ""  # and none of these

    def __str__(self) -> str:
        shown = "" if self.body is None else f" {json.dumps(self.body)[:160]}"
        return f"{self.method} {self.path}{shown}"

    def encoded(self, namespace: str) -> bytes:
        if isinstance(self.body, str):
            return self.body.replace("{ns}", namespace).encode()
        if self.body is None:
            return b""
        return json.dumps(self.body).replace("{ns}", namespace).encode()


def get(path: str, accept: str = JSON) -> Step:
    return Step("GET", path, accept=accept)


def post(path: str, body: Any, **options: str) -> Step:
    return Step("POST", path, body, **options)


def put(path: str, body: Any) -> Step:
    return Step("PUT", path, body)


def patch(path: str, body: Any, content_type: str = MERGE) -> Step:
    return Step("PATCH", path, body, content_type)


def delete(path: str, body: Any = None) -> Step:
    return Step("DELETE", path, body)


class Answer(msgspec.Struct, frozen=True):
    """What a server said."""

    status: int
    value: Any  # decoded, or text


PAUSE = "PAUSE"
"""Instead of a method: the real server's informers get time to see what was written."""
_PAUSED = Answer(0, None)
_PAUSE_SECONDS = 0.5


def ask_ours(server: ApiServer, step: Step, namespace: str) -> Answer:
    if step.method == PAUSE:
        return _PAUSED
    reply = server.answer(request_of(step, namespace))
    assert not isinstance(reply, WatchResponse), f"a watch has no end: {step}"
    return Answer(reply.status, _decoded(reply.body))


def watch_ours(server: ApiServer, step: Step, namespace: str) -> Answer:
    """All that a watch tells until it ends, in virtual time."""
    watching = server.answer(request_of(step, namespace))
    assert isinstance(watching, WatchResponse), watching

    async def told() -> bytes:
        return b"".join([chunk async for chunk in watching.chunks])

    loop = VirtualLoop()
    try:
        task = loop.create_task(told())
        loop.advance(3600)
        lines = task.result().splitlines()
    finally:
        loop.close()
    return Answer(200, [json.loads(line) for line in lines])


def request_of(step: Step, namespace: str) -> ApiRequest:
    """The request of a step to our own server."""
    path, _, query = step.path.replace("{ns}", namespace).partition("?")
    return ApiRequest(
        method=step.method,
        path=unquote(path),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        headers={"accept": step.accept, "content-type": step.content_type},
        body=step.encoded(namespace),
    )


class RealServer:
    """A connection to a kube-apiserver."""

    def __init__(self, address: str, token: str, trusted: Path) -> None:
        place = urlsplit(address)
        self._token = token
        self._connection = http.client.HTTPSConnection(
            place.hostname or "",
            place.port,
            timeout=60,
            context=ssl.create_default_context(cafile=trusted),
        )

    def ask(self, step: Step, namespace: str) -> Answer:
        if step.method == PAUSE:
            time.sleep(_PAUSE_SECONDS)
            return _PAUSED
        answer = self._ask(step, namespace)
        end = time.monotonic() + _PATIENCE
        while not _is_awaited(step, answer):
            assert time.monotonic() < end, f"{step} never says {step.until!r}: {answer}"
            time.sleep(0.05)
            answer = self._ask(step, namespace)
        return answer

    def _ask(self, step: Step, namespace: str) -> Answer:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": step.accept}
        body = step.encoded(namespace) or None
        if body is not None:
            headers["Content-Type"] = step.content_type
        path = step.path.replace("{ns}", namespace)
        self._connection.request(step.method, path, body, headers)
        with self._connection.getresponse() as response:
            return Answer(response.status, _decoded(response.read()))

    def close(self) -> None:
        self._connection.close()


def _is_awaited(step: Step, answer: Answer) -> bool:
    said = json.dumps(answer.value)
    return step.until in said and not (step.without and step.without in said)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


def comparable(answer: Answer, namespace: str) -> Any:
    """An answer without what differs from server to server."""
    return {"status": answer.status, "body": _comparable(answer.value, namespace)}


def _comparable(value: Any, namespace: str) -> Any:
    if isinstance(value, dict):
        return {
            key.replace(namespace, "{ns}"): _field(key, part, namespace)
            for key, part in value.items()
            if part is not None and key not in _DROPPED
        }
    if isinstance(value, list):
        return [_comparable(part, namespace) for part in value]
    if isinstance(value, str):
        if value.startswith(_ABOUT_COLUMNS):
            return ""
        text = _UID.sub("<uid>", value).replace(namespace, "{ns}")
        text = _ISSUER.sub("<issuer>", _VERSION.sub(r"\1<version>", text))
        if listed := _UNORDERED.fullmatch(text):
            text = f"{listed[1]}[{', '.join(sorted(listed[2].split(', ')))}]"
        return text.split("\n@@")[0]  # the difference between two Go structs follows
    return value


def _field(key: str, part: Any, namespace: str) -> Any:
    if key in _TIMES:
        return "<time>"
    if key == "token" and part.count(".") == 2:
        return _comparable(claims_of(part), namespace)
    if key == "causes":  # each is said as often as the real server happens to look
        found = [_comparable(cause, namespace) for cause in part]
        return sorted({json.dumps(cause, sort_keys=True) for cause in found})
    return _comparable(part, namespace)


def claims_of(token: str) -> Object:
    """What a token says; its times in seconds since it was issued."""
    claims: Object = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return claims | {time: claims[time] - claims["iat"] for time in ("exp", "nbf", "iat")}


def pod(name: str, spec: Mapping[str, Any] | None = None, **meta: Any) -> Object:
    containers = [{"name": "c", "image": "i"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **meta},
        "spec": {"containers": containers, **(spec or {})},
    }


def container(**fields: Any) -> Object:
    """A pod of one container that has these fields."""
    return pod("x", {"containers": [{"name": "c", "image": "i", **fields}]})


def thing(api_version: str, kind: str, name: str = "x", **fields: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def trying(path: str, bodies: Sequence[Any]) -> list[Step]:
    """Create each of these, without consequences."""
    return [post(f"{path}?dryRun=All", body) for body in bodies]


def read_scripts(name: str) -> dict[str, list[Step]]:
    """The scripts in a YAML file next to this one.

    A step is a method, a path and perhaps a kind, with its body: without apiVersion, kind and the
    name x, and a pod without its container. TRY has several bodies; each is created as a dry run.
    PAUSE waits.
    """
    text = Path(__file__).with_name(name).read_text()
    written = yaml.load(text, yaml.CSafeLoader)  # each process reads it before any test
    return {
        script: [step for entry in entries for step in _steps(*entry.popitem())]
        for script, entries in written.items()
    }


def _steps(head: str, body: Any) -> list[Step]:
    method, path, kind = (*head.split(), "")[:3]
    _, root, *place = path.split("/")
    api_version = place[0] if root == "api" else f"{place[0]}/{place[1]}"

    def whole(value: Object) -> Object:
        if kind == "Pod":
            value = {**value, "spec": pod("x", value.get("spec"))["spec"]}
        return {**thing(api_version, kind), **value}

    if method == "TRY":
        return trying(path, [whole(value) for value in body])
    if kind:
        body = whole(body)
    return [patch(path, body) if method == "PATCH" else Step(method, path, body)]
