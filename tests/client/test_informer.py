"""A store and its handlers, fed by hand and by a server."""

import logging

import pytest
from tests.client.client_rig import ClientRig

from mooring.api.core import Node, Pod
from mooring.api.meta import Object, ObjectMeta
from mooring.api.storage import StorageClass
from mooring.client.informer import Informer, Informers
from mooring.errors import InternalError


def pod(name: str, version: int | str, uid: str = "1", namespace: str = "ns") -> Pod:
    meta = ObjectMeta(name=name, namespace=namespace, uid=uid, resource_version=str(version))
    return Pod(metadata=meta)


class Heard:
    """What the handlers of an informer were told, as `+name@version/uid` and `-…`."""

    def __init__(self, rig: ClientRig) -> None:
        self.told: list[str] = []
        self.informer: Informer[Pod] = Informer(
            rig.client,
            Pod,
            on_put=lambda value: self.note("+", value),
            on_remove=lambda value: self.note("-", value),
            rng=rig.rng,
        )

    def note(self, sign: str, value: Pod) -> None:
        meta = value.metadata
        self.told.append(f"{sign}{meta.name}@{meta.resource_version}/{meta.uid}")

    def take(self) -> list[str]:
        """What was told since the last time."""
        told, self.told = self.told, []
        return told


@pytest.fixture
def heard(rig: ClientRig) -> Heard:
    return Heard(rig)


# --- lists ---------------------------------------------------------------------------------------


def test_a_list_is_told_as_the_difference_removals_first(heard: Heard) -> None:
    heard.informer.replace([pod("a", 1), pod("b", 2), pod("c", 3), pod("d", 4)], [])
    assert heard.take() == ["+a@1/1", "+b@2/1", "+c@3/1", "+d@4/1"]
    heard.informer.replace([pod("e", 9), pod("d", 8, "2"), pod("c", 7), pod("b", 2)], [])
    assert heard.take() == ["-a@1/1", "-d@4/1", "+e@9/1", "+d@8/2", "+c@7/1"]
    assert sorted(value.name for value in heard.informer) == ["b", "c", "d", "e"]
    assert len(heard.informer) == 4


def test_the_same_list_again_is_no_news(heard: Heard) -> None:
    heard.informer.replace([pod("a", 1)], [])
    heard.take()
    heard.informer.replace([pod("a", 1)], [])
    assert heard.take() == []


def test_a_list_counts_even_if_its_versions_are_lower(heard: Heard) -> None:
    heard.informer.replace([pod("a", 1000)], [])
    heard.take()
    heard.informer.replace([pod("a", 50)], [])
    assert heard.take() == ["+a@50/1"]


def test_of_an_unread_object_in_a_list_the_last_state_is_kept_if_it_is_the_same(
    heard: Heard,
) -> None:
    heard.informer.replace([pod("a", 1), pod("b", 1)], [])
    heard.take()
    heard.informer.replace([], [pod("a", 2), pod("b", 2, "other"), pod("c", 2)])
    assert heard.take() == ["-b@1/1"]
    assert heard.informer.get("ns/a") == pod("a", 1)


# --- events --------------------------------------------------------------------------------------


def test_events_are_told_as_they_come(heard: Heard) -> None:
    heard.informer.put(pod("a", 1))
    heard.informer.put(pod("a", 2))
    heard.informer.remove(pod("a", 3))
    assert heard.take() == ["+a@1/1", "+a@2/1", "-a@2/1"]
    assert heard.informer.get("ns/a") is None


def test_the_same_name_elsewhere_is_another_object(heard: Heard) -> None:
    heard.informer.put(pod("a", 1, namespace="x"))
    heard.informer.put(pod("a", 2, namespace="y"))
    assert len(heard.informer) == 2


def test_an_object_made_anew_under_its_name_is_removed_before_it_is_put(heard: Heard) -> None:
    heard.informer.put(pod("a", 1, "old"))
    heard.informer.put(pod("a", 5, "new"))
    assert heard.take() == ["+a@1/old", "-a@1/old", "+a@5/new"]


def test_an_older_object_never_overwrites_a_newer_one(heard: Heard) -> None:
    heard.informer.put(pod("a", 100, "new"))
    heard.take()
    for stale in (pod("a", 99, "new"), pod("a", 100, "new"), pod("a", 9, "old")):
        heard.informer.put(stale)
    heard.informer.remove(pod("a", 99, "old"))
    assert heard.take() == []
    assert heard.informer.get("ns/a") == pod("a", 100, "new")


def test_versions_that_are_no_numbers_are_taken_in_the_order_they_come(heard: Heard) -> None:
    heard.informer.put(pod("a", "zz"))
    heard.informer.put(pod("a", "aa"))
    heard.informer.put(pod("a", "aa"))
    heard.informer.remove(pod("a", "0"))
    assert heard.take() == ["+a@zz/1", "+a@aa/1", "-a@aa/1"]


def test_the_end_of_a_successor_is_the_end_of_the_one_we_know(heard: Heard) -> None:
    heard.informer.put(pod("a", 1, "old"))
    heard.informer.remove(pod("a", 9, "new"))
    heard.informer.remove(pod("never seen", 10))
    assert heard.take() == ["+a@1/old", "-a@1/old"]


