from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.stage import PODS, Stage, stage, workload

from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.deployments import DEPLOYMENTS, HASH, REVISION
from mooring.cluster.controllers.replicasets import REPLICASETS


def rollout(play: Stage, name: str = "web") -> Object:
    """What `kubectl rollout status` looks at."""
    found: Object = play.get(DEPLOYMENTS, name)["status"]
    return found


def set_image(play: Stage, image: str, name: str = "web") -> None:
    def change(value: Object) -> None:
        value["spec"]["template"]["spec"]["containers"][0]["image"] = image

    play.verbs.modify(DEPLOYMENTS, "default", name, change)


def images(play: Stage) -> list[str]:
    return [
        pod["spec"]["containers"][0]["image"]
        for pod in play.pods()
        if "deletionTimestamp" not in pod["metadata"]
    ]


def progress(play: Stage) -> tuple[str, str]:
    conditions = rollout(play)["conditions"]
    [found] = [one for one in conditions if one["type"] == "Progressing"]
    return found["status"], found["reason"]


def test_rolls_a_new_deployment_out() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=3))
        play.settle()
        [made] = play.all(REPLICASETS)
        mark = made["metadata"]["labels"][HASH]
        assert made["metadata"]["name"] == f"web-{mark}"
        assert made["spec"]["selector"]["matchLabels"] == {"app": "web", HASH: mark}
        assert made["metadata"]["annotations"][REVISION] == "1"
        assert play.get(DEPLOYMENTS, "web")["metadata"]["annotations"][REVISION] == "1"
        assert {pod["metadata"]["labels"][HASH] for pod in play.pods()} == {mark}
        assert progress(play)[0] == "True"
        play.advance(1)
        found = play.get(DEPLOYMENTS, "web")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        assert found["status"]["availableReplicas"] == 3
        assert progress(play) == ("True", "NewReplicaSetAvailable")


def test_scales_up_and_down() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=2))
        play.advance(1)
        for size in (6, 1, 0, 3):
            play.change(DEPLOYMENTS, "web", replicas=size)
            play.advance(1)
            assert len(play.pods()) == size
            assert rollout(play).get("availableReplicas", 0) == size
        assert len(play.all(REPLICASETS)) == 1


@pytest.mark.parametrize(
    ("surge", "missing"), [("25%", "25%"), (1, 0), (0, 1), ("50%", 0), (0, "100%"), (3, 2)]
)
def test_keeps_within_its_limits_while_it_rolls(surge: Any, missing: Any) -> None:
    size = 6
    limits = {"maxSurge": surge, "maxUnavailable": missing}
    strategy = {"type": "RollingUpdate", "rollingUpdate": limits}
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=size, strategy=strategy))
        play.advance(1)
        set_image(play, "app:2")
        most = size + (-(-size * int(surge[:-1]) // 100) if isinstance(surge, str) else surge)
        least = size - (size * int(missing[:-1]) // 100 if isinstance(missing, str) else missing)
        for _ in range(400):
            play.advance(0.05)
            living = [pod for pod in play.pods() if "deletionTimestamp" not in pod["metadata"]]
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
        assert images(play) == ["app:2"] * size
        assert progress(play) == ("True", "NewReplicaSetAvailable")
        assert rollout(play)["updatedReplicas"] == size


def test_goes_back_to_a_former_template() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=2))
        play.advance(5)
        set_image(play, "app:2")
        play.advance(20)
        set_image(play, "app:1")
        play.advance(20)
        assert images(play) == ["app:1", "app:1"]
        sets = {
            one["spec"]["template"]["spec"]["containers"][0]["image"]: one
            for one in play.all(REPLICASETS)
        }
        assert {image: one["spec"]["replicas"] for image, one in sets.items()} == {
            "app:1": 2,
            "app:2": 0,
        }
        revisions = {k: one["metadata"]["annotations"][REVISION] for k, one in sets.items()}
        assert revisions == {"app:1": "3", "app:2": "2"}
        assert play.get(DEPLOYMENTS, "web")["metadata"]["annotations"][REVISION] == "3"


def test_recreates_only_when_all_old_pods_are_gone() -> None:
    with stage() as play:
        play.nodes(3)
        value = workload("Deployment", "web", replicas=3, strategy={"type": "Recreate"})
        value["spec"]["template"]["metadata"]["annotations"] = {"mooring.dev/stop": "5s"}
        play.create(value)
        play.advance(1)
        set_image(play, "app:2")
        play.advance(4)
        assert {pod["spec"]["containers"][0]["image"] for pod in play.pods()} == {"app:1"}
        play.advance(3)
        assert images(play) == ["app:2"] * 3
        assert progress(play) == ("True", "NewReplicaSetAvailable")


def test_says_so_when_it_does_not_get_on() -> None:
    with stage(binds=False) as play:
        play.create(workload("Deployment", "web", replicas=1, progressDeadlineSeconds=60))
        play.advance(50)
        assert progress(play)[0] == "True"
        play.advance(20)
        assert progress(play) == ("False", "ProgressDeadlineExceeded")
        play.nodes()
        play.bind(play.pod_names()[0], "n0")
        play.advance(2)
        assert progress(play) == ("True", "NewReplicaSetAvailable")


def test_does_not_roll_while_it_is_paused() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("Deployment", "web", replicas=1))
        play.advance(1)
        play.change(DEPLOYMENTS, "web", paused=True)
        set_image(play, "app:2")
        play.change(DEPLOYMENTS, "web", replicas=2)
        play.advance(5)
        assert images(play) == ["app:1", "app:1"]
        play.change(DEPLOYMENTS, "web", paused=False)
        play.advance(10)
        assert images(play) == ["app:2", "app:2"]


