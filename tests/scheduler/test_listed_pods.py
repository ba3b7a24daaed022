"""Lists in one go, and updates that change little, lead to the state that all in turn lead to."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.api.go_protobuf import encode
from tests.api.random_json import RandomJson

from mooring.api import codec, core, protobuf
from mooring.client.client import ApiClient
from mooring.client.informer import Informer
from mooring.scheduler.conflicts import Conflict
from mooring.simulator import Simulation
from mooring.testing import node

NODES = ("n1", "n2", "n3")


def listed(seed: int, count: int) -> list[core.Pod]:
    """Pods of all kinds, some on nodes, some of which do not exist; decoded in either way."""
    rng = random.Random(seed)
    repeats = rng.random() < 0.2
    found = []
    for number, value in enumerate(RandomJson(seed).objects("Pod", count)):
        uid = f"u{rng.randint(0, count) if repeats else number}"
        value["metadata"] = {
            **value["metadata"],
            "name": f"p{number}",
            "namespace": "d",
            "uid": uid,
        }
        value.setdefault("spec", {})["nodeName"] = rng.choice((*NODES, "gone", ""))
        value["spec"] = {
            **value["spec"],
            "schedulerName": rng.choice(("other", "default-scheduler")),
        }
        value.setdefault("status", {})["phase"] = rng.choice(("Running", "Pending", "Failed"))
        if rng.random() < 0.5:
            found.append(protobuf.decode(encode("Pod", value), core.Pod))
        else:
            found.append(codec.convert(value, core.Pod))
    return found


def state(sim: Simulation) -> dict[str, Any]:
    cache = sim.scheduler.cache
    table = cache.table
    resources = table.resources
    return {
        "pods": {pod.uid: pod.api for pod in cache.pods()},
        "rows": [sorted(pods) for pods in table.pods],
        "nodes": dict(zip(table.names, table.api, strict=True)),
        "on rows": [{uid: pod.api for uid, pod in pods.items()} for pods in table.pods],
        "allocatable": {
            name: column.view.tolist()
            for name, column in resources.allocatable.items()
            if any(column.view)
        },
        "taints": [  # sets that differ only in the time of a taint are one
            [(taint.key, taint.value, taint.effect) for taint in table.taint_sets[code]]
            for code in table.taint_code.view
        ],
        "unschedulable": table.unschedulable.view.tolist(),
        "zones": table.order._zone_of,
        "requested": {name: column.view.tolist() for name, column in resources.requested.items()},
        "nonzero": {
            name: column.view.tolist() for name, column in resources.nonzero_requested.items()
        },
        "floats": np.array(resources.block.floats).tolist(),
        "usage": {pod.uid: (dict(pod.usage), pod.nonzero_usage, pod.host_ports, pod.images)
                  for pod in cache.pods()},
        "pending": sorted(sim.scheduler.handlers._pending),
    }  # fmt: skip


def without_zeros(found: dict[str, Any]) -> dict[str, Any]:
    requested = {name: values for name, values in found["requested"].items() if any(values)}
    return {**found, "requested": requested}


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), few=st.sampled_from([0, 8]))
def test_a_list_leads_to_the_same_state_as_pods_one_by_one(seed: int, few: int) -> None:
    pods = listed(seed, 14)
    with (
        pytest.MonkeyPatch.context() as patch,
        Simulation(keep_attempts=False) as one,
        Simulation(keep_attempts=False) as other,
    ):
        patch.setattr("mooring.cache.resources._FEW", few)
        for sim in (one, other):
            sim.apply(*(node(name) for name in NODES))
            _ = sim.scheduler.cache.table.resources.block.floats
            for value in pods[:3]:
                sim.scheduler.handlers.put_pod(value)
        other.scheduler.handlers.put_pods(pods)
        # Of two pods with one uid, which no server has, the last one counts in either case.
        for value in pods:
            one.scheduler.handlers.put_pod(value)
        uids = [value.uid for value in pods]
        if len(set(uids)) == len(uids):
            assert without_zeros(state(other)) == without_zeros(state(one))
        else:
            assert set(state(other)["pods"]) <= set(uids)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_list_leads_to_the_same_state_as_nodes_one_by_one(seed: int) -> None:
    """Also if some were known, if label columns exist, and if pods came before their nodes."""
    rng = random.Random(seed)
    names = [f"n{number}" for number in range(rng.randint(1, 40))]
    nodes = []
    for name, made_up in zip(names, RandomJson(seed).objects("Node", len(names)), strict=True):
        made_up["metadata"] |= {"name": name, "labels": {"zone": rng.choice("abc"), "host": name}}
        made_up["metadata"].pop("namespace", None)
        nodes.append(codec.convert(made_up, core.Node))
        if rng.random() < 0.3:  # nodes with the same amounts
            nodes[-1] = structs.replace(nodes[-1], status=nodes[0].status)
    pods = listed(seed, 5)
    known = rng.sample(nodes, rng.randint(0, len(nodes)))
    with Simulation(keep_attempts=False) as one, Simulation(keep_attempts=False) as other:
        for sim in (one, other):
            for value in known:
                sim.scheduler.handlers.put_node(structs.replace(value, status=core.NodeStatus()))
            for pod in pods:
                sim.scheduler.handlers.put_pod(pod)
            table = sim.scheduler.cache.table
            for key in ("zone", "host"):
                table.label(key)
            _ = table.resources.block.floats
        other.scheduler.handlers.put_nodes(nodes)
        for value in (value for value in nodes if value not in known):
            one.scheduler.handlers.put_node(value)
        for value in (value for value in nodes if value in known):
            one.scheduler.handlers.put_node(value)
        assert without_zeros(state(other)) == without_zeros(state(one))
        assert labels_of(other) == labels_of(one)


def labels_of(sim: Simulation) -> list[list[str | None]]:
    columns = [sim.scheduler.cache.table.label(key) for key in ("zone", "host")]
    return [[column.values[code] for code in column.codes.view] for column in columns]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_after_updates_the_state_is_that_of_the_last_versions(seed: int) -> None:
    """Whatever an update leaves as it was: nothing of a former version is left behind."""
    rng = random.Random(seed)
    last: dict[str, core.Node | core.Pod] = {}
    with Simulation(keep_attempts=False) as followed, Simulation(keep_attempts=False) as fresh:
        handlers = followed.scheduler.handlers
        nodes = informer(core.Node, handlers.put_node, handlers.remove_node)
        pods = informer(core.Pod, handlers.put_pod, handlers.remove_pod)
        nodes.replace(
            [codec.convert({"metadata": {"name": name}}, core.Node) for name in NODES], []
        )
        updates = zip(
            RandomJson(seed).objects("Node", 5), RandomJson(seed).objects("Pod", 5), strict=True
        )
        for version, (node_json, pod_json) in enumerate(updates, start=1):
            name, number = rng.choice(NODES), rng.randint(0, 1)
            node_json["metadata"] |= {"name": name, "uid": "", "resourceVersion": str(version)}
            node_json["metadata"].pop("namespace", None)
            about = {"name": f"p{number}", "namespace": "d", "uid": f"u{number}"}
            pod_json["metadata"] |= {**about, "resourceVersion": str(version)}
            pod_json.setdefault("spec", {})["nodeName"] = NODES[number]
            pod_json.setdefault("status", {})["phase"] = "Running"
            put = codec.convert(node_json, core.Node), codec.convert(pod_json, core.Pod)
            nodes.put(put[0])
            pods.put(put[1])
            assert (nodes.get(name), pods.get(f"d/p{number}")) == put
            last |= {f"node {name}": put[0], f"pod {number}": put[1]}
        for name in NODES:  # in the same order, which rows have
            bare = codec.convert({"metadata": {"name": name}}, core.Node)
            fresh.scheduler.handlers.put_node(bare)
        for value in last.values():
            if isinstance(value, core.Node):
                fresh.scheduler.handlers.put_node(value)
        for value in last.values():
            if isinstance(value, core.Pod):
                fresh.scheduler.handlers.put_pod(value)
        assert without_zeros(state(followed)) == without_zeros(state(fresh))


def informer(kind: type[Any], put: Any, remove: Any) -> Informer[Any]:
    return Informer(ApiClient(Unused()), kind, on_put=put, on_remove=remove)


class Unused:
    """A transport of an informer that is fed by hand."""

    async def send(self, request: Any, fence: Any = None) -> Any:
        raise AssertionError

    def stream(self, request: Any) -> Any:
        raise AssertionError

    async def close(self) -> None: ...


def test_pods_that_wait_learn_of_listed_pods() -> None:
    near = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [near]}
    waits = made("waits", affinity={"podAffinity": required})
    with Simulation() as sim:
        sim.apply(node("n1"), waits)
        sim.settle()
        assert sim.scheduler.cache.pod_count == 0
        sim.scheduler.handlers.put_pods([made("there", labels={"app": "web"}, nodeName="n1")])
        sim.advance(30)
        assert sim.scheduler.cache.pod_count == 2


def test_pods_of_others_on_a_full_node_are_a_conflict() -> None:
    found: list[Conflict] = []
    asks = {"name": "c", "resources": {"requests": {"cpu": "900m"}}}
    with Simulation() as sim:
        sim.scheduler.handlers._on_conflict = found.append
        sim.apply(node("n1", cpu="1"), node("n2", cpu="8"))
        sim.scheduler.handlers.put_pods(
            [
                made(f"p{i}", schedulerName="other", nodeName=name, containers=[asks])
                for i, name in enumerate(("n1", "n1", "n2"))
            ]
        )
    assert found == [Conflict.OVERCOMMITTED]


def made(name: str, labels: dict[str, str] | None = None, **spec: Any) -> core.Pod:
    meta = {"name": name, "namespace": "default", "uid": name, "labels": labels or {}}
    return codec.convert({"metadata": meta, "spec": spec}, core.Pod)
