from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.cluster.virtual_cluster import workload

import mooring.framework as fw
from mooring.api import core
from mooring.cluster.apiserver.store import Object
from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.cluster.node_templates import NodeTemplate
from mooring.testing import pod
from mooring.testing.sandbox import Sandbox

NO_FIT = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        disabled:
          - name: NodeResourcesFit
"""


def test_has_what_every_cluster_has() -> None:
    with Sandbox(storage_class=True) as box:
        namespaces = [value["metadata"]["name"] for value in box.all("namespaces")]
        assert namespaces == ["default", "kube-node-lease", "kube-public", "kube-system"]
        box.settle()
        assert len(box.all("serviceaccounts")) == 4
        [found] = box.all("sc")
        assert found["volumeBindingMode"] == "WaitForFirstConsumer"


def test_runs_a_deployment_from_the_manifest_to_the_last_pod() -> None:
    with Sandbox() as box:
        box.add_nodes(4, cpu="4", zones=("a", "b"))
        box.start_scheduler()
        box.apply(workload("Deployment", "web", replicas=8))
        box.wait_until_running(seconds=5)
        assert sorted(box.placements("app=web").values()) == sorted(
            2 * [f"node-{i}" for i in range(4)]
        )
        box.wait_until(lambda: box.get("deploy", "web")["status"]["availableReplicas"] == 8, 1)
        assert len(box.events(reason="Scheduled")) == 8


def test_binds_claims_that_wait_for_their_pods() -> None:
    template = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    with Sandbox(storage_class=True) as box:
        box.add_nodes(3, zones=("a", "b", "c"))
        box.start_scheduler()
        box.apply(workload("StatefulSet", "db", replicas=3, volumeClaimTemplates=[template]))
        box.wait_until(lambda: len(box.pods()) == 3)
        box.wait_until_running()
        assert {claim["status"]["phase"] for claim in box.all("pvc")} == {"Bound"}
        zones = {
            volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][
                0
            ]["values"][0]
            for volume in box.all("pv")
        }
        assert zones == {"a", "b", "c"}


def test_puts_one_daemon_on_every_node_through_the_scheduler() -> None:
    with Sandbox() as box:
        box.add_nodes(5)
        box.start_scheduler()
        box.apply(workload("DaemonSet", "agent"))
        box.wait_until_running()
        assert sorted(box.placements().values()) == [f"node-{i}" for i in range(5)]


def test_makes_room_for_what_is_more_important() -> None:
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    with Sandbox() as box:
        box.add_nodes(1, cpu="2")
        box.start_scheduler()
        box.apply(urgent, pod("low", cpu="2"))
        box.wait_until_running()
        high = pod("high", cpu="2", spec={"priorityClassName": "urgent"})
        box.apply(high)
        box.wait_until_running("high")
        assert box.pods() == ["high"]
        assert box.events("low", "Preempted")


def test_runs_jobs_one_after_the_other_if_there_is_no_room() -> None:
    said = {"mooring.dev/duration": "10s"}
    value = workload(
        "Job",
        "work",
        group="batch/v1",
        completions=3,
        parallelism=3,
        annotations=said,
        pod={"restartPolicy": "Never"},
    )
    value["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    with Sandbox() as box:
        box.add_nodes(1, cpu="1")
        box.start_scheduler()
        box.apply(value)
        box.wait_until(lambda: box.get("job", "work")["status"].get("succeeded") == 3)
        assert 30 < box.loop.time() < 60


def test_refuses_on_the_node_what_a_careless_scheduler_sends_there() -> None:
    with Sandbox() as box:
        box.add_nodes(1, cpu="1")
        box.start_scheduler(NO_FIT)
        box.apply(pod("small", cpu="1"))
        box.wait_until_running()
        box.apply(pod("large", cpu="2"))
        box.wait_until(lambda: box.phase_of("large") == "Failed", seconds=5)
        assert box.get("pod", "large")["status"]["reason"] == "OutOfcpu"
        assert box.events("large", "OutOfcpu")


def test_drains_when_pods_are_evicted() -> None:
    with Sandbox() as box:
        box.add_nodes(2)
        box.start_scheduler()
        box.apply(workload("Deployment", "web", replicas=4))
        box.wait_until_running()

        def cordon(node: Object) -> None:
            node["spec"]["unschedulable"] = True

        box.cluster.verbs.modify(*_named("node-0"), cordon)
        for name, node in box.placements().items():
            if node == "node-0":
                box.cluster.verbs.evict("default", name, {"metadata": {"name": name}})
        box.advance(5)
        assert set(box.placements().values()) == {"node-1"}
        assert len(box.pods()) == 4


def _named(node: str) -> tuple[Any, str, str]:
    from mooring.cluster.apiserver.resources import known

    return known("nodes"), "", node


# --- knobs -------------------------------------------------------------------------------------


def test_starts_no_pods_without_kubelets() -> None:
    with Sandbox(kubelets=False) as box:
        box.add_nodes(1)
        box.start_scheduler()
        box.apply(pod("p"))
        box.wait_until_bound()
        box.advance(60)
        assert box.phase_of("p") == "Pending"


def test_makes_no_pods_without_controllers() -> None:
    with Sandbox(controllers=False) as box:
        box.apply(workload("ReplicaSet", "web", replicas=2))
        box.advance(10)
        assert box.pods() == []


def test_runs_only_the_controllers_that_are_wanted() -> None:
    with Sandbox(controllers=["replicasets"]) as box:
        box.apply(workload("ReplicaSet", "web", replicas=2), workload("Deployment", "d"))
        box.advance(10)
        assert len(box.pods()) == 2
    with pytest.raises(ValueError, match="expected some of replicasets"):
        Sandbox(controllers=["replicaset"])


def test_tells_more_if_it_is_asked_to() -> None:
    with Sandbox(events=True) as box:
        box.add_nodes(1)
        box.start_scheduler()
        box.apply(workload("Deployment", "web", replicas=1))
        box.wait_until_running()
        reasons = {event.reason for event in box.events()}
        assert reasons >= {"ScalingReplicaSet", "SuccessfulCreate", "Scheduled", "Started"}


def test_does_the_same_again_with_the_same_seed() -> None:
    def cluster(seed: int) -> dict[str, str]:
        with Sandbox(seed=seed) as box:
            box.add_nodes(7, cpu="8")
            box.start_scheduler()
            box.apply(workload("Deployment", "web", replicas=20))
            box.wait_until_running()
            return box.placements()

    assert cluster(3) == cluster(3)
    assert cluster(3) != cluster(4)


def test_takes_nodes_from_templates() -> None:
    with Sandbox() as box:
        gpus = NodeTemplate(name="gpu-{i}", count=2, resources={"nvidia.com/gpu": 4})
        assert box.add_nodes(2) == ["node-0", "node-1"]
        assert box.add_nodes([gpus, NodeTemplate(name="big", cpu="64")]) == [
            "gpu-0",
            "gpu-1",
            "big",
        ]
        assert len(box.all("nodes")) == 5
        addresses = {node["status"]["addresses"][0]["address"] for node in box.all("nodes")}
        assert len(addresses) == 5


# --- schedulers --------------------------------------------------------------------------------


class Nowhere(fw.Filter):
    """Finds fault with every node."""

    name = "Nowhere"
    wakes_on = (fw.Event.NODE_ADDED,)
    NO = fw.Status.unschedulable("node(s) did not please")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return self.NO


SECOND = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: second
    plugins:
      multiPoint:
        enabled:
          - name: Nowhere
"""


