"""What a kubelet does besides starting pods: changed specs, deadlines, hooks, ends of Jobs."""

from __future__ import annotations

from typing import Any

from tests.cluster.virtual_cluster import (
    NODES,
    PODS,
    VirtualCluster,
    container,
    pod,
    virtual_cluster,
    workload,
)

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.jobs import JOBS
from mooring.cluster.kubelet.kubelet import Kubelets


def status(cluster: VirtualCluster, name: str = "p") -> Object:
    found: Object = cluster.get(PODS, name)["status"]
    return found


def change(cluster: VirtualCluster, subresource: str = "", **spec: Any) -> None:
    def write(value: Object) -> None:
        value["spec"] |= spec

    cluster.verbs.modify(PODS, "default", "p", write, subresource=subresource)


def test_reports_the_resources_of_containers_and_their_resize() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, cpu=1)
        cluster.create(pod("p", cpu="200m", node="n0"), pod("q", cpu="800m", node="n0"))
        cluster.advance(2)
        [seen] = status(cluster)["containerStatuses"]
        assert seen["resources"] == {"requests": {"cpu": "200m"}}
        assert seen["allocatedResources"] == {"cpu": "200m"}
        change(cluster, "resize", containers=[container("100m")])
        cluster.advance(1)
        [seen] = status(cluster)["containerStatuses"]
        assert seen["resources"] == {"requests": {"cpu": "100m"}}
        assert status(cluster)["observedGeneration"] == 2
        cluster.create(pod("r", cpu="100m", node="n0"))  # what was freed may be used
        cluster.advance(2)
        assert cluster.phases()["r"] == "Running"


def test_keeps_the_observed_generation_up() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(pod("p", node="n0"))
        cluster.advance(2)
        assert status(cluster)["observedGeneration"] == 1
        change(cluster, containers=[{**container(), "image": "app:2"}])
        cluster.advance(1)
        assert cluster.get(PODS, "p")["metadata"]["generation"] == 2
        assert status(cluster)["observedGeneration"] == 2
        assert status(cluster)["containerStatuses"][0]["image"] == "app:2"


def test_starts_ephemeral_containers() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(pod("p", node="n0"))
        cluster.advance(2)
        added = {"name": "debug", "image": "busybox", "terminationMessagePolicy": "File"}
        change(cluster, "ephemeralcontainers", ephemeralContainers=[added])
        cluster.advance(1)
        [seen] = status(cluster)["ephemeralContainerStatuses"]
        assert seen["name"] == "debug"
        assert "running" in seen["state"]


def test_ends_ephemeral_containers_with_their_pod() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        lasts = {"mooring.dev/duration": "10s"}
        cluster.create(pod("p", node="n0", restartPolicy="Never", annotations=lasts))
        cluster.advance(2)
        added = {"name": "debug", "image": "busybox", "terminationMessagePolicy": "File"}
        change(cluster, "ephemeralcontainers", ephemeralContainers=[added])
        cluster.advance(20)
        assert status(cluster)["phase"] == "Succeeded"
        [seen] = status(cluster)["ephemeralContainerStatuses"]
        assert seen["state"]["terminated"]["exitCode"] == 0


def test_fails_a_pod_after_its_deadline() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(pod("p", node="n0"), pod("q", node="n0", activeDeadlineSeconds=20))
        cluster.advance(10)
        change(cluster, activeDeadlineSeconds=5)  # that is over
        cluster.advance(1)
        assert status(cluster)["phase"] == "Failed"
        assert status(cluster)["reason"] == "DeadlineExceeded"
        assert cluster.phases()["q"] == "Running"
        cluster.advance(10)
        assert cluster.phases()["q"] == "Failed"


def test_waits_for_a_pre_stop_hook_within_the_grace_period() -> None:
    hooked = {**container(), "lifecycle": {"preStop": {"sleep": {"seconds": 10}}}}
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(
            pod("p", node="n0", containers=[hooked]),
            pod("short", node="n0", containers=[hooked], terminationGracePeriodSeconds=4),
        )
        cluster.advance(2)
        cluster.verbs.delete(PODS, "default", "p")
        cluster.verbs.delete(PODS, "default", "short")
        cluster.advance(3)
        assert cluster.pod_names() == ["p", "short"]
        cluster.advance(2)
        assert cluster.pod_names() == ["p"]
        cluster.advance(6)
        assert cluster.pod_names() == []


def test_ends_the_pods_of_jobs_after_a_default_time() -> None:
    with virtual_cluster(kubelets=False) as cluster:
        cluster.kubelets = Kubelets(cluster._component, jitter=0.0, job_duration=5.0)
        cluster.loop.call_soon(cluster.kubelets.start)
        cluster.nodes(1)
        once = {"restartPolicy": "Never"}
        longer = {"mooring.dev/duration": "1h"}
        cluster.create(
            workload("Job", "quick", group="batch/v1", pod=once),
            workload("Job", "slow", group="batch/v1", pod=once, annotations=longer),
            pod("p", node="n0", restartPolicy="Never"),
        )
        cluster.advance(8)
        assert cluster.get(JOBS, "quick")["status"]["succeeded"] == 1
        assert "succeeded" not in cluster.get(JOBS, "slow")["status"]
        assert cluster.phases()["p"] == "Running"


def node(name: str, **parts: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **parts}


def test_fills_in_what_a_node_does_not_say() -> None:
    with virtual_cluster() as cluster:
        cluster.create(node("bare"))
        cluster.create(node("some", status={"capacity": {"cpu": "3", "example.com/gpu": "2"}}))
        cluster.settle()
        bare, some = cluster.get(NODES, "bare"), cluster.get(NODES, "some")
        assert bare["status"]["allocatable"]["cpu"] == "4"
        assert bare["metadata"]["labels"]["kubernetes.io/hostname"] == "bare"
        ready = bare["status"]["conditions"][-1]
        assert (ready["type"], ready["status"]) == ("Ready", "True")
        kinds = {one["type"]: one["address"] for one in bare["status"]["addresses"]}
        assert kinds["Hostname"] == "bare"
        assert kinds["InternalIP"] != some["status"]["addresses"][0]["address"]
        assert some["status"]["capacity"]["cpu"] == "3"
        assert some["status"]["allocatable"]["example.com/gpu"] == "2"
        assert some["status"]["allocatable"]["memory"] == "16Gi"
        cluster.create(pod("p", cpu="3", node="some"))
        cluster.advance(2)
        assert cluster.phases() == {"p": "Running"}


def test_offers_extended_resources_as_soon_as_a_node_has_them() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1, reserved={"cpu": "1"})

        def set_capacity(amounts: dict[str, str]) -> dict[str, str]:
            def write(value: Object) -> None:
                kept = {"cpu", "memory", "pods", "ephemeral-storage"}
                known = value["status"]["capacity"]
                base = {name: known[name] for name in kept}
                value["status"]["capacity"] = {**base, **amounts}

            cluster.verbs.modify(NODES, "", "n0", write, subresource="status")
            cluster.settle()
            found: dict[str, str] = cluster.get(NODES, "n0")["status"]["allocatable"]
            return found

        allocatable = set_capacity({"example.com/beard": "1"})
        assert (allocatable["example.com/beard"], allocatable["cpu"]) == ("1", "3")
        assert "example.com/beard" not in set_capacity({})


def test_leaves_a_node_alone_that_is_not_ready() -> None:
    with virtual_cluster() as cluster:
        down = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
        cluster.create(node("down", status=down))
        cluster.settle()
        assert "capacity" not in cluster.get(NODES, "down")["status"]
