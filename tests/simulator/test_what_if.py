from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import structs
from tests.simulator.clusters import budget, owned, snapshot, strategy

from mooring.api import codec, core
from mooring.api.apps import ReplicaSet
from mooring.errors import ConfigError
from mooring.lens.snapshot import MissingKind, Snapshot
from mooring.simulator.answers import WhatIfAnswer
from mooring.simulator.changes import ClusterChanges
from mooring.simulator.imagine import Run, imagine
from mooring.simulator.sweeps import outcomes
from mooring.simulator.what_if import what_if
from mooring.simulator.workloads import Scaling, parse_scaling
from mooring.testing import node, pod


def ask(given: Snapshot, changes: ClusterChanges | None = None, **more: Any) -> WhatIfAnswer:
    run = structs.replace(Run(changes=changes or ClusterChanges()), **more)
    before, after = outcomes([(given, Run(reschedule=run.reschedule)), (given, run)])
    return what_if(given, run, before, after)


def moves(answer: WhatIfAnswer) -> dict[str, tuple[str, str]]:
    return {one.pod: (one.from_, one.to) for one in (*answer.moved, *answer.placed)}


# --- drain: scenario 14 of the brief -------------------------------------------------------------


def drained_cluster(*more: object) -> Snapshot:
    return snapshot(
        *(node(name) for name in ("n1", "n2", "n3")),
        pod("a", cpu=2, on="n1", labels={"app": "web"}),
        pod("b", cpu=2, on="n1", labels={"app": "web"}),
        pod("c", cpu=3, on="n2"),
        pod("d", cpu=2, on="n3"),
        *more,
    )


def test_a_drain_moves_what_fits_and_says_by_how_much_the_rest_does_not() -> None:
    answer = ask(drained_cluster(), ClusterChanges(drain=("n1",)))
    assert moves(answer) == {"default/a": ("n1", "n3")}
    (pending,) = answer.pending
    assert (pending.pod, pending.from_) == ("default/b", "n1")
    short, cordoned = pending.refused
    assert (short.plugin, short.nodes) == ("NodeResourcesFit", 2)
    assert [(one.node, one.resource, one.short) for one in short.shortages] == [
        ("n2", "cpu", "1"),
        ("n3", "cpu", "2"),
    ]
    assert (cordoned.plugin, cordoned.examples) == ("NodeUnschedulable", ("n1",))
    assert answer.unmanaged == ("default/a", "default/b")
    assert answer.before is not None
    assert answer.after is not None
    assert (answer.before.waiting, answer.after.waiting) == (0, 1)
    cpu = answer.after.resources[0]
    assert (cpu.resource, cpu.allocatable, cpu.utilisation) == ("cpu", "8", 0.875)  # without n1


def test_pods_that_wait_already_are_told_from_those_that_lose_their_node() -> None:
    given = snapshot(
        node("large", cpu=8),
        node("small", cpu=1),
        pod("runs", cpu=1, on="large"),
        pod("waits", cpu=2),
    )
    answer = ask(given, ClusterChanges(drain=("large",)))
    assert [(one.pod, one.from_, one.waits) for one in answer.moved] == [
        ("default/runs", "large", False)
    ]
    assert [(one.pod, one.from_, one.waits) for one in answer.pending] == [
        ("default/waits", "large", True)  # where it would go
    ]


@pytest.mark.parametrize(("allowed", "forbidden"), [(0, 2), (1, 1), (2, 0)])
def test_a_budget_that_forbids_a_drain_is_named(allowed: int, forbidden: int) -> None:
    given = drained_cluster(budget("keep", "web", allowed), budget("other", "db", 0))
    answer = ask(given, ClusterChanges(drain=("n1",)))
    found = [(one.budget, one.allowed, one.evicted, len(one.pods)) for one in answer.budgets]
    assert found == ([("default/keep", allowed, 2, forbidden)] if forbidden else [])


