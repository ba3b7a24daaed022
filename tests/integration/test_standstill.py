"""A leader whose process stands still: how long it keeps its lease and its health, and who ends."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import audit, binds
from tests.controlplane.objects import nodes, pod
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.test_replicas import leads, lease, renewal
from tests.integration.mooring_process import NAME, Mooring, scheduler_user, start_mooring

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 5.0, 3.0, 2.0  # seconds
STANDSTILLS = 3


def start(control_plane: ControlPlane, name: str) -> Mooring:
    enabled = {"multiPoint": {"enabled": [{"name": "Locking"}]}}
    return start_mooring(
        control_plane,
        name=name,
        user=scheduler_user(control_plane, name),
        config={"profiles": [{"schedulerName": NAME, "plugins": enabled}]},
        flags=[
            *("--plugin", "hanging_plugin:Locking", "--leader-elect=true"),
            f"--leader-elect-lease-duration={LEASE_DURATION:g}s",
            f"--leader-elect-renew-deadline={RENEW_DEADLINE:g}s",
            f"--leader-elect-retry-period={RETRY_PERIOD:g}s",
        ],
        env={"PYTHONPATH": str(Path(__file__).parent)},
    )


def start_leader(control_plane: ControlPlane) -> Mooring:
    leader = start(control_plane, "first")
    wait_until(lambda: leads(control_plane, leader), what="the first one leads")
    return leader


def since_renewal(control_plane: ControlPlane) -> float:
    return (datetime.now(UTC) - renewal(control_plane)).total_seconds()


def stand_still(control_plane: ControlPlane, namespace: str, name: str, seconds: float) -> None:
    """Until the pod is bound whose plugin takes so long; begun late after a renewal."""
    wait_until(lambda: 1.4 < since_renewal(control_plane) < RETRY_PERIOD, what="a late moment")
    labels = {"lock": str(seconds)}
    control_plane.admin.create(pod(name, namespace=namespace, scheduler=NAME, labels=labels))

    def is_bound() -> bool:
        return name in {bind.pod for bind in binds(control_plane, namespace)}

    wait_until(is_bound, what=f"{name} is bound")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_standstills_within_the_renew_deadline_do_not_cost_the_lease(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(nodes(1))
    leader = start_leader(control_plane)
    second = start(control_plane, "second")
    before = lease(control_plane)
    for number in range(STANDSTILLS):
        stand_still(control_plane, namespace, f"pod-{number}", 0.8 * RENEW_DEADLINE)
    assert {bind.user for bind in binds(control_plane, namespace)} == {"first"}
    assert audit(control_plane, namespace).broken == ()
    after = lease(control_plane)
    for field in ("holderIdentity", "leaseTransitions", "acquireTime"):
        assert after[field] == before[field]
    for replica in (leader, second):
        assert "Leaderelection lost" not in replica.log


def test_a_process_that_stands_still_too_long_is_unhealthy(control_plane: ControlPlane) -> None:
    mooring = start_leader(control_plane)
    mooring.process.pause()
    seen = [mooring.get("/livez").code]
    wait_until(lambda: mooring.get("/livez").code == 500, what="/livez is red")
    mooring.process.resume()
    wait_until(lambda: mooring.get("/livez").text == "ok", what="/livez is green again")
    wait_until(lambda: mooring.is_ready, what="it is ready again")
    assert seen == [200]


def test_the_lease_of_a_killed_leader_is_not_renewed(control_plane: ControlPlane) -> None:
    mooring = start_leader(control_plane)
    (stand_in,) = children(mooring.process.pid)
    mooring.process.pause()
    last = renewal(control_plane)
    wait_until(lambda: renewal(control_plane) > last, what="its stand-in renews it")
    mooring.process.resume()
    mooring.process.kill()
    wait_until(lambda: not Path(f"/proc/{stand_in}").exists(), what="its stand-in has ended")
    last = renewal(control_plane)
    time.sleep(RETRY_PERIOD)
    assert renewal(control_plane) == last
