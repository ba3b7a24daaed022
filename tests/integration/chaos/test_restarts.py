"""The scheduler itself is killed, again and again, with binds on their way."""

from __future__ import annotations

import random
import time

from tests.controlplane.cluster import ControlPlane
from tests.integration.chaos.load import PACKING, Feeder, sized_pods, tight_nodes
from tests.integration.chaos.scale import SCALE
from tests.integration.chaos.verdict import Run
from tests.integration.starting import start_mooring

_LIFE = (0.2, 2.0)  # seconds from ready to dead


def test_a_killed_scheduler_goes_on_where_it_was(
    control_plane: ControlPlane, namespace: str
) -> None:
    dice = random.Random(5)
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    mooring = start_mooring(control_plane, config=PACKING)
    run = Run("scheduler killed", control_plane, namespace, [mooring])
    rate = SCALE.pods / (3.0 * SCALE.scheduler_kills)
    feeder = Feeder(control_plane.admin, sized_pods(SCALE.pods, namespace), rate).start()
    for _ in range(SCALE.scheduler_kills):
        time.sleep(dice.uniform(*_LIFE))
        mooring.process.restart()
    run.notes["restarts"] = SCALE.scheduler_kills
    feeder.finish()
    run.judge(SCALE.pods, restarted=True)
    assert mooring.process.is_alive
