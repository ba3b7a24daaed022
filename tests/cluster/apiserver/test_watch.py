"""What a watch tells, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Self
from urllib.parse import parse_qsl

import pytest
from tests.cluster.apiserver.compared_requests import TABLE, Object, pod
from tests.cluster.apiserver.in_process_server import MAPS, PODS, InProcessServer

from mooring.cluster.apiserver import store as stores
from mooring.cluster.apiserver.requests import ApiRequest, WatchResponse
from mooring.cluster.apiserver.resources import known
from mooring.simulator.clock import VirtualLoop


class Watcher:
    """Somebody who reads a watch as it comes."""

    def __init__(self, stage: Stage, query: str, accept: str, root: str) -> None:
        request = ApiRequest(
            method="GET",
            path=root,
            query={"watch": "1", **dict(parse_qsl(query, keep_blank_values=True))},
            headers={"accept": accept},
        )
        watching = stage.server.server.answer(request)
        assert isinstance(watching, WatchResponse), watching
        self._chunks = watching.chunks
        self.lines: list[Object] = []
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.task = stage.loop.create_task(self._read())

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


class Stage:
    """A loop, a server, and at the end nobody who still reads."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.server = InProcessServer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()
        self.loop.close()

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
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage


def test_tells_what_there_is_and_then_what_happens(stage: Stage) -> None:
    stage.make("a")
    watcher = stage.watch()
    assert watcher.told() == ["ADDED a"]
    stage.make("b")
    stage.label("a", x="y")
    stage.remove("b")
    assert watcher.told() == ["ADDED b", "MODIFIED a", "MODIFIED b", "DELETED b"]


def test_goes_on_from_a_version(stage: Stage) -> None:
    stage.make("a")
    seen = stage.version
    stage.make("b")
    stage.remove("a")
    watcher = stage.watch(f"resourceVersion={seen}")
    assert watcher.told() == ["ADDED b", "MODIFIED a", "DELETED a"]
    assert stage.watch("resourceVersion=0").told() == ["ADDED b"]


def test_every_event_has_a_version_of_its_own(stage: Stage) -> None:
    watcher = stage.watch()
    stage.make("a")
    stage.remove("a")
    versions = [int(line["object"]["metadata"]["resourceVersion"]) for line in watcher.lines]
    assert versions == sorted(set(versions))
    assert versions[-1] == stage.version


def test_tells_nobody_of_other_namespaces(stage: Stage) -> None:
    here, everywhere = stage.watch(), stage.watch(root="/api/v1/pods")
    stage.server.verbs.create(PODS, pod("far"), namespace="kube-system")
    stage.server.create(MAPS, "other")
    stage.loop.settle()
    assert (here.told(), everywhere.told()) == ([], ["ADDED far"])


def test_a_selector_makes_changes_comings_and_goings(stage: Stage) -> None:
    stage.make("a", app="x")
    stage.make("b", app="y")
    watcher = stage.watch("labelSelector=app%3Dx")
    stage.label("b", app="x")
    stage.label("b", app="x", more="yes")
    stage.label("a", app="y")
    gone = watcher.lines[-1]["object"]
    assert watcher.told() == ["ADDED a", "ADDED b", "MODIFIED b", "DELETED a"]
    # Who may not see the present is told the past, with the present's version.
    assert gone["metadata"]["labels"] == {"app": "x"}
    assert gone["metadata"]["resourceVersion"] == str(stage.version)


