from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.virtual_cluster import PODS, VirtualCluster, virtual_cluster, workload

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.deployments import DEPLOYMENTS, HASH, REVISION
from mooring.cluster.controllers.replicasets import REPLICASETS


def rollout(cluster: VirtualCluster, name: str = "web") -> Object:
    """What `kubectl rollout status` looks at."""
    found: Object = cluster.get(DEPLOYMENTS, name)["status"]
    return found


def set_image(cluster: VirtualCluster, image: str, name: str = "web") -> None:
    def change(value: Object) -> None:
        value["spec"]["template"]["spec"]["containers"][0]["image"] = image

    cluster.verbs.modify(DEPLOYMENTS, "default", name, change)


def images(cluster: VirtualCluster) -> list[str]:
    return [
        pod["spec"]["containers"][0]["image"]
        for pod in cluster.pods()
        if "deletionTimestamp" not in pod["metadata"]
    ]


def progress(cluster: VirtualCluster) -> tuple[str, str]:
    conditions = rollout(cluster)["conditions"]
    [found] = [one for one in conditions if one["type"] == "Progressing"]
    return found["status"], found["reason"]


def test_rolls_a_new_deployment_out() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=3))
        cluster.settle()
        [made] = cluster.all(REPLICASETS)
        mark = made["metadata"]["labels"][HASH]
        assert made["metadata"]["name"] == f"web-{mark}"
        assert made["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: mark}
        assert made["metadata"]["annotations"][REVISION] == "1"
        assert cluster.get(DEPLOYMENTS, "web")["metadata"]["annotations"][REVISION] == "1"
        assert {pod["metadata"]["labels"][HASH] for pod in cluster.pods()} == {mark}
        assert progress(cluster)[0] == "True"
        cluster.advance(1)
        found = cluster.get(DEPLOYMENTS, "web")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        assert found["status"]["availableReplicas"] == 3
        assert progress(cluster) == ("True", "NewReplicaSetAvailable")


def test_scales_up_and_down() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=2))
        cluster.advance(1)
        for size in (6, 1, 0, 3):
            cluster.change(DEPLOYMENTS, "web", replicas=size)
            cluster.advance(1)
            assert len(cluster.pods()) == size
            assert rollout(cluster).get("availableReplicas", 0) == size
        assert len(cluster.all(REPLICASETS)) == 1


@pytest.mark.parametrize(
    ("surge", "missing"), [("25%", "25%"), (1, 0), (0, 1), ("50%", 0), (0, "100%"), (3, 2)]
)
def test_keeps_within_its_limits_while_it_rolls(surge: Any, missing: Any) -> None:
    size = 6
    limits = {"maxSurge": surge, "maxUnavailable": missing}
    strategy = {"type": "RollingUpdate", "rollingUpdate": limits}
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=size, strategy=strategy))
        cluster.advance(1)
        set_image(cluster, "app:2")
        most = size + (-(-size * int(surge[:-1]) // 100) if isinstance(surge, str) else surge)
        least = size - (size * int(missing[:-1]) // 100 if isinstance(missing, str) else missing)
        for _ in range(400):
            cluster.advance(0.05)
            living = [pod for pod in cluster.pods() if "deletionTimestamp" not in pod["metadata"]]
            ready = [
                pod
                for pod in living
                if any(
                    one["type"] == "Ready" and one["status"] == "True"
                    for one in pod["status"].get("conditions", ())
                )
            ]
            assert len(living) <= most
            assert len(ready) >= least
        assert images(cluster) == ["app:2"] * size
        assert progress(cluster) == ("True", "NewReplicaSetAvailable")
        assert rollout(cluster)["updatedReplicas"] == size


def test_gets_on_although_neither_surge_nor_absence_comes_to_a_pod() -> None:
    rolling = {"maxSurge": 0, "maxUnavailable": "10%"}  # of 4, rounded down: none
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(
            workload("Deployment", "web", replicas=4, strategy={"rollingUpdate": rolling})
        )
        cluster.advance(2)
        set_image(cluster, "app:2")
        cluster.advance(60)
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"app:2"}


def test_counts_as_available_what_has_been_ready_for_long_enough() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(1)
        cluster.create(workload("Deployment", "web", replicas=1, minReadySeconds=30))
        cluster.advance(10)
        assert cluster.get(DEPLOYMENTS, "web")["status"]["readyReplicas"] == 1
        assert "availableReplicas" not in cluster.get(DEPLOYMENTS, "web")["status"]
        cluster.advance(30)
        assert cluster.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 1


def test_goes_back_to_a_former_template() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=2))
        cluster.advance(5)
        set_image(cluster, "app:2")
        cluster.advance(20)
        set_image(cluster, "app:1")
        cluster.advance(20)
        assert images(cluster) == ["app:1", "app:1"]
        sets = {
            one["spec"]["template"]["spec"]["containers"][0]["image"]: one
            for one in cluster.all(REPLICASETS)
        }
        assert {image: one["spec"]["replicas"] for image, one in sets.items()} == {
            "app:1": 2,
            "app:2": 0,
        }
        revisions = {k: one["metadata"]["annotations"][REVISION] for k, one in sets.items()}
        assert revisions == {"app:1": "3", "app:2": "2"}
        assert cluster.get(DEPLOYMENTS, "web")["metadata"]["annotations"][REVISION] == "3"


