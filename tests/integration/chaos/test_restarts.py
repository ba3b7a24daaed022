"""The scheduler itself is killed, again and again, with binds on their way."""

from __future__ import annotations

import random

from tests.controlplane.cluster import ControlPlane
from tests.integration.chaos.load import PACKING, Feeder, batches, sized_pods, tight_nodes
from tests.integration.chaos.scale import SCALE
from tests.integration.chaos.verdict import Run
from tests.integration.mooring_process import start_mooring


def test_a_killed_scheduler_goes_on_where_it_was(
    control_plane: ControlPlane, namespace: str
) -> None:
    dice = random.Random(5)
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    mooring = start_mooring(control_plane, config=PACKING)
    run = Run("scheduler killed", control_plane, namespace, [mooring])
    made = 0
    for batch in batches(sized_pods(SCALE.pods, namespace), SCALE.scheduler_kills):
        feeder = Feeder(control_plane.admin, batch).start()
        run.wait_bound(made + dice.randrange(len(batch) // 2))
        mooring.process.restart()
        feeder.wait()
        made += len(batch)
    run.notes["restarts"] = SCALE.scheduler_kills
    run.judge(SCALE.pods, restarted=True)
    assert mooring.process.is_alive
