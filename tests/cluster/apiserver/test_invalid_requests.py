"""Whatever is sent, the server answers: it refuses nonsense, it does not break."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.cluster.apiserver.compared_requests import Object, Step, ask_ours, container
from tests.cluster.apiserver.in_process_server import InProcessServer
from tests.cluster.apiserver.record_answers import SCRIPTS

NONSENSE: tuple[Any, ...] = (
    None, "", "x", "A b", "1", 0, -1, 1.5, 10**30, True, [], [None], ["x"], [[]], {}, {"x": None},
    {"x": "y"}, {"": {}}, {"name": 5}, "2020-01-01T00:00:00Z", "1Gi", "-5m", "\u2028", "a" * 300,
)  # fmt: skip
BODIES = [step for steps in SCRIPTS.values() for step in steps if isinstance(step.body, dict)]
ROUNDS = 4_000


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All paths into an object."""
    if path:
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in parts:
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))
        else:
            yield (*path, key)


def spoilt(value: Object, rng: random.Random) -> Object:
    """The same object with nonsense in one or two places."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 2)):
        *way, last = rng.choice(list(places(value)) or [("spec",)])
        holder: Any = value
        for key in way:
            holder = holder[key]
        match rng.randrange(4):
            case 0 if isinstance(holder, dict):
                holder.pop(last, None)
            case 1 if isinstance(holder, dict):
                holder[rng.choice(["spec", "x", "metadata"])] = copy.deepcopy(rng.choice(NONSENSE))
            case _:
                holder[last] = copy.deepcopy(rng.choice(NONSENSE))
    return value


@pytest.mark.parametrize("seed", range(3))
def test_refuses_nonsense_and_does_not_break(seed: int) -> None:
    rng = random.Random(seed)
    server = InProcessServer()
    for _ in range(ROUNDS):
        step = rng.choice(BODIES)
        path = step.path.replace("?dryRun=All", "")
        broken = msgspec.structs.replace(step, path=path, body=spoilt(step.body, rng))
        answer = ask_ours(server.server, broken, "default")
        shown = (str(broken), answer)
        assert answer.status != 500 or answer.value.get("reason") != "InternalError", shown
        if rng.random() < 0.3:
            _delete_something(server, rng)


def _delete_something(server: InProcessServer, rng: random.Random) -> None:
    path = rng.choice(
        ["pods", "pods/x", "configmaps", "deployments", "events", "persistentvolumeclaims/x"]
    )
    root = "/apis/apps/v1" if path == "deployments" else "/api/v1"
    body = {"gracePeriodSeconds": 0}
    ask_ours(server.server, Step("DELETE", f"{root}/namespaces/default/{path}", body), "default")


@pytest.mark.parametrize("body", ["", "{", "[]", "nul", "\ud800".encode("utf-8", "surrogatepass")])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "path",
    ["pods", "pods/p", "pods/p/binding", "pods/p/eviction", "pods/p/status", "bindings"],
)
def test_refuses_what_is_no_json(method: str, path: str, body: Any) -> None:
    server = InProcessServer()
    created = ask_ours(
        server.server, Step("POST", "/api/v1/namespaces/default/pods", container()), "default"
    )
    assert created.status == 201
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    for media in ("application/json", "application/merge-patch+json"):
        step = Step(method, f"/api/v1/namespaces/default/{path}", text, media)
        answer = ask_ours(server.server, step, "default")
        assert answer.status != 500 or answer.value.get("reason") != "InternalError", answer
