"""From the first line of the log to the exit code: starting, leading, waiting, stopping."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import on_both
from tests.controlplane.invariants import audit, binds
from tests.controlplane.objects import node, nodes, pod
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.integration.background_pods import Load
from tests.integration.cluster_reads import (
    events_about,
    placements,
    wait_for_event,
    wait_until_bound,
)
from tests.integration.mooring_process import NAME, Mooring, scheduler_user, start_mooring

# --- leader election ----------------------------------------------------------------------------


@on_both
def test_second_replica_takes_over_at_once_from_one_that_is_stopped(
    control_plane: Plane, namespace: str
) -> None:
    control_plane.admin.create_many(nodes(3, cpu="64", pods=1000))
    first = start_elected(control_plane, "first", namespace)
    wait_until(lambda: leads(first), what="the first one leads")
    second = start_elected(control_plane, "second", namespace)
    held = holder(control_plane, namespace)
    with Load(control_plane, namespace) as load:
        load.wait_for(20)
        assert not leads(second)
        first.process.stop(timeout=30)
        wait_until(lambda: leads(second), what="the second one leads")
        load.wait_for(20)
    wait_until_bound(control_plane, namespace)
    assert first.process.exit_code == 0
    assert holder(control_plane, namespace) not in ("", held)
    assert audit(control_plane, namespace).broken == ()
    # It was told, and did not wait until the lease lapses.
    assert '"released the lease"' in first.log
    assert '"Leaderelection lost"' not in first.log
    assert first.log.count("became leader") == second.log.count("became leader") == 1


@on_both
def test_waiting_replica_keeps_no_cache_if_that_is_asked_for(
    control_plane: Plane, namespace: str
) -> None:
    control_plane.admin.create_many(nodes(3))
    first = start_elected(control_plane, "first", namespace)
    wait_until(lambda: leads(first), what="the first one leads")
    lazy = {"delayCacheUntilActive": True}
    second = start_elected(control_plane, "second", namespace, lazy, wait=False)
    wait_until(lambda: '"new leader"' in second.log, what="the second one knows who leads")
    text = second.get("/readyz").text
    assert "[-]sched-handler-sync failed: handlers are not fully synchronized: nodes" in text
    first.process.stop(timeout=30)
    control_plane.admin.create(pod("waits", namespace=namespace, scheduler=NAME))
    wait_until_bound(control_plane, namespace, "waits")
    assert '"Handlers synced" nodes=3' in second.log
    assert second.is_ready


def test_lease_of_kube_scheduler_is_refused(control_plane: Plane) -> None:
    config = {"leaderElection": {"leaderElect": True, "resourceName": "kube-scheduler"}}
    mooring = start_mooring(control_plane, config=config, wait=False)
    assert mooring.process.wait() == 1
    assert "the lease kube-system/kube-scheduler belongs to kube-scheduler" in mooring.log
    assert "Traceback" not in mooring.log


# --- stopping -----------------------------------------------------------------------------------


@on_both
def test_stop_in_the_middle_of_work_leaves_nothing_half_done(
    control_plane: Plane, namespace: str
) -> None:
    control_plane.admin.create_many(nodes(3, cpu="64", pods=1000))
    mooring = start_elected(control_plane, "stopped", namespace)
    with Load(control_plane, namespace) as load:
        load.wait_for(30)
        mooring.process.stop(timeout=30)
        assert mooring.process.exit_code == 0
        assert holder(control_plane, namespace) == ""
    done = {name: where for name, where in placements(control_plane, namespace).items() if where}
    assert done
    accepted = {bind.pod: bind.node for bind in binds(control_plane, namespace)}
    assert accepted == done  # every bind that was sent was carried out, and none is missing
    for name in done:
        assert events_about(control_plane, namespace, name, "Scheduled")
    assert mooring.log.splitlines()[-1].endswith('"stopped"')
    assert "Traceback" not in mooring.log
    assert not [line for line in mooring.log.splitlines() if line.startswith(("W", "E"))]

    start_elected(control_plane, "next", namespace)
    wait_until_bound(control_plane, namespace)
    assert audit(control_plane, namespace).broken == ()


# --- scope --------------------------------------------------------------------------------------


@on_both
def test_only_nodes_of_the_scope_are_used(control_plane: Plane, namespace: str) -> None:
    admin = control_plane.admin
    admin.create(node("mine", cpu="1", labels={"pool": "mooring"}))
    admin.create_many([node("other", cpu="64"), node("later", cpu="64")])
    start_mooring(control_plane, flags=("--node-selector", "pool=mooring"))
    for name in ("a", "b"):
        admin.create(pod(name, namespace=namespace, scheduler=NAME, cpu="800m"))
    told = wait_for_event(control_plane, namespace, "b", "FailedScheduling")
    assert told["note"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert placements(control_plane, namespace) == {"a": "mine", "b": ""}
    admin.patch("Node", "later", {"metadata": {"labels": {"pool": "mooring"}}})
    wait_until_bound(control_plane, namespace, "b")
    admin.patch("Node", "later", {"metadata": {"labels": {"pool": None}}})
    admin.create(pod("c", namespace=namespace, scheduler=NAME, cpu="800m"))
    wait_for_event(control_plane, namespace, "c", "FailedScheduling", "0/1 nodes are available")
    assert placements(control_plane, namespace) == {"a": "mine", "b": "later", "c": ""}


# --- starting -----------------------------------------------------------------------------------


def test_unreachable_server_is_waited_for(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many([node("only"), pod("p", namespace=namespace, scheduler=NAME)])
    proxy = control_plane.proxy()
    proxy.refuse()
    mooring = start_mooring(control_plane, server=proxy.url, wait=False, forked=False)
    where = proxy.url.removeprefix("https://")
    why = f"cannot list nodes: {where}: connection refused"
    wait_until(lambda: why in mooring.get("/readyz").text, what="/readyz says why")
    assert mooring.get("/healthz").text == "ok"
    assert f"{where}: connection refused" in mooring.log
    proxy.heal()
    wait_until(lambda: mooring.is_ready, what="it is ready")
    wait_until_bound(control_plane, namespace, "p")


def test_mistakes_in_the_kubeconfig_are_named(control_plane: Plane) -> None:
    user = scheduler_user(control_plane)
    good = control_plane.kubeconfig_for(user)
    content = json.loads(good.read_text())
    content["clusters"][0]["cluster"]["certificate-authority"] = "/no/such/file.crt"
    broken = control_plane.folder / "broken.json"
    broken.write_text(json.dumps(content))
    said = said_by_run(control_plane, "--kubeconfig", str(good), "--context", "nowhere")
    assert 'there is no context "nowhere"; known contexts: rig' in said
    assert "/no/such/kubeconfig: no such file" in said_by_run(
        control_plane, "--kubeconfig", "/no/such/kubeconfig"
    )
    assert "/no/such/file.crt" in said_by_run(control_plane, "--kubeconfig", str(broken))


# --- replicas and the lease ---------------------------------------------------------------------


def start_elected(
    control_plane: Plane,
    name: str,
    lease: str,
    own: Mapping[str, Any] | None = None,
    *,
    wait: bool = True,
) -> Mooring:
    """A replica; each test has a lease of its own, because leases outlive the tests."""
    config = {"leaderElection": {"leaderElect": True, "resourceName": lease}, **(own or {})}
    user = scheduler_user(control_plane, f"scheduler-{lease}", lease)
    return start_mooring(control_plane, user=user, config=config, name=name, wait=wait)


def holder(control_plane: Plane, lease: str) -> str:
    found = control_plane.admin.get("coordination.k8s.io/v1/Lease", lease, "kube-system")
    return str(found["spec"].get("holderIdentity", ""))


def leads(mooring: Mooring) -> bool:
    return '"became leader"' in mooring.log


def said_by_run(control_plane: Plane, *flags: str) -> str:
    """What `mooring run` says that can't start for a reason of ours."""
    log = control_plane.folder / "refused.log"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "mooring", "run", "--secure-port=0", *flags]
    process = control_plane.run("refused", command)
    assert process.wait() == 1
    said = log.read_text()
    assert "Traceback" not in said
    return said
