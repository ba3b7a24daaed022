"""Two schedulers share the nodes: ours and the real kube-scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from tests.controlplane.admin import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import audit, removals
from tests.controlplane.objects import nodes, pod
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.load import Feeder
from tests.integration.chaos.scale import SCALE
from tests.integration.chaos.verdict import Run, metrics
from tests.integration.mooring_process import NAME, Mooring, scheduler_user, start_mooring

_SIZES = (4, 3, 2, 1)  # of pods, in units of 100m CPU and 200Mi of memory
_NODE = 40  # units
_FULL = 0.6  # of all nodes in the end: what one binds before it has seen the other's binds has room
_OTHER = "default-scheduler"


def crowd(scheduler: str, namespace: str, sizes: Sequence[int]) -> list[Object]:
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


def schedule_together(
    title: str, control_plane: ControlPlane, namespace: str, sizes: Sequence[int]
) -> tuple[Run, Mooring]:
    """Each of the two gets pods of these sizes, at the same time."""
    control_plane.kube_scheduler()
    mooring = start_mooring(control_plane, user=scheduler_user(control_plane, "ours"))
    run = Run(title, control_plane, namespace, [mooring])
    feeders = [
        Feeder(control_plane.admin, crowd(scheduler, namespace, sizes), rate=100).start()
        for scheduler in (NAME, _OTHER)
    ]
    for feeder in feeders:
        feeder.wait()
    return run, mooring


def test_each_schedules_its_own_and_no_node_is_too_full(
    control_plane: ControlPlane, namespace: str
) -> None:
    sizes = [_SIZES[index % len(_SIZES)] for index in range(SCALE.beside)]
    count = round(2 * sum(sizes) / _NODE / _FULL)
    control_plane.admin.create_many(nodes(count, cpu=f"{_NODE}00m", memory=f"{200 * _NODE}Mi"))
    run, _ = schedule_together("beside kube-scheduler", control_plane, namespace, sizes)
    trail = run.judge(2 * SCALE.beside)
    bound = {(bind.user, bind.pod.rpartition("-")[0]) for bind in trail if bind.code == 201}
    assert bound == {("ours", NAME), ("system:kube-scheduler", _OTHER)}
    assert removals(control_plane, namespace) == []


def test_every_node_that_both_have_filled_is_counted(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Nodes for one pod each: here two schedulers cannot but meet, and the server lets them."""
    count = SCALE.beside // 3
    control_plane.admin.create_many(nodes(2 * count, cpu="100m", memory="200Mi"))
    run, mooring = schedule_together("one place each", control_plane, namespace, [1] * count)
    run.wait_all_bound()
    found = len(audit(control_plane).overcommitted) / 2  # once for CPU, once for memory
    name = 'mooring_scheduling_conflicts_total{kind="overcommitted"}'
    wait_until(
        lambda: metrics(mooring, control_plane.token).get(name, 0.0) >= found,
        what=f"{found:g} conflicts are counted",
    )
    run.notes["nodes too full"] = f"{found:g}"
    run.show()
