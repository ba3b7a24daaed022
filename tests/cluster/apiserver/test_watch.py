"""What a watch tells, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
from tests.cluster.apiserver.compared_requests import TABLE, Object, pod
from tests.cluster.apiserver.in_process_server import MAPS, PODS, ServerOnALoop

from mooring.cluster.apiserver import store as stores
from mooring.cluster.apiserver.requests import ApiRequest, WatchResponse
from mooring.cluster.apiserver.resources import known


class Watcher:
    """Reads a watch as it comes."""

    def __init__(self, watched: WatchedServer, query: str, accept: str, root: str) -> None:
        request = ApiRequest(
            method="GET",
            path=root,
            query={"watch": "1", **dict(parse_qsl(query, keep_blank_values=True))},
            headers={"accept": accept},
        )
        watching = watched.server.server.answer(request)
        assert isinstance(watching, WatchResponse), watching
        self._chunks = watching.chunks
        self.lines: list[Object] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.task = watched.loop.create_task(self._read())

    async def _read(self) -> None:
        async for chunk in self._chunks:
            self.lines += [json.loads(line) for line in chunk.splitlines()]
            await self.may_read.wait()

    @property
    def has_ended(self) -> bool:
        return self.task.done()

    def told(self) -> list[str]:
        """Events in short, since the last time."""
        lines, self.lines = self.lines, []
        return [_short(line) for line in lines]

    async def leave(self) -> None:
        self.task.cancel()
        assert isinstance(self._chunks, AsyncGenerator)
        await asyncio.wait([self.task])
        await self._chunks.aclose()


def _short(line: Object) -> str:
    value = line["object"]
    name = value.get("metadata", {}).get("name", "")
    return f"{line['type']} {name}".strip()


class WatchedServer(ServerOnALoop):
    """A loop and a server; at the end no watch is open."""

    def watch(
        self,
        query: str = "",
        accept: str = "application/json",
        root: str = "/api/v1/namespaces/default/pods",
    ) -> Watcher:
        watcher = Watcher(self, query, accept, root)
        self.loop.settle()
        return watcher

    def make(self, name: str, **labels: str) -> None:
        self.server.verbs.create(PODS, pod(name, labels=labels), namespace="default")
        self.loop.settle()

    def label(self, name: str, **labels: str) -> None:
        def change(value: Object) -> None:
            value["metadata"]["labels"] = labels

        self.server.verbs.modify(PODS, "default", name, change)
        self.loop.settle()

    def remove(self, name: str) -> None:
        self.server.verbs.delete(PODS, "default", name)
        self.loop.settle()

    @property
    def version(self) -> int:
        return self.server.store.version


@pytest.fixture
def watched() -> Iterator[WatchedServer]:
    with WatchedServer() as watched:
        yield watched


def test_tells_what_there_is_and_then_what_happens(watched: WatchedServer) -> None:
    watched.make("a")
    watcher = watched.watch()
    assert watcher.told() == ["ADDED a"]
    watched.make("b")
    watched.label("a", x="y")
    watched.remove("b")
    assert watcher.told() == ["ADDED b", "MODIFIED a", "MODIFIED b", "DELETED b"]


def test_goes_on_from_a_version(watched: WatchedServer) -> None:
    watched.make("a")
    seen = watched.version
    watched.make("b")
    watched.remove("a")
    watcher = watched.watch(f"resourceVersion={seen}")
    assert watcher.told() == ["ADDED b", "MODIFIED a", "DELETED a"]
    assert watched.watch("resourceVersion=0").told() == ["ADDED b"]


def test_every_event_has_a_version_of_its_own(watched: WatchedServer) -> None:
    watcher = watched.watch()
    watched.make("a")
    watched.remove("a")
    versions = [int(line["object"]["metadata"]["resourceVersion"]) for line in watcher.lines]
    assert versions == sorted(set(versions))
    assert versions[-1] == watched.version


def test_tells_nobody_of_other_namespaces(watched: WatchedServer) -> None:
    here, everywhere = watched.watch(), watched.watch(root="/api/v1/pods")
    watched.server.verbs.create(PODS, pod("far"), namespace="kube-system")
    watched.server.create(MAPS, "other")
    watched.loop.settle()
    assert (here.told(), everywhere.told()) == ([], ["ADDED far"])


def test_a_selector_makes_changes_comings_and_goings(watched: WatchedServer) -> None:
    watched.make("a", app="x")
    watched.make("b", app="y")
    watcher = watched.watch("labelSelector=app%3Dx")
    watched.label("b", app="x")
    watched.label("b", app="x", more="yes")
    watched.label("a", app="y")
    gone = watcher.lines[-1]["object"]
    assert watcher.told() == ["ADDED a", "ADDED b", "MODIFIED b", "DELETED a"]
    # Who may not see the present is told the past, with the present's version.
    assert gone["metadata"]["labels"] == {"app": "x"}
    assert gone["metadata"]["resourceVersion"] == str(watched.version)


def test_a_scheduler_sees_pods_until_they_are_bound(watched: WatchedServer) -> None:
    watcher = watched.watch("fieldSelector=spec.nodeName%3D")
    watched.make("a")
    watched.server.verbs.bind("default", "a", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    watched.loop.settle()
    assert watcher.told() == ["ADDED a", "DELETED a"]


# --- the end -----------------------------------------------------------------------------------


def test_ends_after_the_time_asked_for(watched: WatchedServer) -> None:
    watcher = watched.watch("timeoutSeconds=10")
    watched.loop.advance(9.9)
    assert not watcher.has_ended
    watched.loop.advance(0.2)
    assert watcher.has_ended


def test_who_leaves_is_forgotten(watched: WatchedServer) -> None:
    watcher = watched.watch()
    watched.loop.create_task(watcher.leave())
    watched.loop.settle()
    assert watched.server.store._subscriptions["pods"] == set()


def test_who_comes_too_late_is_sent_to_list_again(watched: WatchedServer) -> None:
    watched.make("a")
    seen = watched.version
    watched.make("b")
    watched.server.store.compact()
    watcher = watched.watch(f"resourceVersion={seen}")
    [line] = watcher.lines
    status = line["object"]
    assert (line["type"], status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {seen}")
    assert watcher.has_ended


def test_who_comes_from_the_future_hears_only_what_is_to_come(watched: WatchedServer) -> None:
    watcher = watched.watch(f"resourceVersion={watched.version + 1}")
    watched.make("a")
    watched.make("b")
    assert watcher.told() == ["ADDED b"]


def test_who_reads_too_slowly_is_cut_off_and_can_go_on(
    watched: WatchedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MAX_PENDING", 5)
    watcher = watched.watch()
    watched.make("a")
    watcher.may_read.clear()
    watched.make("b")
    for number in range(10):
        watched.make(f"c{number}")
    watcher.may_read.set()
    watched.loop.advance(5)
    assert watcher.has_ended
    last = watcher.lines[-1]["object"]["metadata"]["resourceVersion"]
    first = watcher.told()
    rest = watched.watch(f"resourceVersion={last}").told()
    assert first + rest == ["ADDED a", "ADDED b", *(f"ADDED c{number}" for number in range(10))]
    assert rest


# --- bookmarks ---------------------------------------------------------------------------------


def bookmarks(watcher: Watcher) -> list[Object]:
    return [line["object"]["metadata"] for line in watcher.lines if line["type"] == "BOOKMARK"]


def test_sends_a_bookmark_each_minute_and_at_the_end(watched: WatchedServer) -> None:
    watcher = watched.watch(
        f"resourceVersion={watched.version}&allowWatchBookmarks=true&timeoutSeconds=150"
    )
    watched.server.create(MAPS, "other")
    watched.loop.advance(61)
    assert bookmarks(watcher) == [{"resourceVersion": str(watched.version)}]
    watched.loop.advance(100)
    assert len(bookmarks(watcher)) == 3
    assert watcher.has_ended


def test_sends_no_bookmarks_to_who_does_not_want_them(watched: WatchedServer) -> None:
    watcher = watched.watch("timeoutSeconds=150")
    watched.loop.advance(200)
    assert bookmarks(watcher) == []


def test_marks_the_end_of_what_there_is(watched: WatchedServer) -> None:
    watched.make("a")
    watched.make("b")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watcher = watched.watch(query)
    [mark] = bookmarks(watcher)
    assert mark["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["resourceVersion"] == str(watched.version)
    assert watcher.told() == ["ADDED a", "ADDED b", "BOOKMARK"]


def test_can_begin_with_nothing(watched: WatchedServer) -> None:
    watched.make("a")
    watcher = watched.watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
    watched.make("b")
    assert watcher.told() == ["ADDED b"]


# --- forms -------------------------------------------------------------------------------------


def test_tells_the_columns_of_a_table_once(watched: WatchedServer) -> None:
    watched.make("a")
    watcher = watched.watch(accept=TABLE)
    watched.make("b")
    first, second = (line["object"] for line in watcher.lines)
    assert first["columnDefinitions"]
    assert not second["columnDefinitions"]
    assert [row["object"]["metadata"]["name"] for row in second["rows"]] == ["b"]


def test_tells_nothing_but_metadata_if_asked(watched: WatchedServer) -> None:
    watcher = watched.watch(accept=TABLE.replace("Table", "PartialObjectMetadata"))
    watched.make("a")
    [line] = watcher.lines
    assert line["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in line["object"]


def test_events_are_told_in_the_words_of_the_group(watched: WatchedServer) -> None:
    old = watched.watch(root="/api/v1/namespaces/default/events")
    new = watched.watch(root="/apis/events.k8s.io/v1/namespaces/default/events")
    value: dict[str, Any] = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "hello",
        "reason": "Greeting",
        "action": "Greet",
        "type": "Normal",
        "eventTime": "2024-01-01T00:00:00.000000Z",
        "reportingController": "us",
        "reportingInstance": "us-1",
    }
    watched.server.verbs.create(known("events", "events.k8s.io"), value, namespace="default")
    watched.loop.settle()
    [theirs], [ours] = (watcher.lines for watcher in (old, new))
    assert (theirs["object"]["message"], theirs["object"]["apiVersion"]) == ("hello", "v1")
    assert (ours["object"]["note"], ours["object"]["apiVersion"]) == ("hello", "events.k8s.io/v1")
