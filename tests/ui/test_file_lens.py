"""The answers of `mooring ui FILE`: the same as those of the commands."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.browser.serving import ServedPage, offline, served

from mooring.lens.explainer import Explainer, find_pod
from mooring.lens.explanation import as_json
from mooring.lens.reading import read_snapshot
from mooring.simulator.questions import Imagination
from mooring.ui.file_lens import MAX_BODY, FileLens
from mooring.ui.one_file import answers

CLUSTER = Path(__file__).parents[2] / "docs" / "howto" / "cluster.yaml"
SNAPSHOT = read_snapshot(CLUSTER)


class Waiting(Imagination):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__(SNAPSHOT)
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def what_if(self, body: bytes) -> Any:
        self.begun.set()
        self.may_end.wait(20)
        return super().what_if(body)


IMAGINATION = Waiting()


@pytest.fixture(scope="module")
def site() -> Iterator[ServedPage]:
    backend = FileLens(offline(SNAPSHOT), IMAGINATION)
    with served(backend) as running:
        yield running
    backend.close()


@pytest.fixture(scope="module")
def key(site: ServedPage) -> str:
    token = site.address().partition("#token=")[2]
    status, answer = ask(site, "", "/session", json.dumps({"token": token}).encode())
    assert status == 200
    found: str = answer["key"]
    return found


def ask(site: ServedPage, key: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    method = "GET" if body is None else "POST"
    try:
        connection.request(method, path, body, {"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def get(site: ServedPage, key: str, path: str) -> Any:
    status, answer = ask(site, key, f"/lens/v1/{path}")
    assert status == 200, answer
    return answer


def test_explains_as_the_command_does(site: ServedPage, key: str) -> None:
    found = get(site, key, "pods/shop/web/explain?depth=remedies")
    expected = Explainer(SNAPSHOT).explain(find_pod(SNAPSHOT, "shop/web"))
    assert found == json.loads(as_json(expected))


def test_depth_and_nodes(site: ServedPage, key: str) -> None:
    found = get(site, key, "pods/shop/web/explain?depth=matrix&node=gpu-1")
    assert found["remedies"] is None
    assert found["asked"][0]["node"] == "gpu-1"
    assert len(found["matrix"]["nodes"]) == 5
    assert found["matrix"]["said"]["nodes"].count(0) == 0
    assert "matrix" not in get(site, key, "pods/shop/web/explain")


def test_state_queue_node_and_records(site: ServedPage, key: str) -> None:
    state = get(site, key, "state")
    assert state["source"] == "file"
    assert len(state["nodes"]["names"]) == 5
    queue = get(site, key, "queue?limit=1")
    assert len(queue["pods"]) == 1
    assert queue["truncated"]
    node = get(site, key, "nodes/small-1")
    assert [one["name"] for one in node["pods"]] == ["db"]
    assert get(site, key, "records")["rows"] == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("nodes/nowhere", 404),
        ("pods/shop/nowhere/explain", 404),
        ("pods/shop/web/explain?depth=all", 400),
        ("pods/shop/web/explain?node=nowhere", 422),
        ("queue?limit=many", 400),
        ("nothing", 404),
        ("stream", 404),
        ("what-if", 405),
    ],
)
def test_refusals_are_statuses(site: ServedPage, key: str, path: str, status: int) -> None:
    found, answer = ask(site, key, f"/lens/v1/{path}")
    assert found == status
    assert answer["kind"] == "Status"
    assert answer["message"]


def test_questions(site: ServedPage, key: str) -> None:
    status, answer = ask(site, key, "/lens/v1/what-if", b'{"drain": ["small-1"]}')
    assert status == 200
    assert answer["format"] == "mooring-what-if"
    status, answer = ask(site, key, "/lens/v1/what-if", b'{"drain": ["nowhere"]}')
    assert status == 422
    assert "nowhere" in answer["message"]
    assert ask(site, key, "/lens/v1/state", b"{}")[0] == 405
    assert ask(site, key, "/lens/v1/what-if", b" " * (MAX_BODY + 1))[0] == 413


def test_one_question_at_a_time_and_explanations_meanwhile(site: ServedPage, key: str) -> None:
    IMAGINATION.begun.clear()
    IMAGINATION.may_end.clear()
    first: list[int] = []
    asking = threading.Thread(
        target=lambda: first.append(ask(site, key, "/lens/v1/what-if", b"{}")[0])
    )
    asking.start()
    try:
        assert IMAGINATION.begun.wait(20)
        assert ask(site, key, "/lens/v1/what-if", b"{}")[0] == 429
        assert get(site, key, "pods/shop/web/explain")["feasible"] == 0
    finally:
        IMAGINATION.may_end.set()
        asking.join()
    assert first == [200]
    assert ask(site, key, "/lens/v1/what-if", b"{}")[0] == 200


def test_the_data_of_one_file_are_the_answers(site: ServedPage, key: str) -> None:
    found = json.loads(msgspec.json.encode(answers(offline(SNAPSHOT))))
    for path in ("state", "queue", "nodes/gpu-1", "pods/shop/web/explain?depth=matrix"):
        assert found[path] == get(site, key, path)
    assert found["pods/shop/web/explain"] == get(site, key, "pods/shop/web/explain?depth=remedies")