def test_runs_schedulers_beside_each_other() -> None:
    with Sandbox() as box:
        box.add_nodes(2)
        box.start_scheduler()
        box.start_scheduler(SECOND, plugins=[Nowhere])
        box.apply(pod("mine"), pod("theirs", scheduler="second"))
        box.wait_until_running("mine")
        assert "2 node(s) did not please" in box.why("theirs")
        [event] = box.events("theirs", "FailedScheduling")
        assert event.source == "second"


def test_schedules_nothing_after_a_scheduler_was_stopped() -> None:
    with Sandbox() as box:
        box.add_nodes(1)
        running = box.start_scheduler()
        box.apply(pod("before"))
        box.wait_until_running()
        stopping = box.loop.create_task(running.stop())
        box.advance(5)
        assert stopping.done()
        box.apply(pod("after"))
        box.advance(60)
        assert box.node_of("after") == ""


# --- on a real loop ------------------------------------------------------------------------------


def test_works_on_a_real_loop() -> None:
    async def story() -> dict[str, int]:
        async with EmbeddedCluster(startup=0.0) as cluster:
            cluster.add_nodes(2)
            scheduler = await run_scheduler(cluster)
            cluster.apply(workload("Deployment", "web", replicas=3))
            await cluster.wait_for(lambda: cluster.count_pods("Running") == 3)
            found = await cluster.client().get(core.Node, "node-1")
            assert found.name == "node-1"
            await scheduler.stop()
            with pytest.raises(TimeoutError):
                await cluster.wait_for(lambda: False, seconds=0.0)
            return cluster.phases()

    assert asyncio.run(story()) == {"Running": 3}


def test_is_open_to_others_if_asked_to() -> None:
    async def ask() -> Any:
        async with EmbeddedCluster() as cluster:
            cluster.add_nodes(2)
            url = await cluster.serve(tls=False)
            host, _, port = url.removeprefix("http://").rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            assert cluster.http is not None
            head = f"Host: {host}\r\nAuthorization: Bearer {cluster.http.token}\r\n"
            request = f"GET /api/v1/nodes HTTP/1.1\r\n{head}Connection: close\r\n\r\n"
            writer.write(request.encode())
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            return json.loads(answer.partition(b"\r\n\r\n")[2])

    names = [node["metadata"]["name"] for node in asyncio.run(ask())["items"]]
    assert names == ["node-0", "node-1"]
