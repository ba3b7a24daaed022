"""The queue keeps every pod, whatever the plugin that sorts it does."""

from typing import Any

import pytest
from tests.scheduler.recording import world

import mooring.framework as fw
from mooring.testing.builders import pod


class Odd:
    def __lt__(self, other: object) -> bool:
        raise ValueError("boom")

    def __eq__(self, other: object) -> bool:
        raise ValueError("boom")

    __hash__ = None  # type: ignore[assignment]  # compared only


class Odder(Odd):
    def __lt__(self, other: object) -> bool:
        raise SystemExit("boom")

    __eq__ = __lt__
    __hash__ = None


ANSWERS: dict[str, Any] = {
    "None": None,
    "text": "yes",
    "NaN": float("nan"),
    "huge": 10**30,
    "raises": ValueError("boom"),
    "SystemExit": SystemExit(1),
}


def sorter(less: Any, key: Any) -> type[fw.QueueSort]:
    def answer(given: Any, queued: fw.QueuedPod) -> Any:
        found = given(queued) if callable(given) else given
        if isinstance(found, BaseException):
            raise found
        return found

    class Sorter(fw.QueueSort):
        name = "Sorter"

        def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
            a.timestamp = b.attempts = 99
            result: bool = answer(less, a)
            return result

        def sort_key(self, queued: fw.QueuedPod) -> object | None:
            found: object = answer(key, queued)
            queued.attempts = 99
            return found

    return Sorter


def check_that_nobody_is_lost(less: Any, key: Any, caplog: pytest.LogCaptureFixture) -> None:
    with world(sorter(less, key), with_plugins=["DefaultBinder"]) as sim:
        names = [f"p{i}" for i in range(9)]
        sim.schedule(*(pod(name, priority=i % 3) for i, name in enumerate(names)))
        assert all(sim.placements().values())
        assert sorted(sim.placements()) == names
        assert [attempt.number for attempt in sim.attempts] == [1] * 9
    assert {getattr(r, "plugin", "Sorter") for r in caplog.records if r.levelname == "ERROR"} == {
        "Sorter"
    }


@pytest.mark.parametrize("wrong", ANSWERS)
def test_a_comparison_that_breaks_counts_as_no_difference(
    wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_that_nobody_is_lost(ANSWERS[wrong], None, caplog)


@pytest.mark.parametrize(
    "key",
    [
        lambda queued: ValueError("boom") if queued.pod.name == "p3" else queued.pod.name,
        lambda queued: ValueError("boom") if queued.pod.name == "p0" else None,
        lambda queued: None if queued.pod.name == "p4" else queued.pod.name,
        lambda queued: "text" if queued.pod.name == "p4" else None,
        lambda queued: queued.pod.name if queued.pod.priority else len(queued.pod.name),
        lambda queued: (1, "x") if queued.pod.priority else (1, 2),
        lambda queued: (1, 2) if queued.pod.priority else (1,),
        lambda queued: Odd(),
        lambda queued: (queued.pod.priority, Odd()),
        lambda queued: (queued.pod.priority, Odder()),
        SystemExit(2),
    ],
)
def test_a_key_that_does_not_compare_puts_the_pod_last(
    key: Any, caplog: pytest.LogCaptureFixture
) -> None:
    check_that_nobody_is_lost(ValueError("boom"), key, caplog)


def test_keys_of_any_comparable_kind_are_fine() -> None:
    sort = sorter(None, lambda queued: (-queued.pod.priority, frozenset(), queued.pod.name))
    with world(sort, with_plugins=["DefaultBinder"]) as sim:
        sim.schedule(pod("c"), pod("a"), pod("b", priority=1))
        assert [attempt.pod.name for attempt in sim.attempts] == ["b", "a", "c"]


def test_pods_without_a_key_stand_behind_the_others() -> None:
    sort = sorter(None, lambda queued: KeyError() if queued.pod.name == "a" else queued.pod.name)
    with world(sort, with_plugins=["DefaultBinder"]) as sim:
        sim.schedule(pod("c"), pod("a"), pod("b"))
        assert [attempt.pod.name for attempt in sim.attempts] == ["b", "c", "a"]
