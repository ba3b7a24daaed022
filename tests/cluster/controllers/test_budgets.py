from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.stage import Stage, conditions, stage, workload

from mooring.client.errors import TooManyRequests
from mooring.cluster.apiserver.store import Object
from mooring.cluster.controllers.budgets import BUDGETS
from mooring.cluster.controllers.deployments import DEPLOYMENTS


def budget(**spec: Any) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def evict(play: Stage, name: str) -> None:
    play.verbs.evict("default", name, {"metadata": {"name": name}})


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
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=4), budget(**spec))
        play.advance(1)
        status = play.get(BUDGETS, "web")["status"]
        assert status["currentHealthy"] == status["expectedPods"] == 4
        assert status["desiredHealthy"] == desired
        assert status["disruptionsAllowed"] == allowed
        assert status["observedGeneration"] == 1
        wanted = "True" if allowed else "False"
        assert conditions(play.get(BUDGETS, "web")) == {"DisruptionAllowed": wanted}


def test_allows_one_eviction_after_the_other() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=3), budget(maxUnavailable=1))
        play.advance(1)
        first, second, _ = play.pod_names()
        evict(play, first)
        play.settle()
        with pytest.raises(TooManyRequests):
            evict(play, second)
        play.advance(3)
        evict(play, second)
        play.advance(3)
        assert play.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 3
        assert "disruptedPods" not in play.get(BUDGETS, "web")["status"]


def test_expects_what_the_controllers_ask_for() -> None:
    with stage() as play:
        play.nodes(3)
        play.create(workload("Deployment", "web", replicas=2), budget(maxUnavailable=1))
        play.advance(1)
        play.change(DEPLOYMENTS, "web", replicas=10)
        play.settle()
        play.advance(0.1)
        status = play.get(BUDGETS, "web")["status"]
        assert (status["expectedPods"], status["disruptionsAllowed"]) == (10, 0)