def test_keeps_only_so_many_former_templates() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("Deployment", "web", replicas=1, revisionHistoryLimit=2))
        for number in range(2, 7):
            play.advance(10)
            set_image(play, f"app:{number}")
        play.advance(10)
        found = sorted(one["metadata"]["annotations"][REVISION] for one in play.all(REPLICASETS))
        assert found == ["4", "5", "6"]


def test_rolls_over_to_the_latest_of_several_templates() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=6))
        play.advance(1)
        for image in ("app:2", "app:3", "app:4"):
            set_image(play, image)
            play.advance(0.3)
        play.advance(30)
        assert images(play) == ["app:4"] * 6


def test_finds_another_name_for_a_replica_set_if_there_is_a_namesake() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("Deployment", "web", replicas=1))
        play.settle()
        [made] = play.all(REPLICASETS)
        name = made["metadata"]["name"]
        play.verbs.delete(DEPLOYMENTS, "default", "web", propagation="Orphan")
        play.settle()
        play.create(workload("Deployment", "web", replicas=1))
        play.advance(2)
        assert len(play.all(REPLICASETS)) == 2
        assert name in [one["metadata"]["name"] for one in play.all(REPLICASETS)]
        assert rollout(play)["collisionCount"] == 1
        assert rollout(play)["availableReplicas"] == 1


def test_deletes_everything_with_it() -> None:
    with stage() as play:
        play.nodes()
        play.create(workload("Deployment", "web", replicas=3))
        play.advance(1)
        play.verbs.delete(DEPLOYMENTS, "default", "web", propagation="Background")
        play.advance(1)
        assert play.all(REPLICASETS) == play.all(PODS) == []


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
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=3, strategy={"type": strategy}))
        size, image = 3, 1
        for what, number in steps:
            if what == "scale":
                size = number
                play.change(DEPLOYMENTS, "web", replicas=size)
            elif what == "image":
                image = number
                set_image(play, f"app:{image}")
            elif what == "lose" and number < len(play.pods()):
                play.verbs.delete(PODS, "default", play.pod_names()[number], grace=0)
            elif what == "wait":
                play.advance(number / 10)
        play.advance(60)
        assert images(play) == [f"app:{image}"] * size
        assert set(play.phases().values()) <= {"Running"}
        assert rollout(play).get("availableReplicas", 0) == size
        assert progress(play) == ("True", "NewReplicaSetAvailable")
