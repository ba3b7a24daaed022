"""etcd is restored from a backup: the API server goes back to an older version.

It accepts watches from versions that it does not have yet and sends nothing on them, so a client
that resumes its watches misses whatever happens before the server reaches these versions again.
"""

from __future__ import annotations

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.objects import nodes, pods
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import placements, wait_until_bound
from tests.integration.mooring_process import NAME, start_mooring

SECONDS = 60.0  # after which all pods must be bound


@pytest.mark.parametrize("passes", [False, True], ids=["behind", "ahead"])
def test_schedules_on_after_a_backup_was_restored(
    passes: bool, durable_control_plane: ControlPlane
) -> None:
    plane, admin = durable_control_plane, durable_control_plane.admin
    admin.create_many(nodes(20))
    mooring = start_mooring(plane)
    create_pods(plane, 10, "kept")
    wait_until_bound(plane, "default")
    plane.back_up("kept")
    create_pods(plane, 20, "lost")
    wait_until_bound(plane, "default")
    newest = version(plane)

    plane.restore("kept")
    if not passes:
        assert version(plane) < newest
    create_pods(plane, 10, "new")
    while passes and version(plane) <= newest:
        write(plane)
    wait_until_bound(plane, "default", timeout=SECONDS)
    while version(plane) <= newest:
        write(plane)
    create_pods(plane, 10, "later")
    wait_until_bound(plane, "default", timeout=SECONDS)
    found = {name.split("-")[0] for name in placements(plane, "default")}
    assert found == {"kept", "new", "later"}
    wait_until(lambda: mooring.is_ready, SECONDS, what="all kinds are watched again")


def create_pods(plane: ControlPlane, count: int, prefix: str) -> None:
    plane.admin.create_many(pods(count, prefix=prefix, scheduler=NAME, cpu="100m"))


def version(plane: ControlPlane) -> int:
    listed = plane.admin.request("GET", "/api/v1/nodes?limit=1")
    return int(listed["metadata"]["resourceVersion"])


def write(plane: ControlPlane) -> None:
    """Some changes that concern no pod."""
    before = version(plane)
    for number in range(50):
        change = {"metadata": {"annotations": {"count": f"{before}-{number}"}}}
        plane.admin.patch("Namespace", "default", change)
