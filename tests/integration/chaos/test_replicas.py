"""Two replicas: one leads, and when it falls silent the other takes over, and back."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from tests.controlplane.admin import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import Bind, binds
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.load import PACKING, Feeder, sized_pods, tight_nodes
from tests.integration.chaos.scale import IS_FULL, SCALE
from tests.integration.chaos.verdict import Run, metrics
from tests.integration.starting import NAME, Mooring, scheduler_user, start_mooring

_LEASE, _DEADLINE, _RETRY = SCALE.lease
_FAIL_OVER = (
    20.0 if IS_FULL else _LEASE + 1.2 * _RETRY + 1.0
)  # seconds; the last for a slow machine


def start_replica(control_plane: ControlPlane, name: str) -> Mooring:
    """Under a user name of its own, so that the trail tells who was it."""
    return start_mooring(
        control_plane,
        name=name,
        user=scheduler_user(control_plane, name),
        config=PACKING,
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


def leads(control_plane: ControlPlane, replica: Mooring) -> bool:
    name = f'leader_election_master_status{{name="{NAME}"}}'
    return metrics(replica, control_plane.token).get(name) == 1.0


def by(user: str, trail: list[Bind], since: datetime, until: datetime) -> list[Bind]:
    return [bind for bind in trail if bind.user == user and since < bind.time < until]


def test_a_leader_that_stood_still_binds_nothing_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    first = start_replica(control_plane, "first")
    wait_until(lambda: leads(control_plane, first), what="the first one leads")
    second = start_replica(control_plane, "second")
    run = Run("leader paused", control_plane, namespace, [first, second])
    rate = SCALE.pods / (2 * SCALE.leader_pause + _LEASE)
    feeder = Feeder(control_plane.admin, sized_pods(SCALE.pods, namespace), rate).start()
    wait_until(lambda: binds(control_plane, namespace), what="the first one binds")
    time.sleep(2.0)

    first.process.pause()
    paused = datetime.now(UTC)
    renewed = datetime.fromisoformat(lease(control_plane)["renewTime"])
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
    feeder.finish()
    wait_until(lambda: run.waiting() == 0, SCALE.deadline, what="all pods are bound")

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
    assert (before.time - paused).total_seconds() <= _FAIL_OVER
    assert (after.time - killed).total_seconds() <= _FAIL_OVER
