"""The shapes of Kubernetes' end-to-end tests of scheduling, on a cluster as `cluster up` has it.

Nothing is prepared by hand that a real cluster would have by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from mooring.cluster.apiserver.resources import LIMIT_RANGES, NODES, PODS, Resource
from mooring.cluster.apiserver.store import Object
from mooring.testing.sandbox import Sandbox

ZONE = "topology.kubernetes.io/zone"
BEARD = "example.com/beardsecond"


@pytest.fixture
def box() -> Iterator[Sandbox]:
    with Sandbox(storage_class=True) as made:
        made.add_nodes(3, cpu="8", zones=("a", "b"))
        made.start_scheduler()
        made.settle()
        yield made


def pod(name: str, resources: Object | None = None, **spec: Any) -> Object:
    meta: Object = {"name": name, "labels": spec.pop("labels", {"app": name})}
    if "finalizers" in spec:
        meta["finalizers"] = spec.pop("finalizers")
    container: Object = {"name": "c", "image": "pause", **spec.pop("container", {})}
    if resources:
        container["resources"] = resources
    body = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def requests(**amounts: str) -> Object:
    return {"requests": amounts, "limits": amounts}


def offer(box: Sandbox, resource: str, amount: str, *names: str) -> None:
    """Patch the capacity of nodes, as the tests do; the kubelet makes it allocatable."""

    def write(node: Object) -> None:
        node["status"]["capacity"][resource] = amount

    for name in names:
        box.cluster.verbs.modify(NODES, "", name, write, subresource="status")
    box.wait_until(
        lambda: all(box.get("node", name)["status"]["allocatable"].get(resource) for name in names)
    )


def change_spec(box: Sandbox, of: Resource, name: str, **fields: Any) -> None:
    def write(value: Object) -> None:
        value["spec"] |= fields

    box.cluster.verbs.modify(of, "default" if of.namespaced else "", name, write)


def priority(name: str, value: int) -> Object:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


def waits(box: Sandbox, name: str, why: str) -> None:
    box.wait_until(lambda: why in box.why(name), seconds=10)
    assert box.node_of(name) == ""


def spread(label: str, key: str = ZONE) -> Object:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {**constraint, "labelSelector": {"matchLabels": {"app": label}}}


# --- limit ranges --------------------------------------------------------------------------------


def test_limit_range_sets_defaults_and_refuses_what_is_out_of_bounds(box: Sandbox) -> None:
    item = {
        "type": "Container",
        "min": {"cpu": "50m", "memory": "100Mi"},
        "max": {"cpu": "500m", "memory": "500Mi"},
        "default": {"cpu": "500m", "memory": "500Mi"},
        "defaultRequest": {"cpu": "100m", "memory": "200Mi"},
    }
    meta = {"name": "limits", "labels": {"t": "1"}}
    value = {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta}
    box.apply({**value, "spec": {"limits": [item]}})
    box.apply(pod("plain"), pod("partial", {"requests": {"cpu": "200m"}}))
    expected = {"limits": item["default"], "requests": item["defaultRequest"]}
    assert box.get("pod", "plain")["spec"]["containers"][0]["resources"] == expected
    partial = box.get("pod", "partial")["spec"]["containers"][0]["resources"]
    assert partial["requests"] == {"cpu": "200m", "memory": "200Mi"}
    for amount, side in (("10m", "minimum"), ("600m", "maximum")):
        with pytest.raises(Exception, match=f"{side} cpu usage per Container"):
            box.apply(pod("bad", requests(cpu=amount)))
    verbs = box.cluster.verbs
    verbs.modify(LIMIT_RANGES, "default", "limits", lambda one: one["spec"].update(limits=[]))
    box.apply(pod("free", requests(cpu="10m")))
    verbs.delete(LIMIT_RANGES, "default", "limits")
    assert box.all("limitranges") == []


# --- predicates ----------------------------------------------------------------------------------


def test_accounts_for_the_overhead_of_a_pod(box: Sandbox) -> None:
    offer(box, BEARD, "1000", "node-0")
    handler = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "h"}
    box.apply({**handler, "metadata": {"name": "heavy"}, "overhead": {"podFixed": {BEARD: "250"}}})
    box.apply(pod("filler", requests(**{BEARD: "700"})))
    box.wait_until_running("filler")
    box.apply(pod("overhead", requests(**{BEARD: "200"}), runtimeClassName="heavy"))
    waits(box, "overhead", f"Insufficient {BEARD}")
    box.delete("pod", "filler")
    box.wait_until_running("overhead")


def test_heeds_cpu_and_ephemeral_storage(box: Sandbox) -> None:
    box.apply(*(pod(f"fill-{i}", requests(cpu="7")) for i in range(3)))
    box.wait_until_running()
    box.apply(pod("cpu", requests(cpu="2")))
    waits(box, "cpu", "Insufficient cpu")
    box.apply(pod("disk", requests(**{"ephemeral-storage": "200Gi"})))
    waits(box, "disk", "Insufficient ephemeral-storage")


def test_heeds_node_selectors_and_affinity(box: Sandbox) -> None:
    def affinity(value: str) -> Object:
        test = {"key": ZONE, "operator": "In", "values": [value]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [test]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}

    box.apply(pod("selected", nodeSelector={ZONE: "b"}), pod("near", affinity=affinity("b")))
    box.wait_until_running()
    assert set(box.placements().values()) == {"node-1"}
    box.apply(pod("lost", nodeSelector={"label": "nonempty"}), pod("far", affinity=affinity("z")))
    waits(box, "lost", "didn't match Pod's node affinity/selector")
    waits(box, "far", "didn't match Pod's node affinity/selector")


def test_heeds_taints(box: Sandbox) -> None:
    taint = {"key": "e2e", "value": "v", "effect": "NoSchedule"}
    for name in ("node-0", "node-1", "node-2"):
        box.cluster.verbs.modify(NODES, "", name, lambda one: one["spec"].update(taints=[taint]))
    box.apply(pod("refused"), pod("tolerant", tolerations=[{"key": "e2e", "operator": "Exists"}]))
    box.wait_until_running("tolerant")
    waits(box, "refused", "untolerated taint(s)")
    box.cluster.verbs.modify(NODES, "", "node-0", lambda one: one["spec"].pop("taints") and None)
    box.wait_until_running("refused")


def test_heeds_host_ports(box: Sandbox) -> None:
    def port(ip: str = "", protocol: str = "TCP") -> Object:
        said: Object = {"containerPort": 80, "hostPort": 54321, "protocol": protocol}
        return {"ports": [said | ({"hostIP": ip} if ip else {})]}

    there = {"kubernetes.io/hostname": "node-0"}
    box.apply(pod("a", container=port("127.0.0.1"), nodeSelector=there))
    box.apply(pod("b", container=port("10.1.1.1"), nodeSelector=there))
    box.apply(pod("c", container=port("10.1.1.1", "UDP"), nodeSelector=there))
    box.wait_until_running()
    box.apply(pod("d", container=port(), nodeSelector=there))
    waits(box, "d", "free ports")


def test_waits_for_scheduling_gates(box: Sandbox) -> None:
    box.apply(pod("gated", schedulingGates=[{"name": "foo"}, {"name": "bar"}]))
    box.settle()
    [condition] = box.get("pod", "gated")["status"]["conditions"]
    assert condition["reason"] == "SchedulingGated"
    for gates in ([{"name": "bar"}], []):
        assert box.node_of("gated") == ""
        change_spec(box, PODS, "gated", schedulingGates=gates)
        box.settle()
    box.wait_until_running("gated")


def test_spreads_four_pods_evenly(box: Sandbox) -> None:
    template = {"metadata": {"labels": {"app": "s"}}}
    template["spec"] = pod("s", topologySpreadConstraints=[spread("s")])["spec"]
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "s"}}, "template": template}
    meta = {"name": "s", "labels": {"app": "s"}}
    box.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec})
    box.wait_until_running()
    zones = {"node-0": "a", "node-1": "b", "node-2": "a"}
    assert Counter(zones[node] for node in box.placements("app=s").values()) == {"a": 2, "b": 2}


def test_refuses_a_volume_of_another_node(box: Sandbox) -> None:
    test = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["elsewhere"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [test]}]}}
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    volume |= {"storageClassName": "", "hostPath": {"path": "/x"}, "nodeAffinity": affinity}
    box.apply(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": volume}
    )
    claim: Object = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "v"}
    claim["resources"] = {"requests": {"storage": "1Gi"}}
    kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    box.apply({**kind, "metadata": {"name": "c"}, "spec": claim})
    mount = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
    box.wait_until(lambda: box.get("pvc", "c")["status"].get("phase") == "Bound")
    box.apply(pod("p", volumes=[mount]))
    waits(box, "p", "didn't match PersistentVolume's node affinity")


# --- preemption ----------------------------------------------------------------------------------


@pytest.fixture
def full(box: Sandbox) -> Sandbox:
    """Every node offers five of a resource, and low pods use four of them."""
    box.apply(priority("p1", 1), priority("p2", 100), priority("p3", 1000))
    offer(box, BEARD, "5", "node-0", "node-1", "node-2")
    for number, name in enumerate(("p1", "p2", "p2")):
        low = requests(**{BEARD: "4"})
        here = {"kubernetes.io/hostname": f"node-{number}"}
        hold = {"finalizers": ["example.com/test"]} if number == 0 else {}
        box.apply(pod(f"low-{number}", low, priorityClassName=name, nodeSelector=here, **hold))
    box.wait_until_running()
    return box


@pytest.mark.parametrize("name", ["p3", "system-cluster-critical"])
def test_preempts_the_lowest_priority(full: Sandbox, name: str) -> None:
    full.apply(pod("high", requests(**{BEARD: "3"}), priorityClassName=name))
    full.wait_until_running("high")
    assert full.node_of("high") == "node-0"
    victim = full.get("pod", "low-0")  # its finalizer keeps it
    assert "deletionTimestamp" in victim["metadata"]
    reasons = {one["type"]: one.get("reason") for one in victim["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "PreemptionByScheduler"
    assert {full.phase_of("low-1"), full.phase_of("low-2")} == {"Running"}


def test_preempts_while_victims_take_their_time(box: Sandbox) -> None:
    box.apply(priority("low", 1), priority("middle", 100), priority("high", 1000))
    offer(box, BEARD, "1", "node-0")
    slow = {"lifecycle": {"preStop": {"sleep": {"seconds": 20}}}}
    one = requests(**{BEARD: "1"})
    box.apply(pod("victim", one, container=slow, priorityClassName="low"))
    box.wait_until_running("victim")
    box.apply(pod("middle", one, priorityClassName="middle"))
    box.wait_until(lambda: box.get("pod", "middle")["status"].get("nominatedNodeName") == "node-0")
    box.apply(pod("high", one, priorityClassName="high"))
    box.wait_until(lambda: box.get("pod", "high")["status"].get("nominatedNodeName") == "node-0")
    box.advance(10)
    assert "deletionTimestamp" in box.get("pod", "victim")["metadata"]
    assert box.node_of("high") == ""
    box.wait_until_running("high")
    assert "victim" not in box.pods()
    assert box.node_of("middle") == ""


def test_preempts_where_the_spread_allows_it(box: Sandbox) -> None:
    box.apply(priority("low", 1), priority("high", 1000))
    offer(box, BEARD, "10", "node-0", "node-1")
    for name, node, amount in (
        ("big", "node-0", "9"),
        ("l1", "node-1", "3"),
        ("l2", "node-1", "3"),
    ):
        here = {"kubernetes.io/hostname": node}
        high = "high" if name == "big" else "low"
        box.apply(
            pod(
                name,
                requests(**{BEARD: amount}),
                priorityClassName=high,
                nodeSelector=here,
                labels={"app": "t"},
            )
        )
    box.wait_until_running()
    key = "kubernetes.io/hostname"
    limited = [{**spread("t", key), "nodeTaintsPolicy": "Honor"}]
    names = {"key": key, "operator": "In", "values": ["node-0", "node-1"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [names]}]}
    near = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    box.apply(
        pod(
            "medium",
            requests(**{BEARD: "6"}),
            priorityClassName="high",
            affinity=near,
            labels={"app": "t"},
            topologySpreadConstraints=limited,
        )
    )
    box.wait_until_running("medium")
    assert box.node_of("medium") == "node-1"
    assert box.phase_of("big") == "Running"


def test_replica_sets_preempt_each_other_in_order(box: Sandbox) -> None:
    offer(box, "example.com/fake", "1000", "node-0")
    for number, (count, amount) in enumerate(((5, "200"), (4, "200"), (3, "300"), (2, "450")), 1):
        name = f"s{number}"
        template: Object = {"metadata": {"labels": {"app": name}}}
        inner = pod(name, requests(**{"example.com/fake": amount}), priorityClassName=name)
        template["spec"] = inner["spec"]
        spec = {"replicas": count, "selector": {"matchLabels": {"app": name}}, "template": template}
        box.apply(priority(name, number))
        meta = {"name": name, "labels": {"app": name}}
        box.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec})
        box.advance(60)
        assert box.placements(f"app={name}")
    running = Counter(
        one["metadata"]["labels"]["app"]
        for one in box.all("pods")
        if one["status"]["phase"] == "Running"
    )
    assert running == {"s4": 2}


def test_a_priority_class_keeps_its_value(box: Sandbox) -> None:
    box.apply(priority("p", 1))
    with pytest.raises(Exception, match="may not be changed in an update"):
        box.apply(priority("p", 2))
    assert box.get("priorityclass", "p")["value"] == 1


# --- scores --------------------------------------------------------------------------------------


def test_prefers_nodes_without_the_other_pod_and_those_it_tolerates(box: Sandbox) -> None:
    box.apply(pod("first"))
    box.wait_until_running()
    term = {
        "labelSelector": {"matchLabels": {"app": "first"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    anti = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    box.apply(pod("second", affinity=anti))
    box.wait_until_running()
    assert box.node_of("first") != box.node_of("second")
    for name in ("node-0", "node-1"):
        change_spec(box, NODES, name, taints=[{"key": name, "effect": "PreferNoSchedule"}])
    box.apply(pod("third"))
    box.wait_until_running("third")
    assert box.node_of("third") == "node-2"


@pytest.mark.parametrize("kind", ["Service", "ReplicationController"])
def test_spreads_the_pods_of_a_service_or_controller_over_zones(kind: str) -> None:
    with Sandbox() as box:
        box.add_nodes(4, cpu="8", zones=("a", "b"))
        box.start_scheduler()
        meta = {"name": "web"}
        if kind == "Service":
            spec: Object = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
            box.apply({"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec})
            box.apply(*(pod(f"web-{i}", labels={"app": "web"}) for i in range(5)))
        else:
            template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]}
            spec = {"replicas": 5, "selector": {"app": "web"}, "template": template}
            box.apply({"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec})
        box.wait_until_running()
        zones = Counter(int(node.removeprefix("node-")) % 2 for node in box.placements().values())
        assert sorted(zones.values()) == [2, 3]
        if kind == "Service":
            box.advance(1)
            [subset] = box.get("endpoints", "web")["subsets"]
            assert len(subset["addresses"]) == 5
