"""Extenders in the configuration of our own scheduler, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.extender.cluster_with_extenders import (
    NODES,
    ClusterWithExtenders,
    configuration,
    pod,
)
from tests.extender.scripted_extender import Payload, ScriptedExtender, answering, saying

from mooring import config as cfg
from mooring.client.component import Component
from mooring.client.errors import Fenced
from mooring.cluster.apiserver.resources import known
from mooring.cluster.embedded import EmbeddedCluster, RunningScheduler
from mooring.observe.metrics import Metrics
from mooring.scheduler import extender_binds, scheduler
from mooring.scheduler.connected import ConnectedScheduler


async def poll(condition: Callable[[], Any]) -> None:
    """Wait for something that no object of the cluster shows."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0.02)


def names_in(payload: Payload) -> list[str]:
    if payload["NodeNames"] is not None:
        return list(payload["NodeNames"])
    return [item["metadata"]["name"] for item in payload["Nodes"]["items"]]


def keeping(*wanted: str, why: str = "not one of ours") -> Any:
    """A filter that leaves these nodes, in the form it was asked."""

    def answer(payload: Payload) -> Payload:
        names = names_in(payload)
        failed = {name: why for name in names if name not in wanted}
        if payload["NodeNames"] is not None:
            left = [name for name in names if name in wanted]
            return {"NodeNames": left, "FailedNodes": failed, "Error": ""}
        items = [i for i in payload["Nodes"]["items"] if i["metadata"]["name"] in wanted]
        return {"Nodes": {"items": items}, "FailedNodes": failed}

    return answering(answer)


async def test_a_filter_with_names_only_decides_where_the_pod_goes() -> None:
    async with ScriptedExtender(filter=keeping("node-1")) as extender:
        entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True}
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("a"))
            assert await env.bound("a") == {"a": "node-1"}
    [asked] = extender.asked_for("filter")
    assert asked["Nodes"] is None
    assert sorted(asked["NodeNames"]) == list(NODES)


async def test_full_nodes_and_pods_are_sent_as_the_server_wrote_them() -> None:
    async with ScriptedExtender(filter=keeping("node-2")) as extender:
        entry = {"urlPrefix": extender.url, "filterVerb": "filter"}
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("a"))
            assert await env.bound("a") == {"a": "node-2"}
    [asked] = extender.asked_for("filter")
    assert asked["NodeNames"] is None
    sent = asked["Pod"]
    assert sent["spec"]["containers"][0]["command"] == ["run", "a"]  # no plugin reads that
    assert "managedFields" not in sent["metadata"]
    assert sent["metadata"]["uid"]
    assert asked["Nodes"]["metadata"] == {}
    node = asked["Nodes"]["items"][0]
    assert node["status"]["nodeInfo"]["kubeletVersion"]
    assert "kind" not in node


async def test_the_reasons_of_an_extender_are_in_the_message() -> None:
    answer = {
        "NodeNames": [],
        "FailedNodes": {"node-0": "no licence", "node-1": "no licence"},
        "FailedAndUnresolvableNodes": {"node-1": "never"},
    }
    async with ScriptedExtender(filter=answering(lambda payload: answer)) as extender:
        entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True}
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("a"))
            # The third node was left out without a word, and so none is said of it.
            expected = "0/3 nodes are available: 1 never, 1 no licence."
            assert (await env.note("a")).startswith(expected)


async def test_a_refused_pod_is_tried_again_when_the_cluster_changes() -> None:
    async with ScriptedExtender(filter=keeping("extra-0")) as extender:
        entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True}
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("a"))
            await env.note("a")
            env.cluster.add_nodes(1, name="extra-{i}")
            assert await env.bound("a") == {"a": "extra-0"}


async def test_a_nominated_node_that_an_extender_refuses_is_not_taken() -> None:
    async with ScriptedExtender(filter=keeping("node-1")) as extender:
        entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True}
        async with ClusterWithExtenders(configuration(entry)) as env:
            [made] = env.cluster.apply(pod("a", schedulingGates=[{"name": "wait"}]))
            replace, of = env.cluster.verbs.replace, known("pods")
            place: dict[str, Any] = {"namespace": "default", "name": "a"}
            status = {**made["status"], "nominatedNodeName": "node-0"}
            made = replace(of, {**made, "status": status}, **place, subresource="status")
            replace(of, {**made, "spec": {**made["spec"], "schedulingGates": []}}, **place)
            assert await env.bound("a") == {"a": "node-1"}
    alone, everywhere = extender.asked_for("filter")
    assert alone["NodeNames"] == ["node-0"]
    assert sorted(everywhere["NodeNames"]) == list(NODES)


