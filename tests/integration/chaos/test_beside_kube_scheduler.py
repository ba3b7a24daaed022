"""Two schedulers share the nodes: ours and the real kube-scheduler."""

from __future__ import annotations

from tests.controlplane.admin import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import removals
from tests.controlplane.objects import nodes, pod
from tests.integration.chaos.load import Feeder
from tests.integration.chaos.scale import SCALE
from tests.integration.chaos.verdict import Run
from tests.integration.starting import NAME, scheduler_user, start_mooring

_SIZES = (4, 3, 2, 1)  # of pods, in units of 100m CPU and 200Mi of memory
_NODE = 20  # units; filled to 80 %
_OTHER = "default-scheduler"


def crowd(scheduler: str, namespace: str) -> list[Object]:
    sizes = [_SIZES[index % len(_SIZES)] for index in range(SCALE.beside)]
    return [
        pod(
            f"{scheduler}-{index:06d}",
            namespace=namespace,
            scheduler=scheduler,
            cpu=f"{size}00m",
            memory=f"{200 * size}Mi",
        )
        for index, size in enumerate(sizes)
    ]


def test_each_schedules_its_own_and_no_node_is_too_full(
    control_plane: ControlPlane, namespace: str
) -> None:
    units = 2 * SCALE.beside * sum(_SIZES) / len(_SIZES)
    count = round(units / _NODE / 0.8)
    control_plane.admin.create_many(nodes(count, cpu=f"{_NODE}00m", memory=f"{200 * _NODE}Mi"))
    control_plane.kube_scheduler()
    mooring = start_mooring(control_plane, user=scheduler_user(control_plane, "ours"))
    run = Run("beside kube-scheduler", control_plane, namespace, [mooring])
    feeders = [
        Feeder(control_plane.admin, crowd(scheduler, namespace), rate=100).start()
        for scheduler in (NAME, _OTHER)
    ]
    for feeder in feeders:
        feeder.wait()
    trail = run.judge(2 * SCALE.beside)
    bound = {(bind.user, bind.pod.rpartition("-")[0]) for bind in trail if bind.code == 201}
    assert bound == {("ours", NAME), ("system:kube-scheduler", _OTHER)}
    assert removals(control_plane, namespace) == []
