from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from mooring.client.client import ApiClient
from mooring.client.transport import Fence, Request, Response
from mooring.errors import ConfigError
from mooring.lens.collect import collect
from mooring.lens.snapshot import KINDS


class Server:
    """Answers lists by their path; every page that is asked for is on record."""

    def __init__(self, pages: Mapping[str, list[tuple[int, Any]]]) -> None:
        self.asked: list[str] = []
        self._pages = {path: list(answers) for path, answers in pages.items()}

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        assert request.method == "GET"
        self.asked.append(request.path)
        path, _, _ = request.path.partition("?")
        answers = self._pages.get(path) or [(200, {"items": []})]
        code, body = answers.pop(0) if len(answers) > 1 else answers[0]
        return Response(code, {}, json.dumps(body).encode())

    def stream(self, request: Request) -> Any:
        raise AssertionError("nothing is watched")

    async def close(self) -> None:
        pass


def listed(*names: str, continue_: str = "") -> tuple[int, Any]:
    items = [{"metadata": {"name": name}} for name in names]
    return 200, {"metadata": {"continue": continue_}, "items": items}


def failure(code: int, reason: str, message: str) -> tuple[int, Any]:
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


async def test_pages_are_followed_and_an_expired_list_is_begun_again() -> None:
    server = Server(
        {
            "/api/v1/nodes": [
                listed("a", continue_="t1"),
                failure(410, "Expired", "too old"),
                listed("a", "b", continue_="t2"),
                listed("c"),
            ]
        }
    )
    seen: list[tuple[str, int]] = []
    found = await collect(ApiClient(server), on_page=lambda *page: seen.append(page), now=lambda: 5)
    assert [one.metadata.name for one in found.cluster.nodes] == ["a", "b", "c"]
    assert [count for kind, count in seen if kind == "nodes"] == [1, 2, 3]
    asked = [path for path in server.asked if "/nodes" in path]
    assert asked[1] == "/api/v1/nodes?continue=t1&limit=500"
    assert "continue" not in asked[2]
    assert (found.at, found.missing, found.notes) == (5, (), ())
    assert len({path.partition("?")[0] for path in server.asked}) == len(KINDS)


async def test_forbidden_kinds_are_missing_and_absent_ones_are_empty() -> None:
    forbidden = failure(403, "Forbidden", "budgets are forbidden")
    gone = failure(404, "NotFound", "no such kind")
    paths = {
        "/apis/policy/v1/poddisruptionbudgets": [forbidden],
        "/apis/storage.k8s.io/v1/csinodes": [gone],
    }
    found = await collect(ApiClient(Server(paths)))
    assert [(one.resource, one.problem) for one in found.missing] == [
        ("poddisruptionbudgets.policy", "budgets are forbidden")
    ]


async def test_an_object_that_cannot_be_read_does_not_hide_the_others() -> None:
    items = [
        {"metadata": {"name": "odd", "namespace": "x"}, "spec": {"priority": "high"}},
        {"metadata": {"name": "good", "namespace": "x"}},
    ]
    server = Server({"/api/v1/pods": [(200, {"items": items})]})
    found = await collect(ApiClient(server))
    assert [one.key for one in found.cluster.pods] == ["x/good"]
    assert found.notes == (
        "left out, because it can't be read: Pod x/odd: spec.priority:"
        " expected int | null, got str",
    )


async def test_another_server_is_not_taken_for_an_empty_cluster() -> None:
    with pytest.raises(ConfigError, match="not a Kubernetes API server"):
        await collect(ApiClient(Server({"/api/v1/nodes": [failure(404, "NotFound", "page")]})))