def test_a_scheduler_sees_pods_until_they_are_bound(stage: Stage) -> None:
    watcher = stage.watch("fieldSelector=spec.nodeName%3D")
    stage.make("a")
    stage.server.verbs.bind("default", "a", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    stage.loop.settle()
    assert watcher.told() == ["ADDED a", "DELETED a"]


# --- the end -----------------------------------------------------------------------------------


def test_ends_after_the_time_asked_for(stage: Stage) -> None:
    watcher = stage.watch("timeoutSeconds=10")
    stage.loop.advance(9.9)
    assert not watcher.has_ended
    stage.loop.advance(0.2)
    assert watcher.has_ended


def test_who_leaves_is_forgotten(stage: Stage) -> None:
    watcher = stage.watch()
    stage.loop.create_task(watcher.leave())
    stage.loop.settle()
    assert stage.server.store._subscriptions["pods"] == set()


def test_who_comes_too_late_is_sent_to_list_again(stage: Stage) -> None:
    stage.make("a")
    seen = stage.version
    stage.make("b")
    stage.server.store.compact()
    watcher = stage.watch(f"resourceVersion={seen}")
    [line] = watcher.lines
    status = line["object"]
    assert (line["type"], status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert status["message"].startswith(f"too old resource version: {seen}")
    assert watcher.has_ended


def test_who_comes_from_the_future_hears_only_what_is_to_come(stage: Stage) -> None:
    watcher = stage.watch(f"resourceVersion={stage.version + 1}")
    stage.make("a")
    stage.make("b")
    assert watcher.told() == ["ADDED b"]


def test_who_reads_too_slowly_is_cut_off_and_can_go_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MOST_WAITING", 5)
    watcher = stage.watch()
    stage.make("a")
    watcher.may_read.clear()
    stage.make("b")
    for number in range(10):
        stage.make(f"c{number}")
    watcher.may_read.set()
    stage.loop.advance(5)
    assert watcher.has_ended
    last = watcher.lines[-1]["object"]["metadata"]["resourceVersion"]
    first = watcher.told()
    rest = stage.watch(f"resourceVersion={last}").told()
    assert first + rest == ["ADDED a", "ADDED b", *(f"ADDED c{number}" for number in range(10))]
    assert rest


# --- bookmarks ---------------------------------------------------------------------------------


def bookmarks(watcher: Watcher) -> list[Object]:
    return [line["object"]["metadata"] for line in watcher.lines if line["type"] == "BOOKMARK"]


def test_sends_a_bookmark_each_minute_and_at_the_end(stage: Stage) -> None:
    watcher = stage.watch(
        f"resourceVersion={stage.version}&allowWatchBookmarks=true&timeoutSeconds=150"
    )
    stage.server.create(MAPS, "other")
    stage.loop.advance(61)
    assert bookmarks(watcher) == [{"resourceVersion": str(stage.version)}]
    stage.loop.advance(100)
    assert len(bookmarks(watcher)) == 3
    assert watcher.has_ended


def test_sends_no_bookmarks_to_who_does_not_want_them(stage: Stage) -> None:
    watcher = stage.watch("timeoutSeconds=150")
    stage.loop.advance(200)
    assert bookmarks(watcher) == []


def test_marks_the_end_of_what_there_is(stage: Stage) -> None:
    stage.make("a")
    stage.make("b")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    watcher = stage.watch(query)
    [mark] = bookmarks(watcher)
    assert mark["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["resourceVersion"] == str(stage.version)
    assert watcher.told() == ["ADDED a", "ADDED b", "BOOKMARK"]


def test_can_begin_with_nothing(stage: Stage) -> None:
    stage.make("a")
    watcher = stage.watch("sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
    stage.make("b")
    assert watcher.told() == ["ADDED b"]


# --- forms -------------------------------------------------------------------------------------


def test_tells_the_columns_of_a_table_once(stage: Stage) -> None:
    stage.make("a")
    watcher = stage.watch(accept=TABLE)
    stage.make("b")
    first, second = (line["object"] for line in watcher.lines)
    assert first["columnDefinitions"]
    assert not second["columnDefinitions"]
    assert [row["object"]["metadata"]["name"] for row in second["rows"]] == ["b"]


def test_tells_nothing_but_metadata_if_asked(stage: Stage) -> None:
    watcher = stage.watch(accept=TABLE.replace("Table", "PartialObjectMetadata"))
    stage.make("a")
    [line] = watcher.lines
    assert line["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in line["object"]


def test_events_are_told_in_the_words_of_the_group(stage: Stage) -> None:
    old = stage.watch(root="/api/v1/namespaces/default/events")
    new = stage.watch(root="/apis/events.k8s.io/v1/namespaces/default/events")
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
    stage.server.verbs.create(known("events", "events.k8s.io"), value, namespace="default")
    stage.loop.settle()
    [theirs], [ours] = (watcher.lines for watcher in (old, new))
    assert (theirs["object"]["message"], theirs["object"]["apiVersion"]) == ("hello", "v1")
    assert (ours["object"]["note"], ours["object"]["apiVersion"]) == ("hello", "events.k8s.io/v1")
