"""Our extender, asked by the real kube-scheduler and by our own: their pods go the same ways."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import audit, binds
from tests.controlplane.objects import node, nodes, pod, pods, priority_class
from tests.integration.cluster_reads import placements, wait_for_event, wait_until_bound
from tests.integration.extender_process import (
    EXAMPLES,
    SCHEDULER,
    SCHEDULERS,
    USER,
    Start,
    certified,
    scheduler_with,
    start_extender,
    start_from_policy,
)

WANTED = "10-9-101-66"

by_each_scheduler = pytest.mark.parametrize("start", SCHEDULERS.values(), ids=SCHEDULERS)

BREAKS = """
from mooring.extender import Extender

extender = Extender()

@extender.filter
def breaks(pod, node):
    if "break" in pod.labels:
        raise RuntimeError(f"can't stand {pod.name}")
    return "small" not in node.name or "node is too small"
"""

SPARES = """
from mooring.extender import Extender

extender = Extender()

@extender.preempt
def spares_databases(pod, node_name, victims):
    return all(victim.labels.get("app") != "db" for victim in victims) or "there is a database"
"""


@by_each_scheduler
def test_filters_ranks_and_binds_for_a_scheduler_that_sends_whole_nodes(
    control_plane: ControlPlane, namespace: str, start: Start
) -> None:
    folder = EXAMPLES / "extender_basic"
    extender = start_extender(control_plane, "--plugin", "extender_basic:Basic", folder=folder)
    asked = {
        "urlPrefix": extender.url,
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "bindVerb": "bind",
        "nodeCacheCapable": False,
    }
    control_plane.admin.create_many(nodes(3, cpu="64", memory="256Gi", pods=40))
    start(control_plane, scheduler_with(asked))
    control_plane.admin.create_many(
        pods(60, namespace=namespace, scheduler=SCHEDULER, cpu="10m", memory="1Mi")
    )
    placed = wait_until_bound(control_plane, namespace)
    assert len(placed) == 60
    # All nodes are equal to kube-scheduler: the last by name comes first, until it is full.
    assert Counter(placed.values()) == {"node-00002": 40, "node-00001": 20}
    made = [bind for bind in binds(control_plane, namespace) if bind.code == 201]
    assert len(made) == 60
    assert {(bind.user, bind.user_agent.split("/")[0]) for bind in made} == {
        (USER, "mooring-extender")
    }
    assert not audit(control_plane, namespace).broken
    _, metrics = extender.get("/metrics")
    assert 'mooring_extender_request_duration_seconds_count{code="200",verb="bind"} 60' in metrics
    assert "mooring_extender_errors_total{" not in metrics
    assert extender.process.tail(300).count("about to bind") == 60


@pytest.mark.parametrize("connected", [True, False], ids=["watching, certified", "names alone"])
@by_each_scheduler
def test_keeps_wanting_pods_to_one_node_for_a_scheduler_that_sends_names(
    control_plane: ControlPlane, namespace: str, start: Start, connected: bool
) -> None:
    folder = EXAMPLES / "extender_want_you"
    flags, tls = certified(control_plane) if connected else ([], {})
    extender = start_extender(
        control_plane, "want_you:extender", *flags, folder=folder, connected=connected
    )
    asked = {"urlPrefix": f"{extender.url}/", "filterVerb": "filter", "nodeCacheCapable": True}
    start(control_plane, scheduler_with({**asked, **tls}, scores=True))
    assert extender.get("/metrics")[0] == (401 if connected else 200)
    expect_wanting_pods_on_one_node(control_plane, namespace)


def test_keeps_them_there_under_a_policy_of_long_ago(
    control_plane: ControlPlane, namespace: str
) -> None:
    folder = EXAMPLES / "extender_want_you"
    extender = start_extender(control_plane, "want_you:extender", folder=folder, connected=False)
    start_from_policy(control_plane, folder, extender)
    expect_wanting_pods_on_one_node(control_plane, namespace)


def expect_wanting_pods_on_one_node(control_plane: ControlPlane, namespace: str) -> None:
    for name in ("10-9-101-65", WANTED, "10-9-101-67"):
        control_plane.admin.create(node(name, cpu="64", memory="256Gi", pods=150))
    options: dict[str, Any] = {
        "namespace": namespace,
        "scheduler": SCHEDULER,
        "cpu": "50m",  # thirty of them cost a node of 64 CPUs more than a point
        "memory": "1Mi",
    }
    control_plane.admin.create_many(pods(30, prefix="wanting", labels={"want": "you"}, **options))
    control_plane.admin.create_many(pods(30, prefix="other", **options))
    placed = wait_until_bound(control_plane, namespace)
    assert len(placed) == 60
    wanting = {where for name, where in placed.items() if name.startswith("wanting")}
    assert wanting == {WANTED}
    others = Counter(where for name, where in placed.items() if name.startswith("other"))
    assert len(others) >= 2  # the wanted node is the fuller one
    assert not audit(control_plane, namespace).broken


@by_each_scheduler
def test_an_exception_is_told_in_the_event_of_its_pod_and_the_next_one_is_fine(
    control_plane: ControlPlane, namespace: str, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "breaking.py").write_text(BREAKS)
    extender = start_extender(control_plane, "breaking:extender", folder=tmp_path)
    asked = {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True}
    start(control_plane, scheduler_with(asked))
    control_plane.admin.create_many([node("large"), node("small")])
    options: dict[str, Any] = {"namespace": namespace, "scheduler": SCHEDULER}
    control_plane.admin.create(pod("bad", labels={"break": ""}, **options))
    why = 'running "breaks" filter plugin: RuntimeError: can\'t stand bad'
    wait_for_event(control_plane, namespace, "bad", "FailedScheduling", why)
    control_plane.admin.create(pod("good", **options))
    assert wait_until_bound(control_plane, namespace, "good")["good"] == "large"
    # What no node is good enough for says why, in the scheduler's own sentence.
    control_plane.admin.create(
        pod("picky", node_selector={"kubernetes.io/hostname": "small"}, **options)
    )
    why = "1 node is too small"
    wait_for_event(control_plane, namespace, "picky", "FailedScheduling", why)
    assert placements(control_plane, namespace)["bad"] == ""
    assert extender.process.is_alive


@pytest.mark.parametrize("names_only", [True, False], ids=["by uid", "in full"])
@by_each_scheduler
def test_says_whom_a_scheduler_may_not_evict(
    control_plane: ControlPlane, namespace: str, start: Start, tmp_path: Path, names_only: bool
) -> None:
    (tmp_path / "sparing.py").write_text(SPARES)
    extender = start_extender(control_plane, "sparing:extender", folder=tmp_path)
    asked = {
        "urlPrefix": extender.url,
        "preemptVerb": "preempt",
        "nodeCacheCapable": names_only,
    }
    start(control_plane, scheduler_with(asked))
    control_plane.admin.create(priority_class("urgent", 1000))
    control_plane.admin.create_many([node("a", cpu="2"), node("b", cpu="2")])
    options: dict[str, Any] = {"namespace": namespace, "cpu": "2"}
    control_plane.admin.create(
        pod("db", node="a", labels={"app": "db"}, scheduler=SCHEDULER, **options)
    )
    # Of ours, because we do not evict the pods of other schedulers.
    control_plane.admin.create(pod("web", node="b", scheduler=SCHEDULER, **options))
    control_plane.admin.create(
        pod("urgent", scheduler=SCHEDULER, priority_class="urgent", **options)
    )
    # No kubelet confirms that the victim is gone, so it stays; the scheduler has said whom.
    told = wait_for_event(control_plane, namespace, "web", "Preempted")
    assert told["note"].startswith("Preempted by pod")
    assert "deletionTimestamp" not in control_plane.admin.get("Pod", "db", namespace)["metadata"]
