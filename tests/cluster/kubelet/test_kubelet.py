from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.virtual_cluster import (
    NODES,
    PODS,
    VirtualCluster,
    conditions,
    container,
    pod,
    virtual_cluster,
)

from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.node_templates import NodeTemplate, make_nodes


def lone(**options: Any) -> Any:
    """A cluster with kubelets only."""
    return virtual_cluster(controllers=(), binds=False, **options)


def status(cluster: VirtualCluster, name: str) -> Object:
    found: Object = cluster.get(PODS, name)["status"]
    return found


def test_starts_a_bound_pod_after_a_while() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p"))
        cluster.advance(10)
        assert status(cluster, "p")["phase"] == "Pending"
        assert "startTime" not in status(cluster, "p")
        cluster.bind("p", "n0")
        cluster.advance(0.1)
        seen = status(cluster, "p")
        assert seen["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
        assert conditions(cluster.get(PODS, "p")) == {
            "PodScheduled": "True",
            "PodReadyToStartContainers": "False",
            "Initialized": "True",
            "ContainersReady": "False",
            "Ready": "False",
        }
        cluster.advance(0.5)
        seen = status(cluster, "p")
        assert seen["phase"] == "Running"
        assert seen["hostIP"] == "172.16.0.1"
        assert seen["podIP"].startswith("10.0.0.")
        assert set(conditions(cluster.get(PODS, "p")).values()) == {"True"}


def test_takes_as_long_as_the_pod_says() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0", annotations={"mooring.dev/startup": "20s"}))
        cluster.advance(19.9)
        assert cluster.phases() == {"p": "Pending"}
        cluster.advance(0.2)
        assert cluster.phases() == {"p": "Running"}


def test_starts_pods_that_were_bound_before_it_came() -> None:
    with virtual_cluster(controllers=(), binds=False, kubelets=False) as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0"))
        cluster.loop.call_soon(cluster.kubelets.start)
        cluster.advance(1)
        assert cluster.phases() == {"p": "Running"}


def test_goes_on_with_pods_that_ran_under_kubelets_before_it() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0", annotations={"mooring.dev/duration": "1m"}, **NEVER))
        cluster.advance(1)
        cluster.kubelets.close()
        cluster.advance(600)
        cluster.restart_kubelets()
        cluster.advance(1)
        assert cluster.phases() == {"p": "Running"}
        cluster.advance(60)
        assert cluster.phases() == {"p": "Succeeded"}


NEVER: dict[str, Any] = {"restartPolicy": "Never"}


# --- admission ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "reason", "numbers"),
    [
        ({"cpu": "1"}, "OutOfcpu", "cpu, requested: 1000, used: 3500, capacity: 4000"),
        (
            {"cpu": "0", "memory": "1Gi"},
            "OutOfmemory",
            "memory, requested: 1073741824, used: 16642998272, capacity: 17179869184",
        ),
        (
            {"cpu": "0", "nvidia.com/gpu": "2"},
            "OutOfnvidia.com/gpu",
            "nvidia.com/gpu, requested: 2, used: 1, capacity: 2",
        ),
    ],
)
def test_refuses_what_does_not_fit_any_more(
    requests: dict[str, str], reason: str, numbers: str
) -> None:
    with lone() as cluster:
        cluster.nodes(cpu="4", memory="16Gi", resources={"nvidia.com/gpu": 2})
        full = container("3500m", memory="15872Mi", **{"nvidia.com/gpu": "1"})
        full["resources"]["limits"] = {"nvidia.com/gpu": "1"}
        cluster.create(pod("first", node="n0", containers=[full]))
        cluster.advance(1)
        asked = container("0")
        asked["resources"]["requests"] = requests
        scalars = {key: value for key, value in requests.items() if "/" in key}
        asked["resources"]["limits"] = scalars
        cluster.create(pod("second", node="n0", containers=[asked]))
        cluster.advance(1)
        assert cluster.phases() == {"first": "Running", "second": "Failed"}
        seen = status(cluster, "second")
        assert seen["reason"] == reason
        message = f"Node didn't have enough resource: {numbers}"
        assert seen["message"] == f"Pod was rejected: {message}"
        [event] = cluster.events(reason)
        assert (event["type"], event["message"]) == ("Warning", message)
        assert event["source"] == {"component": "kubelet", "host": "n0"}


