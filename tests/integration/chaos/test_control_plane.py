"""The programs of the control plane die or stand still while pods are scheduled."""

from __future__ import annotations

import time

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.integration.chaos.load import PACKING, Feeder, batches, sized_pods, tight_nodes
from tests.integration.chaos.scale import SCALE
from tests.integration.chaos.verdict import Run
from tests.integration.mooring_process import start_mooring


@pytest.fixture
def control_plane(durable_control_plane: ControlPlane) -> ControlPlane:
    return durable_control_plane


def test_nothing_is_lost_while_the_api_server_is_killed(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create_many(tight_nodes(SCALE.nodes))
    mooring = start_mooring(control_plane, config=PACKING)
    run = Run("API server killed", control_plane, namespace, [mooring])
    made = 0
    for batch in batches(sized_pods(SCALE.pods, namespace), SCALE.apiserver_kills):
        feeder = Feeder(admin, batch).start()
        run.wait_bound(made + len(batch) // 4)
        control_plane.apiserver.restart()
        feeder.wait()
        made += len(batch)
    run.notes["restarts"] = SCALE.apiserver_kills
    run.judge(SCALE.pods)


def test_nothing_is_lost_while_etcd_stands_still(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create_many(tight_nodes(SCALE.nodes))
    mooring = start_mooring(control_plane, config=PACKING)
    run = Run("etcd paused", control_plane, namespace, [mooring])
    feeder = Feeder(admin, sized_pods(SCALE.pods, namespace)).start()
    run.wait_bound(SCALE.pods // 4)
    control_plane.etcd.pause()
    time.sleep(SCALE.etcd_pause)
    control_plane.etcd.resume()
    run.notes["paused"] = f"{SCALE.etcd_pause:g} s"
    feeder.wait()
    run.judge(SCALE.pods)