def test_a_drain_leaves_pods_of_the_node_and_pods_that_have_ended_alone() -> None:
    given = snapshot(
        node("n1"),
        node("n2"),
        owned(pod("agent", cpu=1, on="n1"), "DaemonSet", "agent"),
        pod("static", cpu=1, on="n1", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("ended", cpu=1, on="n1", phase="Succeeded"),
        owned(pod("web", cpu=1, on="n1"), "ReplicaSet", "web"),
    )
    answer = ask(given, ClusterChanges(drain=("n1",)))
    assert moves(answer) == {"default/web": ("n1", "n2")}
    assert answer.unmanaged == ()
    assert answer.gone == ()


def test_pods_of_a_lost_node_move_and_those_of_its_daemonsets_are_gone() -> None:
    given = snapshot(
        node("n1"),
        node("n2"),
        owned(pod("agent", cpu=1, on="n1"), "DaemonSet", "agent"),
        owned(pod("web", cpu=1, on="n1", labels={"app": "web"}), "ReplicaSet", "web"),
        budget("keep", "web", 0),  # a loss asks nobody
    )
    answer = ask(given, ClusterChanges(remove_nodes=("n1",)))
    assert moves(answer) == {"default/web": ("n1", "n2")}
    assert answer.gone == ("default/agent",)
    assert answer.budgets == ()
    assert answer.after is not None
    assert answer.after.nodes == 1


def test_a_cordon_moves_nothing() -> None:
    answer = ask(drained_cluster(pod("new", cpu=2)), ClusterChanges(cordon=("n3",)))
    assert moves(answer) == {}
    (pending,) = answer.pending  # without the cordon it would go to n3
    assert (pending.pod, pending.from_) == ("default/new", "n3")


def test_names_what_is_not_there() -> None:
    changes = ClusterChanges(drain=("n9",), cordon=("n1", "n8"), add_nodes=1)
    with pytest.raises(ConfigError) as raised:
        ask(drained_cluster(), changes)
    assert [str(one) for one in raised.value.problems] == [
        "--cordon: there is no node n8",
        "--drain: there is no node n9",
        "--add-nodes: expected --like NODE or --like FILE beside it",
    ]


# --- more nodes: scenario 15 ---------------------------------------------------------------------


def test_tells_how_many_nodes_are_needed() -> None:
    given = snapshot(node("n1", cpu=2), *(pod(f"p{i}", cpu=2) for i in range(6)))
    like = node("big", cpu=4).api
    waiting = []
    for count in range(4):
        after = ask(given, ClusterChanges(add_nodes=count, like=like)).after
        assert after is not None
        assert after.nodes == 1 + count
        waiting.append(after.waiting)
    assert waiting == [5, 3, 1, 0]


def test_an_added_node_is_like_its_model_with_its_daemonsets_and_without_its_troubles() -> None:
    model = node(
        "n1",
        cpu=4,
        zone="a",
        labels={"pool": "x"},
        taints=["team=ml:NoSchedule", "node.kubernetes.io/unreachable:NoExecute"],
        unschedulable=True,
    )
    given = snapshot(
        model,
        owned(pod("agent", cpu=3, on="n1", tolerates=[""]), "DaemonSet", "agent"),
        pod("fits", cpu=1, tolerates=["team"], node_selector={"pool": "x"}),
        pod("too-big", cpu=2, tolerates=["team"]),
        pod("repelled", cpu=1),
    )
    answer = ask(given, ClusterChanges(add_nodes=1, like=model.api))
    assert moves(answer)["default/fits"] == ("", "n1-new-1")
    assert answer.still_waiting == 2


# --- scaling and applying ------------------------------------------------------------------------


def deployment(replicas: int, on: str = "n1") -> list[object]:
    replica_set = codec.convert(
        {
            "metadata": {
                "name": "web-1",
                "namespace": "default",
                "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}],
            }
        },
        ReplicaSet,
    )
    pods = [
        owned(pod(f"web-1-{i}", cpu=1, on=on), "ReplicaSet", "web-1", f"2026-01-01T00:00:0{i}Z")
        for i in range(replicas)
    ]
    return [replica_set, *pods]


def test_scales_a_deployment_up_by_copies_of_its_pods() -> None:
    given = snapshot(node("n1"), node("n2"), *deployment(2))
    answer = ask(given, ClusterChanges(scale=(Scaling("Deployment", "web", 9),)))
    assert len(answer.placed) == 6
    assert len(answer.pending) == 1
    assert {one.to for one in answer.placed} == {"n1", "n2"}
    assert {one.pod.rpartition("-")[0] for one in answer.placed} == {"default/web-1-new"}


def test_scales_down_in_the_order_of_the_controllers() -> None:
    pods = [
        owned(pod("crowded-old", cpu=1, on="n1"), "ReplicaSet", "web", "2026-01-01T00:00:00Z"),
        owned(pod("crowded-new", cpu=1, on="n1"), "ReplicaSet", "web", "2026-01-02T00:00:00Z"),
        owned(pod("alone", cpu=1, on="n2"), "ReplicaSet", "web", "2026-01-03T00:00:00Z"),
        owned(pod("waits", cpu=64), "ReplicaSet", "web", "2026-01-01T00:00:00Z"),
    ]
    given = snapshot(node("n1"), node("n2"), *pods)
    gone = [
        ask(given, ClusterChanges(scale=(Scaling("ReplicaSet", "web", count),))).gone
        for count in (3, 2, 0)
    ]
    assert gone[0] == ("default/waits",)
    assert gone[1] == ("default/crowded-new", "default/waits")
    assert len(gone[2]) == 4


def test_a_stateful_set_grows_and_shrinks_at_its_end() -> None:
    labels = {"statefulset.kubernetes.io/pod-name": "db-9", "apps.kubernetes.io/pod-index": "9"}
    pods = [
        owned(pod(f"db-{i}", cpu=1, on="n1", labels=labels), "StatefulSet", "db") for i in (8, 9)
    ]
    given = snapshot(node("n1"), node("n2"), *pods)
    up = ask(given, ClusterChanges(scale=(Scaling("StatefulSet", "db", 4),)))
    assert [one.pod for one in up.placed] == ["default/db-10", "default/db-11"]
    down = ask(given, ClusterChanges(scale=(Scaling("StatefulSet", "db", 1),)))
    assert down.gone == ("default/db-9",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("web=3", "expected [NAMESPACE/]KIND/NAME=REPLICAS with deploy, rs, sts, rc or job"),
        ("cronjob/web=3", "expected [NAMESPACE/]KIND/NAME=REPLICAS"),
        ("deploy/web=many", "expected [NAMESPACE/]KIND/NAME=REPLICAS"),
    ],
)
def test_scalings_that_cannot_be_read(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_scaling(text)
    assert str(raised.value).startswith(f"--scale: {problem}")


def test_scalings_of_what_is_not_there() -> None:
    assert parse_scaling("shop/deploy/web=3") == Scaling("Deployment", "web", 3, "shop")
    given = snapshot(node("n1"), *deployment(0), *deployment(1)[1:])
    with pytest.raises(ConfigError, match="there are no pods of Deployment default/api; there are"):
        ask(given, ClusterChanges(scale=(parse_scaling("deploy/api=3"),)))
    empty = snapshot(node("n1"), deployment(0)[0])
    with pytest.raises(ConfigError, match="has no pod to copy; give its manifest with --apply"):
        ask(empty, ClusterChanges(scale=(parse_scaling("deploy/web=3"),)))


def test_applied_objects_replace_others_of_their_name() -> None:
    given = snapshot(node("n1", cpu=1), pod("p", cpu=2))
    applied = snapshot(node("n1", cpu=4), pod("q", cpu=1)).cluster
    answer = ask(given, ClusterChanges(applied=applied))
    assert moves(answer) == {"default/p": ("", "n1"), "default/q": ("", "n1")}
    assert answer.after is not None
    assert answer.after.nodes == 1


# --- preemption, configurations, and what cannot be known ----------------------------------------


def test_victims_that_have_a_controller_look_for_another_node() -> None:
    given = snapshot(
        node("n1", cpu=4),
        node("n2", cpu=2),
        owned(pod("low", cpu=2, on="n1", priority=1), "ReplicaSet", "low"),
        pod("bare", cpu=2, on="n1", priority=1),
    )
    vip = snapshot(pod("vip", cpu=4, priority=100)).cluster
    answer = ask(given, ClusterChanges(applied=vip))
    assert sorted(answer.preempted) == ["default/bare", "default/low"]
    assert moves(answer) == {"default/vip": ("", "n1"), "default/low": ("n1", "n2")}
    assert answer.gone == ("default/bare",)


def test_another_configuration_places_what_waits_and_with_reschedule_all() -> None:
    pods = [pod(f"p{i}", cpu=1, memory="1Gi") for i in range(2)]
    given = snapshot(node("a"), node("b"), pod("old", cpu=1, memory="1Gi", on="b"), *pods)
    more: Any = {"config": strategy("MostAllocated"), "config_name": "most.yaml"}
    assert set(moves(ask(given, **more)).values()) == {("a", "b")}
    again = ask(given, reschedule=True, **more)
    assert again.config == "most.yaml"
    assert {to for _, to in moves(again).values()} == {"a"}


def test_what_could_not_be_read_is_named_and_extenders_are_said_to_be_left_out() -> None:
    missing = (MissingKind("poddisruptionbudgets.policy", "forbidden"),)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}],
    }
    given = snapshot(node("n1"), pod("p", cpu=1), missing=missing, config=config)
    answer = ask(given)
    assert answer.missing == missing
    assert answer.notes == ("extenders are not called: http://127.0.0.1:1",)


def test_pods_of_other_schedulers_and_gated_pods_wait_with_a_reason() -> None:
    new = snapshot(pod("other", scheduler="volcano"), pod("gated", gates=["x/y"])).cluster
    answer = ask(snapshot(node("n1")), ClusterChanges(applied=new))
    assert {one.pod: one.message for one in answer.pending} == {
        "default/other": "no profile for schedulerName volcano",
        "default/gated": "waiting for scheduling gates: [x/y]",
    }


def test_a_pod_whose_attempt_fails_is_tried_again() -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins: {multiPoint: {enabled: [{name: "tests.simulator.flaky:FailsOnce"}]}}
"""
    given = snapshot(node("n1"), pod("p", cpu=1))
    outcome = imagine(given, Run(config=config))
    assert outcome.placements == {"default/p": "n1"}


def test_the_same_question_twice_has_the_same_bytes() -> None:
    given = drained_cluster(*(pod(f"x{i}", cpu="100m", spread={"zone": 1}) for i in range(20)))
    like = core.Node(metadata=node("z").api.metadata)
    changes = ClusterChanges(drain=("n1",), add_nodes=1, like=like)
    first, second = (msgspec.json.encode(ask(given, changes)) for _ in range(2))
    assert first == second
