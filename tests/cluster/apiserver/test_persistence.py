"""A store in a file: what is there after a restart, an accident, a misuse."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.cluster.apiserver.persistence import Persistence
from mooring.cluster.apiserver.resources import Resource, by_path
from mooring.cluster.apiserver.store import Expired, Store
from mooring.errors import ConfigError

State = dict[tuple[str, str, str], bytes]

_ON_DEMAND = 3600.0  # seconds between transactions: only those a test asks for
_connect = sqlite3.connect


def resource(name: str, group: str = "") -> Resource:
    found = by_path(group, "v1", name)
    assert found is not None
    return found


PODS, NODES = resource("pods"), resource("nodes")


def pod(name: str, **labels: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta}


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def state(store: Store) -> State:
    return {
        (found.key, item.namespace, item.name): item.raw
        for found in (PODS, NODES)
        for item in store.list(found)
    }


def reopened(path: Path) -> Store:
    store = Store()
    with Persistence(path) as file:
        file.attach(store)
    return store


# --- after a restart -----------------------------------------------------------------------------


def test_brings_everything_back_as_it_was(tmp_path: Path) -> None:
    store = Store(fields=lambda key: lambda value: {"metadata.name": value["metadata"]["name"]})
    with Persistence(tmp_path / "c.sqlite") as file:
        assert file.attach(store) == 0
        store.put(NODES, node("n"))
        store.put(PODS, pod("a", app="web"))
        store.put(PODS, pod("a", app="db"))
        store.put(PODS, pod("b"))
        store.remove(PODS, "default", "b")
    again = Store(fields=lambda key: lambda value: {"metadata.name": value["metadata"]["name"]})
    with Persistence(tmp_path / "c.sqlite") as file:
        assert file.attach(again) == 2
    assert again.version == store.version == 5
    assert again.get(PODS, "default", "a") == store.get(PODS, "default", "a")
    assert again.list(NODES) == store.list(NODES)


def test_goes_on_with_the_next_version_and_an_empty_history(tmp_path: Path) -> None:
    store = Store()
    with Persistence(tmp_path / "c.sqlite") as file:
        file.attach(store)
        store.put(PODS, pod("a"))
        store.remove(PODS, "default", "a")
    again = reopened(tmp_path / "c.sqlite")
    with pytest.raises(Expired):
        again.subscribe(PODS, since=1)
    assert again.put(PODS, pod("a")).version == 3


def test_leaves_one_file_behind_that_only_we_can_read(tmp_path: Path) -> None:
    with Persistence(tmp_path / "c.sqlite") as file:
        store = Store()
        file.attach(store)
        store.put(PODS, pod("a"))
    assert [found.name for found in tmp_path.iterdir()] == ["c.sqlite"]
    assert stat.S_IMODE((tmp_path / "c.sqlite").stat().st_mode) == 0o600


def test_writes_by_itself_what_nobody_waits_for(tmp_path: Path) -> None:
    program = f"""
import time
from mooring.cluster.apiserver.persistence import Persistence
from mooring.cluster.apiserver.resources import by_path
from mooring.cluster.apiserver.store import Store
store, file = Store(), Persistence({str(tmp_path / "c.sqlite")!r})
file.attach(store)
pods, number = by_path("", "v1", "pods"), 0
while True:
    number += 1
    store.put(pods, {{"metadata": {{"name": f"p{{number % 40}}", "namespace": "default"}}}})
    if number % 3 == 0:
        store.remove(pods, "default", f"p{{number * 7 % 40}}")
    if file._written:  # something has been written without being asked for
        print(store.version, flush=True)