def test_refuses_one_pod_more_than_a_node_takes() -> None:
    with lone() as cluster:
        cluster.nodes(pods=2)
        cluster.create(*(pod(f"p{i}", node="n0", cpu="0") for i in range(3)))
        cluster.advance(1)
        assert sorted(cluster.phases().values()) == ["Failed", "Running", "Running"]
        [refused] = [one for one in cluster.pods() if one["status"]["phase"] == "Failed"]
        assert refused["status"]["message"] == (
            "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2,"
            " capacity: 2"
        )


def test_ignores_extended_resources_that_the_node_does_not_know() -> None:
    with lone() as cluster:
        cluster.nodes()
        asked = container()
        asked["resources"] = {name: {"acme.com/token": "9"} for name in ("requests", "limits")}
        cluster.create(pod("p", node="n0", containers=[asked]))
        cluster.advance(1)
        assert cluster.phases() == {"p": "Running"}


def test_has_room_again_when_a_pod_is_over_or_gone() -> None:
    with lone() as cluster:
        cluster.nodes(cpu="1")
        short = {"mooring.dev/duration": "1s"}
        cluster.create(pod("short", node="n0", cpu="1", annotations=short, **NEVER))
        cluster.advance(2)
        cluster.create(pod("second", node="n0", cpu="1"))
        cluster.advance(1)
        assert cluster.phases() == {"short": "Succeeded", "second": "Running"}
        cluster.verbs.delete(PODS, "default", "second")
        cluster.advance(1)
        cluster.create(pod("third", node="n0", cpu="1"))
        cluster.advance(1)
        assert cluster.phases() == {"short": "Succeeded", "third": "Running"}


def test_refuses_a_pod_that_asks_for_other_nodes() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0", nodeSelector={"disk": "ssd"}))
        cluster.advance(0.1)
        assert status(cluster, "p")["reason"] == "NodeAffinity"
        assert status(cluster, "p")["message"] == (
            "Pod was rejected: Predicate NodeAffinity failed:"
            " node(s) didn't match Pod's node affinity/selector"
        )


def test_refuses_a_pod_of_another_operating_system() -> None:
    with lone() as cluster:
        cluster.nodes()
        gate = {"type": "example.com/ready", "status": "True"}
        value = pod("p", os={"name": "windows"})
        cluster.create(value)

        def report(current: Object) -> None:
            current["status"]["conditions"] = [gate]

        cluster.verbs.modify(PODS, "default", "p", report, subresource="status")
        cluster.bind("p", "n0")
        cluster.advance(1)
        seen = status(cluster, "p")
        assert (seen["phase"], seen["reason"]) == ("Failed", "PodOSNotSupported")
        assert conditions(cluster.get(PODS, "p")) == {"example.com/ready": "True"}  # not its own


def test_refuses_a_pod_whose_port_is_taken() -> None:
    with lone() as cluster:
        cluster.nodes()
        ports = [{"containerPort": 80, "hostPort": 80}]
        for name in ("first", "second"):
            cluster.create(pod(name, node="n0", containers=[{**container(), "ports": ports}]))
        cluster.advance(1)
        assert cluster.phases() == {"first": "Running", "second": "Failed"}
        assert status(cluster, "second")["reason"] == "NodePorts"


def test_refuses_a_pod_that_does_not_tolerate_being_evicted() -> None:
    with lone() as cluster:
        cluster.nodes(taints=("sick:NoExecute",))
        cluster.create(pod("p", node="n0"))
        cluster.advance(0.1)
        assert status(cluster, "p")["reason"] == "TaintToleration"


# --- ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
def test_ends_as_the_pod_says(code: str, phase: str) -> None:
    with lone() as cluster:
        cluster.nodes()
        said = {"mooring.dev/duration": "30s", "mooring.dev/exit-code": code}
        cluster.create(pod("p", node="n0", annotations=said, **NEVER))
        cluster.advance(30)
        assert cluster.phases() == {"p": "Running"}
        cluster.advance(1)
        assert cluster.phases() == {"p": phase}
        ended = status(cluster, "p")["containerStatuses"][0]["state"]["terminated"]
        assert ended["exitCode"] == int(code)
        assert ended["reason"] == ("Completed" if code == "0" else "Error")
        assert conditions(cluster.get(PODS, "p"))["Ready"] == "False"


