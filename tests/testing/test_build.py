import asyncio

import pytest
from tests.testing.headroom import Headroom

import mooring.framework as fw
from mooring.api import core
from mooring.errors import ApiError, ConfigError
from mooring.testing import StubHandle, build, node, nodes, pod
from mooring.testing.build import START, StubWaitingPod


class PackArgs(fw.Args, frozen=True):
    pods_per_node: int = 2
    resource_names: tuple[str, ...] = ("cpu",)


class Pack(fw.Plugin[PackArgs], fw.Score):
    name = "Pack"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return self.args.pods_per_node


def test_refuses_the_node_whose_last_core_it_would_take() -> None:
    headroom = build(Headroom, reserve=0.25)
    assert headroom.filter(fw.CycleState(), pod("p", cpu="4"), node("n", cpu="4")) == (
        Headroom.TOO_FULL
    )


def test_fills_in_what_is_not_given() -> None:
    assert build(Headroom).args.reserve == 0.1


def test_takes_arguments_by_the_names_of_their_fields() -> None:
    args = build(Pack, pods_per_node=5, resource_names=["cpu", "memory"]).args
    assert args == PackArgs(pods_per_node=5, resource_names=("cpu", "memory"))


def test_refuses_a_wrong_value_as_at_start_up() -> None:
    with pytest.raises(ConfigError, match=r"pluginConfig\[Headroom\]\.args\.reserve: .*< 1\.0"):
        build(Headroom, reserve=2.0)


def test_refuses_an_unknown_argument() -> None:
    with pytest.raises(ConfigError, match=r"args\.podsPerNod: unknown field; .*podsPerNode"):
        build(Pack, podsPerNod=5)


def test_hands_over_the_handle_it_was_given() -> None:
    handle = StubHandle(nodes=nodes(node("a"), node("b")), scheduler_name="mine")
    plugin = build(Headroom, handle=handle)
    assert plugin.handle.nodes.names == ("a", "b")
    assert plugin.handle.scheduler_name == "mine"


def test_has_a_cluster_without_anything_in_it_at_first() -> None:
    handle = StubHandle()
    assert len(handle.nodes) == 0
    assert handle.objects.list(core.Namespace) == []
    assert list(handle.waiting) == []
    assert list(handle.nominator.nominated_nodes()) == []


def test_holds_the_objects_it_was_given() -> None:
    namespace = core.Namespace()
    assert StubHandle(objects=[namespace]).objects.list(core.Namespace) == [namespace]


def test_throws_the_same_dice_for_the_same_seed() -> None:
    assert StubHandle(seed=3).random.random() == StubHandle(seed=3).random.random()


def test_moves_the_clock_only_when_someone_sleeps_or_moves_it() -> None:
    clock = StubHandle().clock
    assert clock.now() == START
    asyncio.run(clock.sleep(5))
    clock.advance(2.5)
    assert clock.now() == START + 7.5


def test_remembers_bindings_and_patches() -> None:
    client = StubHandle().client
    waiting = pod("p")
    asyncio.run(client.bind(core.Binding()))
    asyncio.run(client.patch_pod_status(waiting, None, "n"))
    assert client.bindings == [core.Binding()]
    assert client.patches == [(waiting, None, "n")]


def test_fails_to_write_when_told_to() -> None:
    client = StubHandle().client
    client.failure = ApiError("conflict")
    with pytest.raises(ApiError, match="conflict"):
        asyncio.run(client.bind(core.Binding()))
    with pytest.raises(ApiError, match="conflict"):
        asyncio.run(client.patch_pod_status(pod("p"), None, None))
    assert client.bindings == []
    assert client.patches == []


def test_remembers_events_and_activated_pods() -> None:
    handle = StubHandle()
    handle.recorder.event(pod("p"), "Normal", "Scheduled", "Binding", "done")
    handle.activate(["default/a", "default/b"])
    assert [event.note for event in handle.recorder.events] == ["done"]
    assert handle.activated == ["default/a", "default/b"]


def test_lets_a_waiting_pod_go_when_nobody_holds_it_any_more() -> None:
    held = StubWaitingPod(pod("p", uid="u"), "n", ["A", "B"])
    handle = StubHandle(waiting=[held])
    found = handle.waiting.get("u")
    assert found is held
    held.allow("A")
    assert held.pending_plugins == ("B",)
    held.allow("B")
    assert held.allowed
    assert not held.reject("A", "too late")
    assert handle.waiting.get("other") is None


def test_rejects_a_waiting_pod_once() -> None:
    held = StubWaitingPod(pod("p"), "n", ["A"])
    assert held.reject("A", "no room")
    held.allow("A")
    assert not held.allowed
    assert held.rejected_by == ("A", "no room")


def test_knows_who_is_nominated_where() -> None:
    claimant = pod("p", nominated="n")
    nominator = StubHandle(nominations={"n": [claimant], "m": []}).nominator
    assert nominator.nominated_on("n") == [claimant]
    assert nominator.nominated_on("x") == ()
    assert list(nominator.nominated_nodes()) == ["n"]
