from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.virtual_cluster import PODS, pod, virtual_cluster, workload

from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.deployments import DEPLOYMENTS, REVISION
from mooring.cluster.controllers.replicasets import REPLICASETS

CONTROLLERS = known("replicationcontrollers")
WEB = {"app": "web"}


def owners(value: Object) -> list[str]:
    return [one["name"] for one in value["metadata"].get("ownerReferences", ())]


def owner(kind: str, **spec: Any) -> Object:
    if kind == "ReplicationController":
        made = workload(kind, "web", group="v1", **spec)
        made["spec"]["selector"] = WEB
        return made
    return workload(kind, "web", **spec)


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_adopts_pods_that_match_and_releases_them(kind: str) -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(pod("mine", labels=WEB), pod("other", labels={"app": "x"}))
        cluster.create(owner(kind, replicas=1))
        cluster.advance(1)
        assert cluster.pod_names() == ["mine", "other"]  # none was made
        assert owners(cluster.get(PODS, "mine")) == ["web"]
        assert owners(cluster.get(PODS, "other")) == []
        # A later orphan is adopted, too: one is too many now.
        cluster.create(pod("late", labels=WEB))
        cluster.advance(1)
        assert len([one for one in cluster.pods() if owners(one)]) == 1
        [kept] = [one["metadata"]["name"] for one in cluster.pods() if owners(one)]

        def relabel(value: Object) -> None:
            value["metadata"]["labels"] = {"app": "free"}

        cluster.verbs.modify(PODS, "default", kept, relabel)
        cluster.advance(1)
        assert owners(cluster.get(PODS, kept)) == []
        assert len([one for one in cluster.pods() if owners(one)]) == 1


def test_a_job_adopts_its_pod_again_and_releases_it() -> None:
    template = {
        "metadata": {"annotations": {"mooring.dev/duration": "1h"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once"},
        "spec": {"template": template},
    }
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(job)
        cluster.advance(1)
        [first] = cluster.pod_names()

        def orphan(value: Object) -> None:
            del value["metadata"]["ownerReferences"]

        cluster.verbs.modify(PODS, "default", first, orphan)
        cluster.advance(1)
        assert cluster.pod_names() == [first]  # none was made in its place
        assert owners(cluster.get(PODS, first)) == ["once"]

        def relabel(value: Object) -> None:
            value["metadata"]["labels"] = {"app": "free"}

        cluster.verbs.modify(PODS, "default", first, relabel)
        cluster.advance(1)
        assert owners(cluster.get(PODS, first)) == []
        [second] = [name for name in cluster.pod_names() if name != first]
        assert owners(cluster.get(PODS, second)) == ["once"]


def test_a_deployment_adopts_a_replica_set_and_rolls_over_from_it() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        old = workload("ReplicaSet", "old", replicas=2, image="app:0")
        old["spec"]["selector"]["matchLabels"] = WEB
        old["spec"]["template"]["metadata"]["labels"] = WEB
        old["metadata"] |= {"labels": WEB, "annotations": {REVISION: "41"}}
        cluster.create(old)
        cluster.advance(1)
        cluster.create(workload("Deployment", "web", replicas=2))
        cluster.advance(10)
        assert owners(cluster.get(REPLICASETS, "old")) == ["web"]
        assert cluster.get(REPLICASETS, "old")["spec"]["replicas"] == 0
        [new] = [one for one in cluster.all(REPLICASETS) if one["metadata"]["name"] != "old"]
        assert new["metadata"]["annotations"][REVISION] == "42"
        assert cluster.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 2


def test_scales_in_proportion_during_a_rollout() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        cluster.create(workload("Deployment", "web", replicas=10, strategy=rolling))
        cluster.advance(5)

        def break_it(value: Object) -> None:
            template = value["spec"]["template"]
            template["metadata"]["annotations"] = {"mooring.dev/startup": "1h"}
            template["spec"]["containers"][0]["image"] = "app:2"

        cluster.verbs.modify(DEPLOYMENTS, "default", "web", break_it)
        cluster.advance(5)

        def sizes() -> list[int]:
            found = [one["spec"]["replicas"] for one in cluster.all(REPLICASETS)]
            return sorted(found)

        assert sizes() == [5, 8]
        cluster.change(DEPLOYMENTS, "web", replicas=30)
        cluster.advance(2)
        assert sizes() == [13, 20]  # as upstream's own test of proportional scaling expects
