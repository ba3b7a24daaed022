"""The programs of the control plane die or stand still while pods are scheduled."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.integration.chaos.load import PACKING, Feeder, sized_pods, tight_nodes
from tests.integration.chaos.scale import SCALE
from tests.integration.chaos.verdict import Run
from tests.integration.starting import start_mooring

_BETWEEN = 2.0  # seconds of work between two deaths


@pytest.fixture
def control_plane(durable_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield durable_control_plane
    durable_control_plane.reset()


def test_nothing_is_lost_while_the_api_server_is_killed(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create_many(tight_nodes(SCALE.nodes))
    mooring = start_mooring(control_plane, config=PACKING)
    run = Run("API server killed", control_plane, namespace, [mooring])
    rate = SCALE.pods / (SCALE.apiserver_kills * 2 * _BETWEEN)
    feeder = Feeder(admin, sized_pods(SCALE.pods, namespace), rate).start()
    for _ in range(SCALE.apiserver_kills):
        time.sleep(_BETWEEN)
        control_plane.apiserver.restart()
    run.notes["restarts"] = SCALE.apiserver_kills
    feeder.finish()
    run.judge(SCALE.pods)


def test_nothing_is_lost_while_etcd_stands_still(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    admin.create_many(tight_nodes(SCALE.nodes))
    mooring = start_mooring(control_plane, config=PACKING)
    run = Run("etcd paused", control_plane, namespace, [mooring])
    rate = SCALE.pods / (2 * _BETWEEN + SCALE.etcd_pause)
    feeder = Feeder(admin, sized_pods(SCALE.pods, namespace), rate).start()
    time.sleep(_BETWEEN)
    control_plane.etcd.pause()
    time.sleep(SCALE.etcd_pause)
    control_plane.etcd.resume()
    run.notes["paused"] = f"{SCALE.etcd_pause:g} s"
    feeder.finish()
    run.judge(SCALE.pods)
