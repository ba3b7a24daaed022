"""Two replicas: one leads, and when it falls silent the other takes over, and back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.controlplane.admin import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import Bind, binds
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.load import PACKING, Feeder, sized_pods, tight_nodes
from tests.integration.chaos.scale import IS_FULL, SCALE
from tests.integration.chaos.verdict import Run, metrics
from tests.integration.mooring_process import NAME, Mooring, scheduler_user, start_mooring

_LEASE, _DEADLINE, _RETRY = SCALE.lease
_SLOW = 150  # pods; several times as many as requests are under way at a time
_SLACK = 3.0  # seconds for a slow machine
_HEARTBEAT = 0.2  # seconds in which a leader has one, or it stands still
_STAND_IN = 0.5  # seconds until the lease of a leader that stands still is renewed for it
_FAIL_OVER = 20.0 if IS_FULL else _LEASE + 1.2 * _RETRY + _SLACK  # seconds


def start_replica(
    control_plane: ControlPlane,
    name: str,
    server: str = "",
    config: Mapping[str, Any] = PACKING,
) -> Mooring:
    """Under a user name of its own, so that the trail tells who was it."""
    return start_mooring(
        control_plane,
        name=name,
        user=scheduler_user(control_plane, name),
        config=config,
        server=server,
        flags=[
            "--leader-elect=true",
            f"--leader-elect-lease-duration={_LEASE:g}s",
            f"--leader-elect-renew-deadline={_DEADLINE:g}s",
            f"--leader-elect-retry-period={_RETRY:g}s",
        ],
    )


def lease(control_plane: ControlPlane) -> Object:
    spec: Object = control_plane.admin.get("coordination.k8s.io/v1/Lease", NAME, "kube-system")[
        "spec"
    ]
    return spec


def renewal(control_plane: ControlPlane) -> datetime:
    return datetime.fromisoformat(lease(control_plane)["renewTime"])


def leads(control_plane: ControlPlane, replica: Mooring) -> bool:
    name = f'leader_election_master_status{{name="{NAME}"}}'
    return metrics(replica, control_plane.token).get(name) == 1.0


def by(user: str, trail: list[Bind], since: datetime, until: datetime) -> list[Bind]:
    return [bind for bind in trail if bind.user == user and since < bind.time < until]


def test_a_leader_that_stood_still_binds_nothing_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    # So few requests a second that many decided pods wait for their bind, in either replica.
    slowly = {**PACKING, "clientConnection": {"qps": SCALE.qps, "burst": SCALE.qps}}
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    first = start_replica(control_plane, "first", config=slowly)
    wait_until(lambda: leads(control_plane, first), what="the first one leads")
    second = start_replica(control_plane, "second", config=slowly)
    run = Run("leader paused", control_plane, namespace, [first, second])
    feeder = Feeder(control_plane.admin, sized_pods(SCALE.pods, namespace)).start()
    run.wait_bound(SCALE.pods // 10)

    first.process.pause()
    paused = datetime.now(UTC)
    # By its stand-in, unless it had just renewed the lease itself, after its last heartbeat.
    began = paused - timedelta(seconds=_HEARTBEAT)
    wait_until(lambda: renewal(control_plane) > began, what="its lease is renewed")
    time.sleep(2 * _STAND_IN)
    renewed = renewal(control_plane)
    assert (renewed - paused).total_seconds() < 2 * _STAND_IN + _RETRY  # not by the second
    time.sleep(SCALE.leader_pause)
    taken = datetime.fromisoformat(lease(control_plane)["acquireTime"])
    first.process.resume()
    wait_until(lambda: first.is_ready, what="the first one is well again")
    time.sleep(2 * _RETRY)
    assert not leads(control_plane, first)
    assert leads(control_plane, second)

    second.process.kill()
    killed = datetime.now(UTC)
    wait_until(lambda: leads(control_plane, first), 2 * _FAIL_OVER, what="the first leads again")
    feeder.wait()
    run.wait_all_bound()

    trail = binds(control_plane, namespace)
    deadline = renewed + timedelta(seconds=_DEADLINE)
    (before, *_), (after, *_) = (
        by("second", trail, paused, killed),
        by("first", trail, killed, datetime.max.replace(tzinfo=UTC)),
    )
    run.notes["fail-over"] = f"{(before.time - paused).total_seconds():.1f} s"
    run.notes["and back"] = f"{(after.time - killed).total_seconds():.1f} s"
    run.notes["restarts"] = 0
    run.judge(SCALE.pods, restarted=True)
    assert first.process.is_alive
    assert by("first", trail, deadline, killed) == []
    assert by("second", trail, renewed, renewed + timedelta(seconds=_LEASE)) == []
    assert (taken - renewed).total_seconds() <= _FAIL_OVER
    assert (before.time - paused).total_seconds() <= _STAND_IN + _FAIL_OVER
    assert (after.time - killed).total_seconds() <= _FAIL_OVER


def test_binds_that_take_long_do_not_cost_the_lease(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    proxy = control_plane.proxy(seed=12)
    proxy.faults.bind_delay = _DEADLINE / 2
    replica = start_replica(control_plane, "patient", proxy.url)
    run = Run("slow binds", control_plane, namespace, [replica])
    wait_until(lambda: leads(control_plane, replica), what="it leads")
    acquired = lease(control_plane)["acquireTime"]
    control_plane.admin.create_many(sized_pods(_SLOW, namespace))
    run.judge(_SLOW)
    assert lease(control_plane)["acquireTime"] == acquired
