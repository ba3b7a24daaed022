"""The way to the API server is bad: answers are lost, watches are cut, requests are put off."""

from __future__ import annotations

import time

import pytest
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.load import PACKING, Feeder, batches, sized_pods, tight_nodes
from tests.integration.chaos.scale import IS_FULL, SCALE
from tests.integration.chaos.verdict import Run
from tests.integration.mooring_process import start_mooring

_HOLE = 40.0  # seconds
_NOTICED = 60.0  # seconds in which it must be


def test_no_pod_is_bound_twice_when_answers_to_binds_are_cut(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    proxy = control_plane.proxy(seed=3)
    proxy.faults.cut_bind_replies = 0.2
    mooring = start_mooring(control_plane, config=PACKING, server=proxy.url)
    run = Run("20 % of bind replies cut", control_plane, namespace, [mooring])
    control_plane.admin.create_many(sized_pods(SCALE.pods, namespace))
    trail = run.judge(SCALE.pods)
    assert len(trail) == SCALE.pods  # each was asked for once: what was lost was looked up
    assert proxy.counters["bind replies cut"] > SCALE.pods / 10


def test_nothing_is_missed_when_watches_are_cut(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    proxy = control_plane.proxy(seed=4)
    proxy.faults.cut_watches_every = 2.0
    mooring = start_mooring(control_plane, config=PACKING, server=proxy.url)
    run = Run("watches cut every 2 s", control_plane, namespace, [mooring])
    rate = SCALE.pods / SCALE.watch_cutting
    Feeder(control_plane.admin, sized_pods(SCALE.pods, namespace), rate).start().wait()
    run.notes["watches"] = proxy.counters["watches"]
    run.judge(SCALE.pods)


def test_nothing_is_lost_in_a_network_that_is_bad_in_every_way(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    proxy = control_plane.proxy(seed=7)
    mooring = start_mooring(control_plane, config=PACKING, server=proxy.url)
    proxy.faults.cut_bind_replies = 0.2
    proxy.faults.throttle = 0.3
    proxy.faults.watch_lag = 1.0
    run = Run("cut, throttled and late", control_plane, namespace, [mooring])
    control_plane.admin.create_many(sized_pods(SCALE.pods, namespace))
    run.judge(SCALE.pods)
    assert proxy.counters["throttled"] > 0


@pytest.mark.skipif(not IS_FULL, reason="takes a minute: only with MOORING_CHAOS=full")
def test_a_network_that_swallows_everything_is_noticed(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    proxy = control_plane.proxy(seed=10)
    mooring = start_mooring(control_plane, config=PACKING, server=proxy.url)
    run = Run("black hole", control_plane, namespace, [mooring])
    early, late = batches(sized_pods(SCALE.pods, namespace), 2)
    feeder = Feeder(control_plane.admin, early).start()
    run.wait_bound(len(early) // 2)
    proxy.black_hole()
    began = time.monotonic()
    feeder.wait()
    Feeder(control_plane.admin, late).start().wait()
    wait_until(lambda: not mooring.is_ready, _NOTICED, what="the scheduler notices", every=0.5)
    run.notes["noticed after"] = f"{time.monotonic() - began:.0f} s"
    time.sleep(max(0.0, began + _HOLE - time.monotonic()))
    proxy.heal()
    run.judge(SCALE.pods)
    wait_until(lambda: mooring.is_ready, what="the scheduler is well again")
