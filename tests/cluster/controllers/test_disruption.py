from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.virtual_cluster import (
    VirtualCluster,
    conditions,
    pod,
    virtual_cluster,
    workload,
)

from mooring.client.errors import TooManyRequests
from mooring.cluster.apiserver.resources import BUDGETS
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.deployments import DEPLOYMENTS


def budget(**spec: Any) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def evict(cluster: VirtualCluster, name: str) -> None:
    cluster.verbs.evict("default", name, {"metadata": {"name": name}})


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 3}, 3, 1),
        ({"minAvailable": 9}, 9, 0),
        ({"minAvailable": "50%"}, 2, 2),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "60%"}, 1, 3),
        ({"maxUnavailable": 0}, 4, 0),
    ],
)
def test_counts_how_many_may_be_evicted(spec: Object, desired: int, allowed: int) -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=4), budget(**spec))
        cluster.advance(1)
        status = cluster.get(BUDGETS, "web")["status"]
        assert status["currentHealthy"] == status["expectedPods"] == 4
        assert status["desiredHealthy"] == desired
        assert status["disruptionsAllowed"] == allowed
        assert status["observedGeneration"] == 1
        wanted = "True" if allowed else "False"
        assert conditions(cluster.get(BUDGETS, "web")) == {"DisruptionAllowed": wanted}


def test_allows_one_eviction_after_the_other() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=3), budget(maxUnavailable=1))
        cluster.advance(1)
        first, second, _ = cluster.pod_names()
        evict(cluster, first)
        cluster.settle()
        with pytest.raises(TooManyRequests):
            evict(cluster, second)
        cluster.advance(3)
        evict(cluster, second)
        cluster.advance(3)
        assert cluster.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 3
        assert "disruptedPods" not in cluster.get(BUDGETS, "web")["status"]


def test_expects_what_the_controllers_ask_for() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=2), budget(maxUnavailable=1))
        cluster.advance(1)
        cluster.change(DEPLOYMENTS, "web", replicas=10)
        cluster.settle()
        cluster.advance(0.1)
        status = cluster.get(BUDGETS, "web")["status"]
        assert (status["expectedPods"], status["disruptionsAllowed"]) == (10, 0)


def test_counts_an_allowed_eviction_until_the_pod_goes() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=3), budget(maxUnavailable=1))
        cluster.advance(1)
        name = cluster.pod_names()[0]

        def note(value: Object) -> None:  # as an API server does before it deletes the pod
            value["status"]["disruptedPods"] = {name: cluster.verbs.now()}

        cluster.verbs.modify(BUDGETS, "default", "web", note, subresource="status")
        cluster.advance(1)
        status = cluster.get(BUDGETS, "web")["status"]
        assert list(status["disruptedPods"]) == [name]
        assert (status["currentHealthy"], status["disruptionsAllowed"]) == (2, 0)
        cluster.advance(120)  # it was not deleted after all
        status = cluster.get(BUDGETS, "web")["status"]
        assert "disruptedPods" not in status
        assert status["disruptionsAllowed"] == 1


def test_expects_nothing_of_pods_without_a_controller() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(budget(maxUnavailable=1), pod("alone", labels={"app": "web"}))
        cluster.advance(1)
        status = cluster.get(BUDGETS, "web")["status"]
        assert (status["expectedPods"], status["disruptionsAllowed"]) == (0, 0)


def test_expects_what_a_controller_without_an_owner_asks_for() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload("StatefulSet", "web", replicas=2), budget(minAvailable="50%"))
        cluster.advance(5)
        status = cluster.get(BUDGETS, "web")["status"]
        assert (status["expectedPods"], status["desiredHealthy"]) == (2, 1)


def test_forgets_a_budget_that_is_deleted() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload("Deployment", "web", replicas=1), budget(minAvailable=1))
        cluster.advance(1)
        [only] = cluster.pod_names()
        with pytest.raises(TooManyRequests):
            evict(cluster, only)
        cluster.verbs.delete(BUDGETS, "default", "web")
        evict(cluster, only)
        cluster.advance(60)
        assert only not in cluster.pod_names()