def test_recreates_only_when_all_old_pods_are_gone() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        value = workload("Deployment", "web", replicas=3, strategy={"type": "Recreate"})
        value["spec"]["template"]["metadata"]["annotations"] = {"mooring.dev/stop": "5s"}
        cluster.create(value)
        cluster.advance(1)
        set_image(cluster, "app:2")
        cluster.advance(4)
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.pods()} == {"app:1"}
        cluster.advance(3)
        assert images(cluster) == ["app:2"] * 3
        assert progress(cluster) == ("True", "NewReplicaSetAvailable")


def test_says_so_when_it_does_not_get_on() -> None:
    with virtual_cluster(binds=False) as cluster:
        cluster.create(workload("Deployment", "web", replicas=1, progressDeadlineSeconds=60))
        cluster.advance(50)
        assert progress(cluster)[0] == "True"
        cluster.advance(20)
        assert progress(cluster) == ("False", "ProgressDeadlineExceeded")
        cluster.nodes()
        cluster.bind(cluster.pod_names()[0], "n0")
        cluster.advance(2)
        assert progress(cluster) == ("True", "NewReplicaSetAvailable")


def test_does_not_roll_while_it_is_paused() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("Deployment", "web", replicas=1))
        cluster.advance(1)
        cluster.change(DEPLOYMENTS, "web", paused=True)
        set_image(cluster, "app:2")
        cluster.change(DEPLOYMENTS, "web", replicas=2)
        cluster.advance(5)
        assert images(cluster) == ["app:1", "app:1"]
        cluster.change(DEPLOYMENTS, "web", paused=False)
        cluster.advance(10)
        assert images(cluster) == ["app:2", "app:2"]


def test_keeps_only_so_many_former_templates() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("Deployment", "web", replicas=1, revisionHistoryLimit=2))
        for number in range(2, 7):
            cluster.advance(10)
            set_image(cluster, f"app:{number}")
        cluster.advance(10)
        found = sorted(one["metadata"]["annotations"][REVISION] for one in cluster.all(REPLICASETS))
        assert found == ["4", "5", "6"]


def test_rolls_over_to_the_latest_of_several_templates() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=6))
        cluster.advance(1)
        for image in ("app:2", "app:3", "app:4"):
            set_image(cluster, image)
            cluster.advance(0.3)
        cluster.advance(30)
        assert images(cluster) == ["app:4"] * 6


def test_finds_another_name_for_a_replica_set_if_there_is_a_namesake() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("Deployment", "web", replicas=1))
        cluster.settle()
        [made] = cluster.all(REPLICASETS)
        name = made["metadata"]["name"]
        cluster.verbs.delete(DEPLOYMENTS, "default", "web", propagation="Background")
        cluster.advance(1)
        cluster.create(workload("ReplicaSet", name, replicas=0))  # with labels of its own
        cluster.create(workload("Deployment", "web", replicas=1))
        cluster.advance(2)
        assert len(cluster.all(REPLICASETS)) == 2
        assert name in [one["metadata"]["name"] for one in cluster.all(REPLICASETS)]
        assert rollout(cluster)["collisionCount"] == 1
        assert rollout(cluster)["availableReplicas"] == 1


def test_deletes_everything_with_it() -> None:
    with virtual_cluster() as cluster:
        cluster.nodes()
        cluster.create(workload("Deployment", "web", replicas=3))
        cluster.advance(1)
        cluster.verbs.delete(DEPLOYMENTS, "default", "web", propagation="Background")
        cluster.advance(1)
        assert cluster.all(REPLICASETS) == cluster.all(PODS) == []


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("scale"), st.integers(0, 7)),
            st.tuples(st.just("image"), st.integers(1, 3)),
            st.tuples(st.just("lose"), st.integers(0, 9)),
            st.tuples(st.just("wait"), st.integers(0, 20)),
        ),
        max_size=12,
    ),
    st.sampled_from(["RollingUpdate", "Recreate"]),
)
def test_gets_there_whatever_happens_on_the_way(
    steps: list[tuple[str, int]], strategy: str
) -> None:
    with virtual_cluster() as cluster:
        cluster.nodes(3)
        cluster.create(workload("Deployment", "web", replicas=3, strategy={"type": strategy}))
        size, image = 3, 1
        for what, number in steps:
            if what == "scale":
                size = number
                cluster.change(DEPLOYMENTS, "web", replicas=size)
            elif what == "image":
                image = number
                set_image(cluster, f"app:{image}")
            elif what == "lose" and number < len(cluster.pods()):
                cluster.verbs.delete(PODS, "default", cluster.pod_names()[number], grace=0)
            elif what == "wait":
                cluster.advance(number / 10)
        cluster.advance(60)
        assert images(cluster) == [f"app:{image}"] * size
        assert set(cluster.phases().values()) <= {"Running"}
        assert rollout(cluster).get("availableReplicas", 0) == size
        assert progress(cluster) == ("True", "NewReplicaSetAvailable")