async def test_each_filter_sees_what_the_one_before_it_left() -> None:
    async with (
        ScriptedExtender(filter=keeping("node-0", "node-1")) as first,
        ScriptedExtender(filter=keeping("node-1")) as second,
    ):
        common = {"filterVerb": "filter", "nodeCacheCapable": True}
        entries = [{"urlPrefix": one.url, **common} for one in (first, second)]
        async with ClusterWithExtenders(configuration(*entries)) as env:
            env.cluster.apply(pod("a"))
            assert await env.bound("a") == {"a": "node-1"}
    assert sorted(second.asked_for("filter")[0]["NodeNames"]) == ["node-0", "node-1"]


async def test_points_decide_among_equals_and_are_weighed_against_plugins() -> None:
    def points(payload: Payload) -> Any:
        return [{"Host": name, "Score": 10 if name == "node-2" else 0} for name in NODES]

    async with ScriptedExtender(prioritize=answering(points)) as extender:
        entry = {
            "urlPrefix": extender.url,
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "nodeCacheCapable": True,
        }
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(*[pod(f"p{i}") for i in range(6)])
            found = await env.bound(*[f"p{i}" for i in range(6)])
            assert set(found.values()) == {"node-2"}


async def test_scores_that_can_not_be_had_do_not_hinder() -> None:
    async with ScriptedExtender(prioritize=saying(500, b"oops")) as extender:
        entry = {"urlPrefix": extender.url, "prioritizeVerb": "prioritize", "weight": 1}
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("a"))
            assert await env.bound("a")
            assert env.notes("a") == []


async def test_binds_through_an_extender_that_binds() -> None:
    env: ClusterWithExtenders

    def bind(payload: Payload) -> Payload:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": payload["PodName"], "uid": payload["PodUID"]},
            "target": {"kind": "Node", "name": payload["Node"]},
        }
        place = f"/api/v1/namespaces/{payload['PodNamespace']}/pods/{payload['PodName']}/binding"
        bound.append((place, binding))
        return {"Error": "the ring is missing" if payload["PodName"] == "odd" else ""}

    bound: list[Any] = []
    async with ScriptedExtender(bind=answering(bind)) as extender:
        entry = {"urlPrefix": extender.url, "bindVerb": "bind"}
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("odd"))
            assert await env.note("odd") == "the ring is missing"
            env.cluster.apply(pod("even"))
            # An extender that says so is believed for a while: no Binding comes from us.
            await env.until(lambda: env.notes("even", "Scheduled"))
            assert env.node_of("even") == ""
    assert {place.split("/")[-2] for place, _ in bound} >= {"odd", "even"}


async def test_an_extender_that_does_not_bind_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_binds, "PATIENCE", 0.5)
    monkeypatch.setattr(scheduler, "_CHECK_BINDS_EVERY", 0.1)

    asked: list[str] = []
    held = asyncio.Event()

    def bind(payload: Payload) -> Payload:
        asked.append(payload["PodName"])
        if asked.count("p") == 2:
            held.set()
        return {"Error": ""}

    async with ScriptedExtender(bind=answering(bind)) as extender:
        entry = {"urlPrefix": extender.url, "bindVerb": "bind"}
        async with ClusterWithExtenders(configuration(entry), cpu="1") as env:
            assert env.running is not None
            env.cluster.apply(pod("p", requests={"cpu": "1"}))
            text = f'extender "{extender.url}" said that it bound the pod, which it did not'
            assert await env.note("p") == text
            await asyncio.wait_for(held.wait(), 20)  # it was tried again
            pods = env.running.scheduler.cache.assumed_count
            assert pods == 1  # and the room of the first time given back


async def test_an_extender_that_binds_late_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender_binds, "PATIENCE", 0.2)
    monkeypatch.setattr(scheduler, "_CHECK_BINDS_EVERY", 0.05)

    async with ScriptedExtender(bind=answering(lambda _: {"Error": ""})) as extender:
        entry = {"urlPrefix": extender.url, "bindVerb": "bind"}
        async with ClusterWithExtenders(configuration(entry)) as env:
            assert env.running is not None
            cache = env.running.scheduler.cache
            env.cluster.apply(pod("p"))
            await poll(lambda: cache.assumed_count)
            (assumed,) = [one for node in cache.nodes for one in node.pods]
            meta = {"name": "p", "namespace": "default", "uid": assumed.uid}
            binding = {"metadata": meta, "target": {"name": assumed.node_name}}
            env.cluster.verbs.bind("default", "p", binding)
            await poll(lambda: not cache.assumed_count)
            await asyncio.sleep(0.5)
            assert env.notes("p") == []
            assert env.node_of("p") == assumed.node_name