def test_runs_a_failed_container_again_until_it_succeeds() -> None:
    with lone() as cluster:
        cluster.nodes()
        said = {"mooring.dev/duration": "1s", "mooring.dev/exit-code": "1,1,0"}
        cluster.create(pod("p", node="n0", annotations=said, restartPolicy="OnFailure"))
        cluster.advance(3)  # it has run twice; the first time it was run again at once
        [seen] = status(cluster, "p")["containerStatuses"]
        assert (seen["restartCount"], seen["ready"]) == (1, False)
        assert seen["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert seen["lastState"]["terminated"]["exitCode"] == 1
        assert cluster.phases() == {"p": "Running"}
        cluster.advance(12)
        assert cluster.phases() == {"p": "Succeeded"}
        assert status(cluster, "p")["containerStatuses"][0]["restartCount"] == 2


def test_waits_longer_each_time_before_it_runs_a_container_again() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0", annotations={"mooring.dev/duration": "0s"}))
        counts = []
        for _ in range(8):
            cluster.advance(10)
            counts.append(status(cluster, "p")["containerStatuses"][0]["restartCount"])
        assert counts == [1, 2, 2, 3, 3, 3, 3, 4]


def test_ignores_annotations_that_make_no_sense(caplog: pytest.LogCaptureFixture) -> None:
    with lone() as cluster, caplog.at_level(logging.WARNING):
        cluster.nodes()
        said = {"mooring.dev/startup": "soon", "mooring.dev/exit-code": "bad"}
        cluster.create(pod("p", node="n0", annotations=said))
        cluster.advance(1)
        assert cluster.phases() == {"p": "Running"}
    assert len(caplog.records) == 2


# --- deletion ----------------------------------------------------------------------------------


def test_gives_a_pod_time_to_stop() -> None:
    with lone() as cluster:
        cluster.nodes()
        slow = {"mooring.dev/stop": "8s"}
        cluster.create(pod("quick", node="n0"), pod("slow", node="n0", annotations=slow))
        cluster.create(pod("stubborn", node="n0", annotations={"mooring.dev/stop": "2m"}))
        cluster.advance(1)
        for name in cluster.pod_names():
            cluster.verbs.delete(PODS, "default", name)
        cluster.settle()
        assert len(cluster.pods()) == 3
        cluster.advance(0.3)
        assert cluster.pod_names() == ["slow", "stubborn"]
        cluster.advance(8)
        assert cluster.pod_names() == ["stubborn"]
        cluster.advance(22)  # the grace period is over
        assert cluster.pod_names() == []


def test_stops_sooner_if_the_grace_is_cut_short() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0", annotations={"mooring.dev/stop": "1m"}))
        cluster.advance(1)
        cluster.verbs.delete(PODS, "default", "p", grace=50)
        cluster.advance(1)
        cluster.verbs.delete(PODS, "default", "p", grace=3)
        cluster.advance(3)
        assert cluster.pod_names() == []


def test_removes_a_pod_that_never_got_to_run() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0", annotations={"mooring.dev/startup": "1h"}))
        cluster.settle()
        cluster.verbs.delete(PODS, "default", "p")
        cluster.advance(1)
        assert cluster.pod_names() == []


def test_does_not_confuse_a_pod_with_its_namesake() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0", annotations={"mooring.dev/startup": "10s"}))
        cluster.advance(1)
        cluster.verbs.delete(PODS, "default", "p", grace=0)
        cluster.create(pod("p", node="n0", annotations={"mooring.dev/startup": "30s"}))
        cluster.advance(15)
        assert cluster.phases() == {"p": "Pending"}
        cluster.advance(16)
        assert cluster.phases() == {"p": "Running"}


# --- machines ----------------------------------------------------------------------------------


def test_waits_for_a_node_that_is_not_there_yet() -> None:
    with lone() as cluster:
        cluster.create(pod("p", node="late"))
        cluster.advance(60)
        assert cluster.phases() == {"p": "Pending"}
        cluster.create(*make_nodes([NodeTemplate(name="late")]))
        cluster.advance(1)
        assert cluster.phases() == {"p": "Running"}


def test_does_nothing_on_a_node_that_does_not_report() -> None:
    def report(value: Object, is_ready: str) -> None:
        value["status"]["conditions"][-1]["status"] = is_ready

    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("old", node="n0"))
        cluster.advance(1)
        cluster.verbs.modify(NODES, "", "n0", lambda n: report(n, "Unknown"), subresource="status")
        cluster.create(pod("new", node="n0"))
        cluster.verbs.delete(PODS, "default", "old")
        cluster.advance(60)
        assert cluster.phases() == {"old": "Running", "new": "Pending"}
        cluster.verbs.modify(NODES, "", "n0", lambda n: report(n, "True"), subresource="status")
        cluster.advance(1)
        assert cluster.phases() == {"new": "Running"}