def test_an_unread_object_leaves_the_last_state_unless_it_is_another(heard: Heard) -> None:
    heard.informer.put(pod("a", 1))
    heard.informer.put_unread(pod("a", 2))
    heard.informer.put_unread(pod("b", 3))
    assert heard.take() == ["+a@1/1"]
    heard.informer.put_unread(pod("a", 4, "other"))
    assert heard.take() == ["-a@1/1"]


def test_what_raises_is_reported_and_the_informer_goes_on(
    rig: ClientRig, caplog: pytest.LogCaptureFixture
) -> None:
    def break_on_bad(value: Object) -> None:
        if value.name == "bad":
            raise RuntimeError("no")

    informer = Informer(rig.client, Pod, on_put=break_on_bad, on_remove=break_on_bad)
    rig.server.put(Pod, "bad")
    task = rig.start(informer.run())
    assert informer.synced.is_set()
    for name in ("bad", "good"):
        rig.server.put(Pod, name)
    rig.settle()
    assert {value.key: value for value in informer} == rig.server.content(Pod)
    rig.server.delete(Pod, "bad")
    rig.settle()
    assert {value.key: value for value in informer} == rig.server.content(Pod)
    assert not task.done()
    blamed = [record.__dict__["object"] for record in caplog.records]
    assert blamed == ["default/bad", "default/bad", "default/bad"]
    assert all(record.exc_info and record.levelno == logging.ERROR for record in caplog.records)


# --- with a server -------------------------------------------------------------------------------


def test_is_synced_once_the_handlers_have_heard_a_complete_list(rig: ClientRig) -> None:
    synced: list[bool] = []
    informer: Informer[Pod] = Informer(
        rig.client,
        Pod,
        on_put=lambda value: synced.append(informer.synced.is_set()),
        on_remove=lambda value: None,
        page_size=1,
    )
    for name in ("a", "b", "c"):
        rig.server.put(Pod, name)
    rig.server.latency = 1.0
    rig.start(informer.run())
    rig.advance(5.9)
    assert not informer.synced.is_set()
    assert len(informer) == 0
    rig.advance(0.2)
    assert informer.synced.is_set()
    assert synced == [False, False, False]


def test_finds_what_was_deleted_and_made_anew_in_a_gap(rig: ClientRig, heard: Heard) -> None:
    rig.server.put(Pod, "a")
    rig.server.put(Pod, "b")
    rig.start(heard.informer.run())
    assert heard.take() == ["+a@996/uid-1", "+b@997/uid-2"]
    rig.server.silence()
    rig.server.delete(Pod, "a")
    rig.server.put(Pod, "a")
    rig.server.delete(Pod, "b")
    rig.server.store.compact()
    rig.advance(700)
    assert heard.take() == ["-a@996/uid-1", "-b@997/uid-2", "+a@999/uid-3"]


# --- groups --------------------------------------------------------------------------------------


def ignore(value: Object) -> None:
    """Hear of an object and do nothing."""


def group(rig: ClientRig) -> Informers:
    informers = Informers()
    for kind in (Pod, Node, StorageClass):
        informers.add(Informer(rig.client, kind, on_put=ignore, on_remove=ignore))
    return informers


def test_an_informer_lists_after_those_that_come_before_it(rig: ClientRig) -> None:
    rig.server.forbidden = {("list", Node)}
    informers = group(rig)
    pods, nodes, _ = informers
    pods.after = (nodes,)
    rig.start(informers.run())
    assert informers.unsynced() == ["pods", "nodes"]
    rig.server.forbidden.clear()
    rig.advance(30)
    assert informers.all_synced


def test_a_group_says_who_is_missing_and_why(rig: ClientRig) -> None:
    rig.server.forbidden = {("list", Node), ("list", StorageClass)}
    informers = group(rig)
    assert informers.unsynced() == ["pods", "nodes", "storageclasses.storage.k8s.io"]
    rig.start(informers.run())
    waiting = rig.start(informers.wait_synced())
    assert informers.unsynced() == ["nodes", "storageclasses.storage.k8s.io"]
    assert [problem.partition(":")[0] for problem in informers.problems()] == [
        "cannot list nodes",
        "cannot list storageclasses.storage.k8s.io",
    ]
    assert not waiting.done()
    rig.server.forbidden.clear()
    rig.advance(30)
    assert waiting.done()
    assert informers.all_synced
    assert informers.problems() == []


def test_a_group_ends_as_one(rig: ClientRig) -> None:
    task = rig.start(group(rig).run())
    assert len(rig.server.watches) == 3
    task.cancel()
    rig.settle()
    assert task.cancelled()
    assert rig.server.watches == []


def test_a_group_that_runs_takes_nobody_in(rig: ClientRig) -> None:
    informers = group(rig)
    rig.start(informers.run())
    with pytest.raises(InternalError, match="informer of pods added while the group runs"):
        informers.add(Informer(rig.client, Pod, on_put=ignore, on_remove=ignore))