async def test_nothing_is_bound_through_an_extender_after_the_lease_was_lost() -> None:
    asked: list[str] = []
    looked_at_the_fence = 0

    def lost() -> None:
        nonlocal looked_at_the_fence
        looked_at_the_fence += 1
        raise Fenced("the lease was lost")

    def bind(payload: Payload) -> Payload:
        asked.append(payload["PodName"])
        return {"Error": ""}

    async with (
        ScriptedExtender(bind=answering(bind)) as extender,
        EmbeddedCluster(kubelets=False, controllers=False) as cluster,
    ):
        cluster.add_nodes(1)
        component = Component(cluster.transport, Metrics(), clock=cluster.clock.now)
        component.fence = lambda: lost
        entry = {"urlPrefix": extender.url, "bindVerb": "bind"}
        connected = ConnectedScheduler(
            component,
            cfg.load_text(configuration(entry)),
            clock=cluster.clock,
            metrics=Metrics(),
        )
        RunningScheduler(cluster, connected)
        cluster.apply(pod("p"))
        cache = connected.scheduler.cache
        await poll(lambda: looked_at_the_fence and not cache.assumed_count)
    assert asked == []


async def test_only_pods_with_a_managed_resource_are_asked_about_and_it_is_left_alone() -> None:
    async with ScriptedExtender(filter=keeping("node-1")) as extender:
        entry = {
            "urlPrefix": extender.url,
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "managedResources": [{"name": "example.com/fpga", "ignoredByScheduler": True}],
        }
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("plain"))
            await env.bound("plain")
            assert extender.asked == []
            # No node offers it, and that is the extender's business.
            fpga = {"example.com/fpga": "1"}
            env.cluster.apply(pod("special", requests=fpga, limits=fpga))
            assert await env.bound("special") == {"special": "node-1"}
            assert len(extender.asked) == 1


async def test_an_extender_may_object_to_evictions() -> None:
    def agree(payload: Payload) -> Payload:
        offered = payload["NodeNameToMetaVictims"]
        assert payload["NodeNameToVictims"] is None
        assert all(len(one["Pods"]) == 1 for one in offered.values())
        kept = {name: one for name, one in offered.items() if name == "node-1"}
        return {"NodeNameToMetaVictims": kept}

    async with ScriptedExtender(preempt=answering(agree)) as extender:
        entry = {"urlPrefix": extender.url, "preemptVerb": "preempt", "nodeCacheCapable": True}
        async with ClusterWithExtenders(configuration(entry), cpu="2") as env:
            env.cluster.apply(*[pod(f"old{i}", requests={"cpu": "1500m"}) for i in range(3)])
            before = await env.bound("old0", "old1", "old2")
            victim = next(name for name, node in before.items() if node == "node-1")
            env.cluster.apply(
                pod(
                    "new",
                    requests={"cpu": "1500m"},
                    priorityClassName="system-cluster-critical",
                )
            )
            await env.until(lambda: env.notes(victim, "Preempted"))
            others = [name for name in before if name != victim]
            assert not any(env.notes(name, "Preempted") for name in others)
    assert len(extender.asked_for("preempt")[0]["NodeNameToMetaVictims"]) == 3


async def test_an_extender_may_forbid_evictions_altogether() -> None:
    async with ScriptedExtender(
        preempt=answering(lambda payload: {"NodeNameToMetaVictims": {}})
    ) as extender:
        entry = {"urlPrefix": extender.url, "preemptVerb": "preempt"}
        async with ClusterWithExtenders(configuration(entry), nodes=1, cpu="2") as env:
            env.cluster.apply(pod("old", requests={"cpu": "1500m"}))
            await env.bound("old")
            env.cluster.apply(
                pod(
                    "new",
                    requests={"cpu": "1500m"},
                    priorityClassName="system-cluster-critical",
                )
            )
            note = await env.note("new")
            assert note.endswith("preemption: no candidate node for preemption"), note
    [victims] = extender.asked_for("preempt")[0]["NodeNameToVictims"].values()
    assert victims["Pods"][0]["spec"]["containers"][0]["command"] == ["run", "old"]


async def test_nothing_changes_under_a_decision_that_waits() -> None:
    env: ClusterWithExtenders

    def shrink(payload: Payload) -> Payload:
        # While we are being asked, the cluster turns upside down: rows move.
        if not seen:
            env.cluster.verbs.delete(known("nodes"), "", "node-0")
            env.cluster.add_nodes(2, name="late-{i}")
        seen.append(sorted(payload["NodeNames"]))
        return {"NodeNames": ["node-2"]}

    seen: list[list[str]] = []
    async with ScriptedExtender(filter=answering(shrink)) as extender:
        entry = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True}
        async with ClusterWithExtenders(configuration(entry)) as env:
            env.cluster.apply(pod("a"))
            assert await env.bound("a") == {"a": "node-2"}
            env.cluster.apply(pod("b"))
            assert await env.bound("b") == {"b": "node-2"}
    assert seen == [list(NODES), ["late-0", "late-1", "node-1", "node-2"]]
