"""Lists: page by page, as of one moment."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.apiserver.compared_requests import get, pod, post
from tests.cluster.apiserver.in_process_server import MAPS, PODS, InProcessServer
from tests.garbage import NO_OBJECT, NO_TEXT

from mooring.cluster.apiserver.store import Expired, Store, StoreChange

ROOT = "/api/v1/namespaces/default/configmaps"
NAMES = st.sampled_from("abcdefgh")
WRITES = st.lists(st.tuples(st.sampled_from(["put", "remove"]), NAMES), max_size=30)


def write(store: Store, kind: str, name: str) -> None:
    if kind == "remove":
        store.remove(MAPS, "default", name)
    else:
        meta = {"name": name, "namespace": "default"}
        store.put(MAPS, {"metadata": meta, "data": {"at": str(store.version)}})


def content(store: Store, at: int | None = None) -> list[tuple[str, int]]:
    return [(item.name, item.version) for item in store.list(MAPS, at=at)]


@given(WRITES)
def test_remembers_what_there_was(writes: list[tuple[str, str]]) -> None:
    store = Store()
    moments = {store.version: content(store)}
    for kind, name in writes:
        write(store, kind, name)
        moments[store.version] = content(store)
    for version, expected in moments.items():
        assert content(store, at=version) == expected


@given(WRITES, WRITES, st.integers(1, 5))
def test_pages_show_one_moment_whatever_happens_meanwhile(
    before: list[tuple[str, str]], meanwhile: list[tuple[str, str]], limit: int
) -> None:
    server = InProcessServer()
    for kind, name in before:
        write(server.store, kind, name)
    expected = [name for name, _ in content(server.store)]
    found, token, left = [], "", list(meanwhile)
    while True:
        query = f"?limit={limit}&continue={quote(token)}"
        page = server.ask(get(ROOT + query))
        found += [item["metadata"]["name"] for item in page["items"]]
        if "remainingItemCount" in page["metadata"]:
            assert page["metadata"]["remainingItemCount"] == len(expected) - len(found)
        token = page["metadata"].get("continue", "")
        if not token:
            break
        for kind, name in left[:3]:
            write(server.store, kind, name)
        del left[:3]
    assert found == expected


def test_a_page_after_a_compaction_is_gone() -> None:
    server = InProcessServer()
    for name in "abc":
        server.create(MAPS, name)
    token = server.ask(get(f"{ROOT}?limit=1"))["metadata"]["continue"]
    server.create(MAPS, "d")
    server.store.compact()
    code, words = server.refusal(get(f"{ROOT}?limit=1&continue={quote(token)}"))
    assert code == 410
    assert words.startswith("The provided continue parameter is too old")


def test_an_exact_version_that_is_forgotten_is_gone() -> None:
    server = InProcessServer()
    server.create(MAPS, "a")
    version = server.store.version
    server.create(MAPS, "b")
    query = f"?resourceVersionMatch=Exact&resourceVersion={version}"
    assert [item["metadata"]["name"] for item in server.ask(get(ROOT + query))["items"]] == ["a"]
    server.store.compact()
    assert server.refusal(get(ROOT + query)) == (
        410,
        "The resourceVersion for the provided list is too old.",
    )


def test_a_version_that_is_yet_to_come_has_to_wait() -> None:
    server = InProcessServer()
    code, words = server.refusal(get(f"{ROOT}?resourceVersion={server.store.version + 1}"))
    assert (code, words.split(":")[0]) == (504, "Timeout")


def test_the_history_ends_somewhere() -> None:
    store = Store(history=3)
    for name in "abcdef":
        write(store, "put", name)
    assert len(content(store, at=3)) == 3
    with pytest.raises(Expired, match=r"too old resource version: 2 \(3\)"):
        store.list(MAPS, at=2)


def test_listeners_hear_everything_in_order_even_if_one_of_them_writes() -> None:
    store = Store()
    heard: list[list[int]] = [[], []]

    def answer(change: StoreChange) -> None:
        heard[0].append(change.version)
        if change.new.name == "question":
            write(store, "put", "answer")

    store.listen(answer)
    store.listen(lambda change: heard[1].append(change.version))
    write(store, "put", "question")
    write(store, "put", "other")
    assert heard == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize(
    "token", ["abc", *(base64.urlsafe_b64encode(body).decode() for body in (*NO_OBJECT, *NO_TEXT))]
)
def test_nonsense_for_a_token_is_refused(token: str) -> None:
    code, words = InProcessServer().refusal(get(f"{ROOT}?continue={token or 'abc'}"))
    assert (code, words.split(":")[0]) == (400, "invalid continue token")


def test_lists_in_the_order_of_etcd() -> None:
    server = InProcessServer()
    for namespace in ("a-b", "a", "a0"):
        server.ask(post("/api/v1/namespaces", {"metadata": {"name": namespace}}))
        server.verbs.create(PODS, pod("p"), namespace=namespace)
    items: list[Any] = server.ask(get("/api/v1/pods"))["items"]
    assert [item["metadata"]["namespace"] for item in items] == ["a-b", "a", "a0"]


def test_items_of_a_list_do_not_repeat_their_kind() -> None:
    server = InProcessServer()
    server.create(MAPS, "a", data={"kind": "x"})
    [item] = server.ask(get(ROOT))["items"]
    assert item.keys() == {"metadata", "data"}
    events = server.ask(get("/apis/events.k8s.io/v1/events"))
    assert (events["kind"], events["apiVersion"]) == ("EventList", "events.k8s.io/v1")