def test_forgets_the_pods_of_a_node_that_is_gone() -> None:
    with lone() as cluster:
        cluster.nodes()
        cluster.create(pod("p", node="n0"))
        cluster.advance(1)
        cluster.verbs.delete(NODES, "", "n0")
        cluster.verbs.delete(PODS, "default", "p")
        cluster.advance(60)
        assert cluster.pod_names() == ["p"]  # no kubelet runs that could end it


def test_gives_every_pod_an_address_of_its_own() -> None:
    with lone() as cluster:
        cluster.nodes(2)
        for i in range(40):
            cluster.create(pod(f"p{i}", node=f"n{i % 2}", cpu="0"))
        cluster.create(pod("host", node="n0", hostNetwork=True))
        cluster.advance(1)
        addresses = {one["metadata"]["name"]: one["status"]["podIP"] for one in cluster.pods()}
        assert addresses.pop("host") == "172.16.0.1"
        assert len(set(addresses.values())) == 40


def test_shows_init_containers_and_sidecars() -> None:
    with lone() as cluster:
        cluster.nodes()
        sidecar = {**container(), "name": "proxy", "restartPolicy": "Always"}
        init = [{**container(), "name": "setup"}, sidecar]
        cluster.create(pod("p", node="n0", initContainers=init))
        cluster.advance(0.1)
        assert conditions(cluster.get(PODS, "p"))["Initialized"] == "False"
        cluster.advance(1)
        setup, proxy = status(cluster, "p")["initContainerStatuses"]
        assert "terminated" in setup["state"]
        assert "running" in proxy["state"]
        assert conditions(cluster.get(PODS, "p"))["Initialized"] == "True"


def test_starts_many_pods_at_once_without_holding_up_the_loop() -> None:
    with lone() as cluster:
        cluster.nodes(10, cpu="64", pods=200)
        writes: list[int] = []  # between two turns of others

        def hear(change: StoreChange) -> None:
            if change.type == "MODIFIED":
                writes[-1] += 1
                if writes[-1] == 1:
                    cluster.loop.call_soon(writes.append, 0)

        cluster.create(*(pod(f"p{i}", node=f"n{i % 10}") for i in range(1000)))
        writes.append(0)
        cluster.store.listen(hear)
        cluster.advance(2)
        assert set(cluster.phases().values()) == {"Running"}
        assert sum(writes) == 2000
        assert max(writes) <= 200


def test_does_not_make_others_suffer_for_what_it_cannot_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with lone() as cluster:
        cluster.nodes()
        [odd] = make_nodes([NodeTemplate(name="odd")], first=1)
        odd["metadata"]["uid"] = "odd"
        odd["status"]["addresses"] = "nowhere"
        cluster.store.put(NODES, odd)
        assert "failed on a change" in caplog.text
        cluster.create(pod("p", node="n0"))
        cluster.advance(1)
        assert cluster.phases() == {"p": "Running"}


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["bind", "delete", "wait"]), st.integers(0, 15)), max_size=40
    )
)
def test_never_runs_more_than_a_machine_has(steps: list[tuple[str, int]]) -> None:
    with lone() as cluster:
        cluster.nodes(cpu="1")
        for count, (what, number) in enumerate(steps):
            if what == "bind":
                cluster.create(pod(f"p{count}", node="n0", cpu=f"{number * 100}m"))
            elif what == "delete" and number < len(cluster.pods()):
                cluster.verbs.delete(PODS, "default", cluster.pod_names()[number])
            elif what == "wait":
                cluster.advance(number / 20)
            asked = [
                int(one["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))
                for one in cluster.pods()
                if one["status"]["phase"] == "Running"
            ]
            assert sum(asked) <= 1000
        cluster.advance(60)
        living = [one for one in cluster.pods() if one["status"]["phase"] != "Failed"]
        assert all(one["status"]["phase"] == "Running" for one in living)
        assert all("deletionTimestamp" not in one["metadata"] for one in cluster.pods())
