from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.virtual_cluster import (
    PODS,
    VirtualCluster,
    conditions,
    container,
    pod,
    virtual_cluster,
    workload,
)

from mooring.client.errors import Forbidden
from mooring.cluster.apiserver.resources import CONFIG_MAPS, QUOTAS
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.deployments import DEPLOYMENTS
from mooring.cluster.controllers.replicasets import REPLICASETS


def quota(hard: dict[str, str], **spec: Any) -> Object:
    meta = {"name": "quota", "namespace": "default"}
    body = {"hard": hard, **spec}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": body}


def used(cluster: VirtualCluster) -> dict[str, str]:
    found: dict[str, str] = cluster.get(QUOTAS, "quota")["status"]["used"]
    return found


def test_counts_what_is_there_and_what_is_freed() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(pod("early", cpu="200m"))
        cluster.create(quota({"pods": "3", "requests.cpu": "1", "count/configmaps": "2"}))
        cluster.advance(1)
        status = cluster.get(QUOTAS, "quota")["status"]
        assert status["hard"] == {"pods": "3", "requests.cpu": "1", "count/configmaps": "2"}
        assert used(cluster) == {"pods": "1", "requests.cpu": "200m", "count/configmaps": "0"}
        cluster.create(pod("late", cpu="300m", annotations={"mooring.dev/duration": "5s"}))
        assert used(cluster)["requests.cpu"] == "500m"  # at once
        cluster.create(
            pod("once", restartPolicy="Never", annotations={"mooring.dev/duration": "5s"})
        )
        assert used(cluster)["pods"] == "3"
        cluster.advance(10)
        assert cluster.phases()["once"] == "Succeeded"
        assert used(cluster)["pods"] == "2"  # a finished pod uses nothing
        cluster.verbs.delete(PODS, "default", "early")
        cluster.advance(2)
        assert used(cluster) == {"pods": "1", "requests.cpu": "300m", "count/configmaps": "0"}


def test_follows_a_changed_limit() -> None:
    with virtual_cluster() as cluster:
        cluster.create(quota({"pods": "1"}))
        cluster.settle()
        cluster.create(pod("first"))
        with pytest.raises(
            Forbidden, match="exceeded quota: quota, requested: pods=1, used: pods=1"
        ):
            cluster.create(pod("second"))
        cluster.change(QUOTAS, "quota", hard={"pods": "2", "configmaps": "0"})
        cluster.settle()
        cluster.create(pod("second"))
        assert used(cluster) == {"pods": "2", "configmaps": "0"}
        meta = {"name": "m", "namespace": "default"}
        with pytest.raises(Forbidden, match="limited: configmaps=0"):
            cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        assert cluster.all(CONFIG_MAPS) == []


def test_a_deployment_says_that_its_pods_are_refused() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(quota({"pods": "2"}))
        cluster.settle()
        cluster.create(workload("Deployment", "web", replicas=3))
        cluster.advance(3)
        assert len(cluster.pods()) == 2
        [owner] = cluster.all(REPLICASETS)
        [failure] = owner["status"]["conditions"]
        assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
        assert "exceeded quota: quota, requested: pods=1, used: pods=2" in failure["message"]
        assert conditions(cluster.get(DEPLOYMENTS, "web"))["ReplicaFailure"] == "True"
        assert "is forbidden: exceeded quota" in cluster.events("FailedCreate")[0]["message"]
        cluster.change(QUOTAS, "quota", hard={"pods": "3"})
        cluster.advance(15)
        assert len(cluster.pods()) == 3
        assert "conditions" not in cluster.all(REPLICASETS)[0]["status"]
        assert "ReplicaFailure" not in conditions(cluster.get(DEPLOYMENTS, "web"))


def test_counts_only_pods_in_its_scopes() -> None:
    with virtual_cluster() as cluster:
        cluster.create(quota({"pods": "5"}, scopes=["BestEffort", "NotTerminating"]))
        cluster.settle()
        cluster.create(pod("burstable"))
        empty = {"containers": [{"name": "app", "image": "a"}]}
        cluster.create({**pod("free"), "spec": dict(empty)})
        cluster.create({**pod("short"), "spec": {**empty, "activeDeadlineSeconds": 5}})
        assert used(cluster) == {"pods": "1"}
        cluster.verbs.modify(QUOTAS, "default", "quota", lambda value: None)
        cluster.advance(301)  # counted anew
        assert used(cluster) == {"pods": "1"}


def test_charges_a_resize_and_gives_back() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(quota({"requests.cpu": "1"}))
        cluster.settle()
        cluster.create(pod("p", cpu="400m"))

        def resize(cpu: str) -> None:
            def change(value: Object) -> None:
                value["spec"]["containers"][0] |= {"resources": container(cpu)["resources"]}

            cluster.verbs.modify(PODS, "default", "p", change, subresource="resize")

        resize("900m")
        assert used(cluster) == {"requests.cpu": "900m"}
        with pytest.raises(Forbidden, match="exceeded quota"):
            resize("1100m")
        resize("100m")
        cluster.advance(1)
        assert used(cluster) == {"requests.cpu": "100m"}


def test_limit_ranges_apply_to_the_pods_of_workloads() -> None:
    limits = [{"type": "Container", "default": {"memory": "64Mi"}, "max": {"cpu": "500m"}}]
    meta = {"name": "limits", "namespace": "default"}
    value = {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}}
    with virtual_cluster() as cluster:
        cluster.create(value, workload("ReplicaSet", "web", replicas=1))
        cluster.settle()
        [made] = cluster.pods()
        assert made["spec"]["containers"][0]["resources"] == {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "500m", "memory": "64Mi"},
        }
        assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
            "LimitRanger plugin set: memory request for container app; "
            "cpu, memory limit for container app"
        )
        assert made["status"]["qosClass"] == "Burstable"
        big = pod("big", cpu="600m")
        big["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "600m"}
        with pytest.raises(Forbidden, match="maximum cpu usage per Container is 500m, but limit"):
            cluster.create(big)


def test_counts_a_pod_that_does_not_end_until_its_grace_is_over() -> None:
    with virtual_cluster(kubelets=False) as cluster:
        cluster.nodes(1)
        cluster.create(quota({"pods": "2"}))
        cluster.settle()
        cluster.create(pod("stuck", terminationGracePeriodSeconds=200))
        cluster.advance(1)
        cluster.verbs.delete(PODS, "default", "stuck")
        cluster.advance(100)
        assert used(cluster) == {"pods": "1"}
        cluster.advance(900)  # counted anew now and then
        assert cluster.pod_names() == ["stuck"]
        assert used(cluster) == {"pods": "0"}


def test_limits_nothing_once_it_is_deleted() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(quota({"pods": "1"}))
        cluster.settle()
        cluster.create(pod("first"))
        cluster.verbs.delete(QUOTAS, "default", "quota")
        cluster.create(pod("second"))
        cluster.verbs.delete(PODS, "default", "first")
        cluster.advance(60)
        assert cluster.pod_names() == ["second"]
        cluster.create(quota({"pods": "1"}))
        cluster.settle()
        assert used(cluster) == {"pods": "1"}
