"""Writes to an API server whose answers may be lost."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json, structs
from tests.faulty_transport import Asked, FaultyServer, Garbage, Refuse, Vanish
from tests.garbage import NO_OBJECT

from mooring.api import core
from mooring.api.codec import encode, to_builtins
from mooring.api.merging import merge_patch
from mooring.api.meta import Condition, ObjectMeta, ObjectReference
from mooring.client.client import ApiClient
from mooring.client.errors import ConflictError, Fenced, Forbidden, Garbled, NotFound, Unreachable
from mooring.client.flowcontrol import RateLimiter, WritesInProgress
from mooring.client.transport import METADATA, Fence
from mooring.cluster.apiserver.resources import known
from mooring.scheduler.cluster import SchedulerWriter
from mooring.simulator.clock import VirtualLoop
from mooring.testing.builders import pod

PODS = known("pods")
BINDING = core.Binding(
    metadata=ObjectMeta(namespace="default", name="p", uid="uid-p"),
    target=ObjectReference(kind="Node", name="a"),
)
FORBIDDEN = Refuse(403, "Forbidden", "pods is forbidden")
LOST = Vanish("connection reset", done=True)  # the server has carried it out


class Rig:
    def __init__(self, limiter: RateLimiter | None = None) -> None:
        self.server = FaultyServer()
        self.put_pod()
        self.conflicts: list[str] = []
        self.congestion: list[bool] = []
        self.is_fenced = False
        self.fences = 0  # made
        self.writes = WritesInProgress()
        self.writer = SchedulerWriter(
            ApiClient(self.server, fence=self._new_fence, limiter=limiter),
            writes=self.writes,
            on_conflict=self.conflicts.append,
            on_congestion=self.congestion.append,
        )

    def put_pod(self, uid: str = "uid-p", name: str = "p", **about: Any) -> None:
        """A pod that is written to."""
        value = to_builtins(pod(name, uid=uid, **about).api)
        self.server.store.put(PODS, {"kind": "Pod", "apiVersion": "v1", **value})

    def delete_pod(self) -> None:
        self.server.store.remove(PODS, "default", "p")

    @property
    def node(self) -> str:
        item = self.server.store.get(PODS, "default", "p")
        assert item is not None
        return item.fields["spec.nodeName"]

    def _new_fence(self) -> Fence:
        self.fences += 1
        return self._fence

    def _fence(self) -> None:
        if self.is_fenced:
            raise Fenced("the lease was lost")

    def run(self, work: Coroutine[Any, Any, None], seconds: float = 60) -> None:
        loop = VirtualLoop()
        try:
            task = loop.create_task(work)
            loop.advance(seconds)
            task.result()
        finally:
            loop.close()

    def bind(self) -> None:
        self.run(self.writer.bind(BINDING))


def test_binds_with_one_request() -> None:
    rig = Rig()
    rig.bind()
    assert rig.server.lines == ["POST binding"]
    assert [asked.body for asked in rig.server.asked] == [
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p", "namespace": "default", "uid": "uid-p"},
            "target": {"kind": "Node", "name": "a"},
        }
    ]


def test_finds_out_that_a_bind_without_answer_was_carried_out() -> None:
    rig = Rig()
    rig.server.fail("*", LOST)
    rig.bind()
    assert rig.server.lines == ["POST binding", "GET p"]
    assert rig.conflicts == []


def test_asks_again_after_a_bind_that_never_arrived() -> None:
    rig = Rig()
    rig.server.fail("*", Vanish())
    rig.bind()
    assert rig.server.lines == ["POST binding", "GET p", "POST binding"]


def test_waits_for_a_server_that_is_away() -> None:
    rig = Rig()
    rig.server.fail("*", LOST, *[Vanish()] * 5)
    rig.bind()
    assert rig.server.lines == ["POST binding", *["GET p"] * 6]


def test_knows_its_own_bind_when_the_second_one_is_refused() -> None:
    rig = Rig()

    def arrive_late(asked: Asked) -> None:
        """The first request is still on its way through the server while the pod is read."""
        if len(rig.server.asked) == 3:
            rig.put_pod(on="a")

    rig.server.fault = arrive_late
    rig.server.fail("*", Vanish())
    rig.bind()
    assert rig.server.lines == ["POST binding", "GET p", "POST binding", "GET p"]
    assert rig.conflicts == []


def test_reports_a_pod_that_somebody_else_has_bound() -> None:
    rig = Rig()
    rig.put_pod(on="elsewhere")
    with pytest.raises(ConflictError, match="already assigned"):
        rig.bind()
    assert rig.conflicts == ["already_bound"]


def test_does_not_blame_others_for_a_pod_that_is_bound_nowhere() -> None:
    rig = Rig()
    rig.server.fail("create", Refuse(409, "Conflict", "a quota has changed"))
    with pytest.raises(ConflictError, match="a quota has changed"):
        rig.bind()
    rig.put_pod(deleting=True)
    with pytest.raises(NotFound):
        rig.bind()
    assert rig.conflicts == []


def test_goes_on_looking_for_a_lost_answer_while_the_server_forbids_it() -> None:
    rig = Rig()
    rig.server.fail("*", LOST, *[FORBIDDEN] * 3)
    rig.bind()
    assert rig.server.lines == ["POST binding", *["GET p"] * 4]


def test_does_not_take_the_refusal_of_a_second_try_for_the_fate_of_the_first() -> None:
    rig = Rig()
    not_yet = Garbage(encode(pod("p", uid="uid-p").api))
    rig.server.fail("*", LOST, not_yet, FORBIDDEN)
    rig.bind()
    assert rig.server.lines == ["POST binding", "GET p", "POST binding", "GET p"]


def test_tells_at_once_that_a_first_try_is_forbidden() -> None:
    rig = Rig()
    rig.server.fail("*", FORBIDDEN)
    with pytest.raises(Forbidden):
        rig.bind()
    assert rig.server.lines == ["POST binding"]


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_gives_up_on_a_pod_that_is_gone(is_made_anew: bool) -> None:
    rig = Rig()
    rig.server.fail("*", Vanish())
    rig.delete_pod()
    if is_made_anew:
        rig.put_pod(uid="another")
    with pytest.raises(NotFound):
        rig.bind()


def test_sends_nothing_once_it_is_fenced() -> None:
    rig = Rig()
    rig.is_fenced = True
    with pytest.raises(Fenced):
        rig.bind()
    assert rig.server.lines == []


def test_the_tries_of_a_bind_have_one_fence() -> None:
    """A bind that is tried again after the lease was lost and won again is an old decision."""
    rig = Rig()
    rig.server.fail("*", *[Vanish()] * 4)
    rig.bind()
    assert rig.server.lines.count("POST binding") > 1
    assert rig.fences == 1


def test_tells_when_binds_pile_up_and_when_they_have_drained() -> None:
    rig = Rig()
    rig.server.fail("*", *[Vanish()] * 3000)

    async def many() -> None:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(rig.writer.bind(BINDING)) for _ in range(300)]
        await asyncio.gather(*tasks)

    rig.run(many(), seconds=600)
    assert rig.congestion == [True, False]


def test_patches_one_condition_and_the_nomination_of_this_very_pod() -> None:
    rig = Rig()
    condition = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    subject = pod("p", uid="uid-p")
    rig.run(rig.writer.patch_pod_status(subject, condition, ""))
    rig.run(rig.writer.patch_pod_status(subject, None, "b"))
    assert rig.server.lines == ["PATCH status"] * 2
    assert [asked.body for asked in rig.server.asked] == [
        {
            "metadata": {"uid": "uid-p"},
            "status": {"conditions": [to_builtins(condition)], "nominatedNodeName": None},
        },
        {"metadata": {"uid": "uid-p"}, "status": {"nominatedNodeName": "b"}},
    ]


REFUSED = Condition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    last_transition_time="2026-01-01T00:00:00Z",
)


def test_asks_for_metadata_where_the_answer_is_not_read() -> None:
    rig = Rig()
    rig.run(rig.writer.patch_pod_status(pod("p", uid="uid-p"), None, "a"))
    rig.run(rig.writer.delete_pod(pod("p", uid="uid-p")))
    assert [asked.request.accept for asked in rig.server.asked] == [METADATA, METADATA]


def test_a_status_patch_that_a_bind_overtakes_is_not_sent() -> None:
    rig = Rig(limiter=RateLimiter(1, 1))
    subject, other = pod("p", uid="uid-p"), pod("other", uid="uid-o")

    async def writes() -> None:
        patch = rig.writer.patch_pod_status
        await patch(other, None, "b")  # takes the only token
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(patch(one, REFUSED, "")) for one in (subject, other)]
        await asyncio.sleep(0.1)
        await rig.writer.bind(BINDING)
        await asyncio.gather(*waiting)
        assert loop.time() < 3  # the turn that was not needed went to the other patch
        await patch(subject, REFUSED, "")  # about a later attempt

    rig.put_pod("uid-o", name="other")
    rig.run(writes())
    assert [asked.path.partition("/pods/")[2] for asked in rig.server.asked] == [
        "other/status",
        "p/binding",
        "other/status",
        "p/status",
    ]
    assert not rig.writer._status_patches


def test_a_bind_waits_for_a_status_patch_that_was_sent() -> None:
    rig = Rig()
    rig.server.fail("*", LOST)

    async def writes() -> None:
        subject = pod("p", uid="uid-p")
        patch = asyncio.ensure_future(rig.writer.patch_pod_status(subject, REFUSED, ""))
        await asyncio.sleep(0.05)  # until it is tried again
        assert rig.server.lines == ["PATCH status"]
        await rig.writer.bind(BINDING)
        assert patch.done()  # and not tried again
        await patch

    rig.run(writes())
    assert rig.server.lines == ["PATCH status", "POST binding"]


def test_a_status_patch_of_a_former_leader_fails() -> None:
    rig = Rig()
    rig.is_fenced = True
    with pytest.raises(Fenced):
        rig.run(rig.writer.patch_pod_status(pod("p", uid="uid-p"), REFUSED, ""))


def test_deletes_only_this_very_pod_and_is_content_if_it_is_gone() -> None:
    rig = Rig()
    rig.run(rig.writer.delete_pod(pod("p", uid="uid-p")))
    assert rig.server.asked[0].body["preconditions"] == {"uid": "uid-p"}
    rig.delete_pod()
    rig.run(rig.writer.delete_pod(pod("p", uid="uid-p")))


def test_repeats_a_patch_a_few_times_and_then_says_that_it_failed() -> None:
    rig = Rig()
    rig.server.fail("*", *[Vanish()] * 9)
    with pytest.raises(Unreachable):
        rig.run(rig.writer.patch_pod_status(pod("p"), None, "b"))
    assert rig.server.lines == ["PATCH status"] * 4


json_values = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from("abc"), json_values)


def patched(old: Any, change: Any) -> Any:
    """RFC 7396, as a server applies it."""
    if not isinstance(change, dict):
        return change
    found = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = patched(found.get(key), value)
    return found


@given(old=objects, new=objects)
def test_writes_the_merge_patch_that_makes_one_of_the_other(old: Any, new: Any) -> None:
    assert patched(old, merge_patch(old, new)) == new


# --- answers that cannot be read ------------------------------------------------------------------


@pytest.mark.parametrize("body", NO_OBJECT)
@pytest.mark.parametrize("is_done", [True, False])
def test_looks_up_a_bind_that_was_answered_with_garbage(is_done: bool, body: bytes) -> None:
    rig = Rig()
    rig.server.fail("*", Garbage(body, 201, done=is_done), Garbage(body))
    rig.bind()
    again = [] if is_done else ["POST binding"]
    assert rig.server.lines == ["POST binding", "GET p", "GET p", *again]
    assert rig.node == "a"
    assert rig.conflicts == []


@pytest.mark.parametrize("body", NO_OBJECT)
def test_repeats_a_status_patch_that_was_answered_with_garbage(body: bytes) -> None:
    rig = Rig()
    rig.server.fail("*", *[Garbage(body)] * 2)
    rig.run(rig.writer.patch_pod_status(pod("p", uid="uid-p"), None, "a"))
    assert rig.server.lines == ["PATCH status"] * 3
    rig.server.fail("*", *[Garbage(body)] * 10)
    with pytest.raises(Garbled):  # an ApiError, which callers log
        rig.run(rig.writer.patch_pod_status(pod("p", uid="uid-p"), None, "a"))


@pytest.mark.parametrize("body", NO_OBJECT)
def test_repeats_a_deletion_that_was_answered_with_garbage(body: bytes) -> None:
    rig = Rig()
    rig.server.fail("*", *[Garbage(body)] * 2)
    rig.run(rig.writer.delete_pod(pod("p", uid="uid-p")))
    assert rig.server.lines == ["DELETE p"] * 3


@pytest.mark.parametrize("body", NO_OBJECT)
def test_reports_an_update_that_was_answered_with_garbage(body: bytes) -> None:
    rig = Rig()
    rig.server.fail("*", Garbage(body))
    with pytest.raises(Garbled):
        rig.run(rig.writer.update(pod("p", uid="uid-p").api))


def test_events_wait_for_binds_status_patches_and_evictions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    seen: list[bool] = []
    send = rig.server.send

    async def watched(*given: Any, **more: Any) -> Any:
        seen.append(rig.writes.any)
        return await send(*given, **more)

    monkeypatch.setattr(rig.server, "send", watched)
    rig.run(rig.writer.bind(BINDING))
    victim = pod("p", uid="uid-p")
    rig.put_pod()
    rig.run(rig.writer.patch_pod_status(victim, REFUSED, ""))
    rig.run(rig.writer.delete_pod(victim))
    assert seen == [True, True, True]
    assert not rig.writes.any


# --- objects of plugins ---------------------------------------------------------------------------


NODES = known("nodes")


def put_node(rig: Rig, **spec: Any) -> core.Node:
    """A node on the server, as a watch would show it."""
    about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "uid-n"}}
    rig.server.store.put(NODES, {**about, "spec": {"podCIDR": "10.0.0.0/24", **spec}})
    return asyncio.run(rig.writer.get(core.Node, "n"))


def cordoned(node: core.Node) -> core.Node:
    return structs.replace(node, spec=structs.replace(node.spec, unschedulable=True))


def test_an_update_sends_what_differs_and_leaves_fields_that_are_not_known() -> None:
    rig = Rig()
    node = put_node(rig)
    rig.run(rig.writer.update(cordoned(node)))
    assert rig.server.asked[-1].body == {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"unschedulable": True},
    }
    item = rig.server.store.get(NODES, "", "n")
    assert item is not None
    assert json.decode(item.raw)["spec"]["podCIDR"] == "10.0.0.0/24"


def test_an_update_without_a_difference_writes_nothing() -> None:
    rig = Rig()
    rig.run(rig.writer.update(put_node(rig)))
    assert set(rig.server.lines) == {"GET n"}


def test_an_update_of_an_object_that_has_changed_since_is_refused() -> None:
    rig = Rig()
    seen = put_node(rig)
    put_node(rig, providerID="x")
    text = 'on nodes "n": the object has been modified'
    with pytest.raises(ConflictError, match=text):
        rig.run(rig.writer.update(cordoned(seen)))
    assert set(rig.server.lines) == {"GET n"}


def test_an_object_is_removed_once_and_it_does_not_matter_if_it_is_gone() -> None:
    rig = Rig()
    node = put_node(rig)
    for _ in range(2):
        rig.run(rig.writer.remove(node))
        assert rig.server.store.get(NODES, "", "n") is None


def test_a_write_in_the_background_is_carried_out() -> None:
    rig = Rig()
    node = put_node(rig)

    async def later() -> None:
        rig.writer.soon(lambda: rig.writer.remove(node))

    rig.run(later())
    assert rig.server.store.get(NODES, "", "n") is None
