"""Binds by an extender, against an embedded API server."""

from __future__ import annotations

import pytest
from tests.extender.in_process_server import Served, binding, serve

import mooring.framework as fw
from mooring.api import core
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Item
from mooring.extender import Extender
from mooring.testing import node, pod

NODES = [node("a"), node("b")]


class Filters(fw.Filter):
    name = "Filters"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


PODS = known("pods")


def item_of(served: Served, name: str) -> Item:
    found = served.cluster.store.get(PODS, "default", name)
    assert found is not None
    return found


def uid_of(served: Served, name: str) -> str:
    return str(item_of(served, name).decoded()["metadata"]["uid"])


def node_of(served: Served, name: str) -> str:
    return item_of(served, name).fields["spec.nodeName"]


async def bind(served: Served, name: str, to: str, uid: str = "") -> str:
    asked = binding(pod(name), to, uid or uid_of(served, name))
    answer = await served.ask("/bind", asked)
    assert list(answer) == ["Error"]
    return str(answer["Error"])


async def test_creates_the_binding_and_says_so_again_when_asked_again() -> None:
    async with serve([Filters], objects=[*NODES, pod("web")], serve_bind=True) as served:
        assert await bind(served, "web", "b") == ""
        assert node_of(served, "web") == "b"
        assert await bind(served, "web", "b") == ""
        assert await bind(served, "web", "a") == 'pod default/web is on node "b" already'


async def test_refuses_a_pod_or_uid_that_the_server_does_not_know() -> None:
    async with serve([Filters], objects=[*NODES, pod("web")], serve_bind=True) as served:
        assert await bind(served, "nobody", "a", "u") == "there is no pod default/nobody"
        uid = uid_of(served, "web")
        told = await bind(served, "web", "a", "stale")
        assert told.startswith(f"pod default/web has the uid {uid}, and was asked for as stale")
        assert "needs PodName, PodNamespace, PodUID" in await bind(served, "web", "", uid)
        assert node_of(served, "web") == ""


async def test_serves_no_bind_unless_it_is_told_to() -> None:
    async with serve([Filters], objects=[*NODES, pod("web")]) as served:
        reply = await served.post("/bind", binding(pod("web"), "a"))
        assert reply.status == 404
        assert reply.json["Error"] == "this extender does not serve /bind"


class Careful(fw.Bind):
    name = "Careful"

    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        if "broken" in pod.labels:
            raise RuntimeError("no hands")
        return fw.Status.unschedulable("not there") if node_name == "a" else fw.SKIP


async def test_a_bind_plugin_decides_and_what_it_skips_is_bound_by_default() -> None:
    there = [*NODES, pod("web"), pod("bad", labels={"broken": ""})]
    async with serve([Careful], objects=there) as served:
        assert await bind(served, "web", "a") == "not there"
        assert node_of(served, "web") == ""
        assert await bind(served, "web", "b") == ""
        assert node_of(served, "web") == "b"
        told = await bind(served, "bad", "b")
        assert told == 'running Bind plugin "Careful": RuntimeError: no hands'
        assert node_of(served, "bad") == ""


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_bind_function_may_object(is_async: bool) -> None:
    def not_to_a(pod: fw.Pod, node_name: str) -> str | None:
        return "not to a" if node_name == "a" else None

    async def later(pod: fw.Pod, node_name: str) -> str | None:
        return not_to_a(pod, node_name)

    extender = Extender()
    if is_async:
        extender.bind(later)
    else:
        extender.bind(not_to_a)
    async with serve(extender, objects=[*NODES, pod("web")]) as served:
        assert await bind(served, "web", "a") == "not to a"
        assert await bind(served, "web", "b") == ""
        assert node_of(served, "web") == "b"


async def test_a_bind_function_may_have_bound_the_pod_itself() -> None:
    extender = Extender()
    taken: list[str] = []

    @extender.bind
    def by_hand(pod: fw.Pod, node_name: str) -> fw.Status:
        taken.append(f"{pod.key} {node_name}")
        return fw.OK

    async with serve(extender, objects=[*NODES, pod("web")]) as served:
        assert await bind(served, "web", "a") == ""
        assert (taken, node_of(served, "web")) == (["default/web a"], "")


async def test_tells_what_the_server_says_to_a_second_binding() -> None:
    async with serve([Filters], objects=[*NODES, pod("web")], serve_bind=True) as served:
        uid = uid_of(served, "web")
        meta = ObjectMeta(namespace="default", name="web", uid=uid)
        target = ObjectReference(kind="Node", name="a")
        before = served.app.cluster.find_pod

        async def unbound(namespace: str, name: str, uid: str) -> fw.Pod:
            found = await before(namespace, name, uid)
            await served.cluster.client().bind(core.Binding(metadata=meta, target=target))
            return found

        served.app.cluster.find_pod = unbound  # type: ignore[method-assign]  # just too late
        told = await bind(served, "web", "b", uid)
        assert told.startswith('running Bind plugin "DefaultBinder": ')
        assert "already assigned to node" in told
