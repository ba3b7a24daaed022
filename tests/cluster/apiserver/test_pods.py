"""Bindings, evictions and the end of pods, as time goes by."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.apiserver.compared_requests import Object, patch, pod, post
from tests.cluster.apiserver.in_process_server import PODS, InProcessServer

from mooring.client.errors import ConflictError, TooManyRequests
from mooring.cluster.apiserver.pods import quality_of_service
from mooring.cluster.apiserver.resources import known

BUDGETS = known("poddisruptionbudgets", "policy")
ROOT = "/api/v1/namespaces/default/pods"


@pytest.fixture
def server() -> InProcessServer:
    return InProcessServer()


def binding(name: str, node: str = "n1", **meta: Any) -> Object:
    return {"metadata": {"name": name, **meta}, "target": {"kind": "Node", "name": node}}


def bound(server: InProcessServer, name: str = "p", **spec: Any) -> Object:
    return server.verbs.create(PODS, pod(name, {"nodeName": "n1", **spec}), namespace="default")


def get(server: InProcessServer, name: str = "p") -> Object:
    return server.verbs.get(PODS, "default", name)


# --- binding -----------------------------------------------------------------------------------


def test_a_bound_pod_says_where_it_is_and_that_it_is_scheduled(server: InProcessServer) -> None:
    server.create(PODS, "p")
    server.verbs.bind("default", "p", binding("p", annotations={"by": "us"}))
    seen = get(server)
    assert seen["spec"]["nodeName"] == "n1"
    assert seen["metadata"]["annotations"] == {"by": "us"}
    [condition] = seen["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")


def test_a_pod_gets_zone_and_region_of_its_node(server: InProcessServer) -> None:
    zone = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}
    node = {"metadata": {"name": "n1", "labels": {**zone, "disk": "ssd"}}}
    server.verbs.create(known("nodes"), node)
    server.create(PODS, "p")
    asked = binding("p", labels={"by": "us", "topology.kubernetes.io/zone": "elsewhere"})
    server.verbs.bind("default", "p", asked)
    assert get(server)["metadata"]["labels"] == {"by": "us", **zone}
    assert bound(server, "q")["metadata"]["labels"] == zone


def test_binding_forgets_the_nomination_and_turns_the_condition(server: InProcessServer) -> None:
    server.create(PODS, "p")
    status = {
        "nominatedNodeName": "n2",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1",
                "lastTransitionTime": "2020-01-01T00:00:00Z",
            }
        ],
    }
    server.ask(patch(f"{ROOT}/p/status", {"status": status}))
    server.verbs.bind("default", "p", binding("p"))
    seen = get(server)["status"]
    assert "nominatedNodeName" not in seen
    assert seen["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z"}
    ]


@pytest.mark.parametrize(
    ("spec", "meta", "words"),
    [
        ({"nodeName": "n2"}, {}, 'pod p is already assigned to node "n2"'),
        ({"schedulingGates": [{"name": "g"}]}, {}, "pod p has non-empty .spec.schedulingGates"),
        ({}, {"uid": "other"}, "Precondition failed: UID in precondition: other"),
    ],
)
def test_refuses_to_bind_what_can_not_be_bound(
    server: InProcessServer, spec: Object, meta: Object, words: str
) -> None:
    server.verbs.create(PODS, pod("p", spec), namespace="default")
    with pytest.raises(ConflictError) as caught:
        server.verbs.bind("default", "p", binding("p", **meta))
    assert words in str(caught.value)


def test_refuses_to_bind_what_is_ending(server: InProcessServer) -> None:
    server.create(PODS, "p", metadata={"finalizers": ["a.b/c"]})
    server.verbs.delete(PODS, "default", "p")
    with pytest.raises(ConflictError, match="pod p is being deleted, cannot be assigned to a host"):
        server.verbs.bind("default", "p", binding("p"))


# --- the end -----------------------------------------------------------------------------------


def test_a_pod_that_runs_nowhere_goes_at_once_but_says_so_first(server: InProcessServer) -> None:
    server.create(PODS, "p")
    heard: list[tuple[str, int | None]] = []
    server.store.listen(
        lambda change: heard.append(
            (change.type, change.new.decoded()["metadata"].get("deletionGracePeriodSeconds"))
        )
    )
    server.verbs.delete(PODS, "default", "p")
    assert heard == [("MODIFIED", 0), ("DELETED", 0)]


def test_a_bound_pod_gets_its_grace(server: InProcessServer) -> None:
    bound(server, terminationGracePeriodSeconds=10)
    meta = server.verbs.delete(PODS, "default", "p")["metadata"]
    assert meta["deletionTimestamp"] == "2023-11-14T22:13:30Z"
    assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (10, 2)
    server.now += 8
    assert server.verbs.delete(PODS, "default", "p", grace=20)["metadata"] == meta
    assert server.names(PODS) == ["p"]
    server.verbs.delete(PODS, "default", "p", grace=0)
    assert server.names(PODS) == []


def test_grace_can_be_shortened_but_not_into_the_past(server: InProcessServer) -> None:
    bound(server)
    server.verbs.delete(PODS, "default", "p")
    server.now += 8
    meta = server.verbs.delete(PODS, "default", "p", grace=5)["metadata"]
    assert meta["deletionTimestamp"] == "2023-11-14T22:13:28Z"
    assert meta["deletionGracePeriodSeconds"] == 1
    assert server.names(PODS) == ["p"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_needs_no_grace(server: InProcessServer, phase: str) -> None:
    bound(server)
    server.ask(patch(f"{ROOT}/p/status", {"status": {"phase": phase}}))
    server.verbs.delete(PODS, "default", "p")
    assert server.names(PODS) == []


def test_finalizers_outlast_the_grace(server: InProcessServer) -> None:
    server.verbs.create(
        PODS, pod("p", {"nodeName": "n1"}, finalizers=["a.b/c"]), namespace="default"
    )
    server.verbs.delete(PODS, "default", "p")
    server.verbs.delete(PODS, "default", "p", grace=0)
    assert get(server)["metadata"]["deletionGracePeriodSeconds"] == 0
    server.ask(patch(f"{ROOT}/p", {"metadata": {"finalizers": None}}))
    assert server.names(PODS) == []


# --- eviction ----------------------------------------------------------------------------------


def guard(server: InProcessServer, allowed: int, **status: int) -> None:
    server.verbs.create(
        BUDGETS,
        {
            "metadata": {"name": "b"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
        },
        namespace="default",
    )

    def allow(value: Object) -> None:
        value["status"] = {
            "observedGeneration": 1,
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            **status,
        }

    server.verbs.modify(BUDGETS, "default", "b", allow, subresource="status")


def run(server: InProcessServer, *, ready: bool = True) -> None:
    server.verbs.create(
        PODS, pod("p", {"nodeName": "n1"}, labels={"app": "x"}), namespace="default"
    )
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": "Running", "conditions": conditions}
    server.ask(patch(f"{ROOT}/p/status", {"status": status}))


def evict(server: InProcessServer) -> None:
    server.verbs.evict("default", "p", {"metadata": {"name": "p"}})


def test_an_evicted_pod_says_why_it_ends(server: InProcessServer) -> None:
    run(server)
    evict(server)
    seen = get(server)
    assert "deletionTimestamp" in seen["metadata"]
    condition = seen["status"]["conditions"][-1]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


def test_a_budget_that_is_spent_forbids_evictions(server: InProcessServer) -> None:
    run(server)
    guard(server, allowed=0)
    with pytest.raises(
        TooManyRequests, match="would violate the pod's disruption budget"
    ) as caught:
        evict(server)
    [cause] = (caught.value.details or {})["causes"]
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"
    assert "deletionTimestamp" not in get(server)["metadata"]


def test_an_eviction_is_counted(server: InProcessServer) -> None:
    run(server)
    guard(server, allowed=1, currentHealthy=2)
    evict(server)
    status = server.verbs.get(BUDGETS, "default", "b")["status"]
    assert status["disruptionsAllowed"] == 0
    assert status["disruptedPods"] == {"p": "2023-11-14T22:13:20Z"}


def test_a_pod_that_is_not_ready_anyway_may_go(server: InProcessServer) -> None:
    run(server, ready=False)
    guard(server, allowed=0)
    evict(server)
    assert "deletionTimestamp" in get(server)["metadata"]


def test_two_budgets_for_a_pod_are_too_many(server: InProcessServer) -> None:
    run(server)
    guard(server, allowed=1)
    spec = {"selector": {"matchLabels": {"app": "x"}}, "maxUnavailable": 1}
    server.verbs.create(BUDGETS, {"metadata": {"name": "c"}, "spec": spec}, namespace="default")
    step = post(f"{ROOT}/p/eviction", {"metadata": {"name": "p"}})
    code, words = server.refusal(step)
    assert (code, "more than one PodDisruptionBudget" in words) == (500, True)


# --- other doors -------------------------------------------------------------------------------


def test_resources_can_be_resized_and_nothing_else(server: InProcessServer) -> None:
    server.create(PODS, "p")
    resources = {"requests": {"cpu": "500m"}}
    change = {
        "spec": {
            "nodeName": "n9",
            "containers": [{"name": "c", "image": "other", "resources": resources}],
        }
    }
    server.ask(patch(f"{ROOT}/p/resize", change))
    [container] = get(server)["spec"]["containers"]
    assert (container["resources"], container["image"]) == (resources, "i")
    assert "nodeName" not in get(server)["spec"]
    assert get(server)["metadata"]["generation"] == 2


def test_ephemeral_containers_come_by_their_own_door(server: InProcessServer) -> None:
    server.create(PODS, "p")
    change = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
    code, _ = server.refusal(patch(f"{ROOT}/p", change))
    assert code == 422
    server.ask(patch(f"{ROOT}/p/ephemeralcontainers", change))
    assert get(server)["spec"]["ephemeralContainers"][0]["name"] == "debug"


# --- quality of service ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"requests": {"example.com/x": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}], "Burstable"),
        (
            [
                {
                    "requests": {"cpu": "1", "memory": "1Gi"},
                    "limits": {"cpu": "1000m", "memory": "1024Mi"},
                }
            ],
            "Guaranteed",
        ),
        (
            [{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}, {}],
            "Burstable",
        ),
    ],
)
def test_knows_the_quality_of_service(containers: list[Object], expected: str) -> None:
    spec = {"containers": [{"resources": resources} for resources in containers]}
    assert quality_of_service(spec) == expected