"""
    running = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    with running.stdout as said:
        for _ in range(2000):
            said.readline()
        running.send_signal(signal.SIGKILL)
        assert running.wait() == -signal.SIGKILL
    kept = reopened(tmp_path / "c.sqlite")
    assert kept.version > 0
    assert max(item.version for item in kept.list(PODS)) <= kept.version
    assert 20 <= kept.count(PODS) <= 40


# --- after an accident ---------------------------------------------------------------------------

_KEYS = [(PODS, "default", name) for name in "abcd"] + [(NODES, "", name) for name in "xy"]
_OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("put", "remove")), st.sampled_from(_KEYS)), st.just("flush")
    ),
    max_size=40,
)


class Traced(sqlite3.Connection):
    """Calls `before` ahead of every statement, each row of a batch included."""

    before: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_trace_callback(lambda statement: Traced.before())


def copied(path: Path, target: Path) -> None:
    """What a kill at this moment would leave: SQLite has given all of it to the system."""
    for suffix in ("", "-wal"):
        source = Path(f"{path}{suffix}")
        if source.exists():
            shutil.copyfile(source, f"{target}{suffix}")


@given(_OPERATIONS, st.integers(0, 120))
@settings(deadline=None)
def test_holds_a_prefix_of_the_history_wherever_it_is_killed(operations: Any, when: int) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(sqlite3, "connect", traced):
        path, left = Path(folder, "c.sqlite"), Path(folder, "left.sqlite")
        store, statements, flushed, flushed_by_then = Store(), 0, 0, 0
        file = Persistence(path, interval=_ON_DEMAND)
        file.attach(store)
        history = {0: state(store)}

        def count() -> None:
            nonlocal statements, flushed_by_then
            if statements == when:
                copied(path, left)
                flushed_by_then = flushed
            statements += 1

        Traced.before = staticmethod(count)
        try:
            for operation in operations:
                if operation == "flush":
                    file.flush()
                    flushed = store.version
                elif operation[0] == "put":
                    value = {"name": operation[1][2], "namespace": operation[1][1]}
                    store.put(operation[1][0], {"metadata": value})
                else:
                    store.remove(*operation[1])
                history[store.version] = state(store)
            if statements <= when:
                copied(path, left)
                flushed_by_then = flushed
        finally:
            Traced.before = staticmethod(lambda: None)
            file.close()
        survived = reopened(left)
        assert survived.version >= flushed_by_then
        assert state(survived) == history[survived.version]


def traced(*args: Any, **options: Any) -> sqlite3.Connection:
    return _connect(*args, factory=Traced, **options)


def test_keeps_what_could_not_be_written_and_tries_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mock.patch.object(sqlite3, "connect", traced):
        file = Persistence(tmp_path / "c.sqlite", interval=_ON_DEMAND)
    store = Store()
    file.attach(store)
    store.put(PODS, pod("a"))
    file._database.execute("PRAGMA query_only = 1")  # as a full disk would: reading still works
    with pytest.raises(sqlite3.OperationalError):
        file.flush()
    store.put(PODS, pod("b"))
    file._database.execute("PRAGMA query_only = 0")
    file.flush()
    file.close()
    assert state(reopened(tmp_path / "c.sqlite")) == state(store)
    assert [record.message for record in caplog.records] == [
        "could not save changes; they are kept and tried again"
    ]


def test_says_so_when_the_last_changes_are_lost(tmp_path: Path) -> None:
    file = Persistence(tmp_path / "c.sqlite", interval=_ON_DEMAND)
    store = Store()
    file.attach(store)
    file._database.execute("PRAGMA query_only = 1")
    store.put(PODS, pod("a"))
    with pytest.raises(ConfigError, match=r"changes of 1 objects could not be saved: .* readonly"):
        file.close()


# --- misuse --------------------------------------------------------------------------------------


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        Persistence(path)
    return str(caught.value)


def test_refuses_a_file_that_another_process_uses(tmp_path: Path) -> None:
    with Persistence(tmp_path / "c.sqlite"):
        program = (
            "import sys; from mooring.cluster.apiserver.persistence import Persistence;"
            " Persistence(sys.argv[1])"
        )
        words = [sys.executable, "-c", program, str(tmp_path / "c.sqlite")]
        found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 1
    assert f"{tmp_path / 'c.sqlite'}: is in use by another process" in found.stderr


def test_refuses_what_is_not_its_own(tmp_path: Path) -> None:
    text, other, newer = (tmp_path / name for name in ("text", "other", "newer"))
    text.write_text("not a database, but long enough to look at" * 20)
    assert refusal(text) == f"{text}: file is not a database"
    with _connect(other) as database:
        database.execute("CREATE TABLE bookmarks (url)")
    database.close()
    assert "expected a file made by mooring" in refusal(other)
    Persistence(newer).close()
    with _connect(newer) as database:
        database.execute("PRAGMA user_version = 9")
    database.close()
    assert "expected format 1, found 9" in refusal(newer)
    assert refusal(tmp_path / "no" / "where") == (f"{tmp_path / 'no' / 'where'}: {os.strerror(2)}")


def test_follows_one_store_from_its_beginning(tmp_path: Path) -> None:
    store = Store()
    store.put(PODS, pod("a"))
    with Persistence(tmp_path / "c.sqlite") as file:
        with pytest.raises(ValueError, match="empty"):
            file.attach(store)
        file.attach(Store())
        with pytest.raises(ValueError, match="follows none yet"):
            file.attach(Store())
