"""The random controller as a process on a real control plane, while things around it break.

150 pods beside all other tests, 1,000 with MOORING_CHAOS=full.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import pytest
from tests.controlplane import users
from tests.controlplane.admin import AdminApi, ApiFailure, Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import audit, binds
from tests.controlplane.objects import nodes, pods
from tests.controlplane.processes import free_port
from tests.controlplane.users import User
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.load import Feeder, batches, insist
from tests.integration.chaos.scale import IS_FULL, SCALE
from tests.integration.chaos.verdict import metrics
from tests.integration.cluster_reads import wait_for_event
from tests.integration.mooring_process import ROOT, Mooring

from mooring.controller.rbac import cluster_permissions, lease_permissions, rules

NAME = "my-scheduler"
EXAMPLE = ROOT / "examples" / "random_controller"
PODS = 1000 if IS_FULL else 150
NODES = [f"node-{index:05d}" for index in range(20)]
_RATE = 75.0  # pods a second
_HEAD_START = 0.03  # seconds; until then the controller has sent its own Binding…
_ON_ITS_WAY = 0.2  # …which takes so long to arrive


@pytest.fixture
def control_plane(durable_control_plane: ControlPlane) -> ControlPlane:
    """One whose programs may be hurt."""
    durable_control_plane.admin.create_many(nodes(len(NODES)))
    return durable_control_plane


def controller_user(control_plane: ControlPlane, name: str = "controller") -> User:
    """Somebody who may do what a controller says it needs, and nothing else."""
    user = control_plane.add_user(name)
    control_plane.grant(user, rules(cluster_permissions(reviews=True)))
    control_plane.grant(user, rules(lease_permissions("kube-system", NAME)), "kube-system")
    binding = users.role_and_binding(f"{user.file_name}-client-ca", user, [], "kube-system")[1]
    binding["roleRef"]["name"] = "extension-apiserver-authentication-reader"
    with suppress(ApiFailure):  # from an earlier test
        control_plane.admin.create(binding)
    return user


def start_controller(
    control_plane: ControlPlane,
    user: User,
    *,
    server: str = "",
    name: str = "controller",
    flags: Sequence[str] = (),
) -> Mooring:
    """Run `mooring controller random_controller:choose` and wait until it is ready."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "mooring", "controller", "random_controller:choose"),
        *("--kubeconfig", str(control_plane.kubeconfig_for(user, server))),
        *("--bind-address", "127.0.0.1", "--secure-port", str(port), "-v", "2"),
        *("--kube-api-qps", "1000", "--kube-api-burst", "1000", "--workers", "32", *flags),
    ]
    holder: list[Mooring] = []
    process = control_plane.run(
        name,
        command,
        ready=lambda: holder[0].is_ready,
        env={"PYTHONPATH": str(EXAMPLE)},
        forked=True,
    )
    holder.append(Mooring(process, port))
    process.wait_ready()
    return holder[0]


class Rivalry(Feeder):
    """Creates pods, and binds a third of them itself, at the same time as the controller does."""

    def __init__(self, admin: AdminApi, namespace: str, made: Sequence[Object]) -> None:
        super().__init__(admin, made, _RATE)
        self._namespace = namespace
        self._bound_here = {value["metadata"]["name"] for value in made[::3]}
        self.outcomes: Counter[str] = Counter()

    def create(self, value: Object) -> None:
        super().create(value)
        name = value["metadata"]["name"]
        if name in self._bound_here:
            time.sleep(_HEAD_START)
            node = random.Random(name).choice(NODES)
            try:
                insist(lambda: self.admin.bind(self._namespace, name, node))
                self.outcomes["won"] += 1
            except ApiFailure as error:
                if error.code != 409:
                    raise
                self.outcomes["lost"] += 1


def tiny_pods(count: int, namespace: str, prefix: str = "pod") -> list[Object]:
    """Pods that fit wherever dice send them."""
    options = {"namespace": namespace, "scheduler": NAME, "cpu": "1m", "memory": "1Mi"}
    return pods(count, prefix=prefix, **options)


def wait_bound(control_plane: ControlPlane, namespace: str, count: int) -> None:
    wait_until(
        lambda: len(binds(control_plane, namespace)) >= count,
        SCALE.deadline,
        what=f"{count} pods are bound",
    )


def counted(controller: Mooring, token: str) -> dict[str, float]:
    """Binds by what came of them."""
    found = {}
    for name, value in metrics(controller, token).items():
        if name.startswith("mooring_controller_binds_total"):
            found[name.split('result="')[1].split('"')[0]] = value
    return found


def test_each_pod_is_bound_once_through_restarts_lost_answers_and_rivals(
    control_plane: ControlPlane, namespace: str
) -> None:
    user = controller_user(control_plane)
    proxy = control_plane.proxy(seed=6)
    controller = start_controller(control_plane, user, server=proxy.url)
    pid, began = controller.process.pid, time.monotonic()
    # What it sends is slow, so a rival is faster; and one answer in ten never comes.
    proxy.faults.bind_delay, proxy.faults.cut_bind_replies = _ON_ITS_WAY, 0.1
    rival: Counter[str] = Counter()
    made = 0
    for batch in batches(tiny_pods(PODS, namespace), SCALE.apiserver_kills):
        rivalry = Rivalry(control_plane.admin, namespace, batch).start()
        wait_bound(control_plane, namespace, made + len(batch) * 2 // 3)
        control_plane.apiserver.restart()
        rivalry.wait()
        rival += rivalry.outcomes
        made += len(batch)
    unbound = {"fieldSelector": "spec.nodeName="}
    wait_until(
        lambda: not insist(lambda: control_plane.admin.list("Pod", namespace, **unbound)),
        SCALE.deadline,
        what="all pods are bound",
        every=0.5,
    )
    seconds = time.monotonic() - began

    token = control_plane.token
    in_order = {
        f'mooring_controller_pending_pods{{controller="{NAME}",state="{state}"}}': 0.0
        for state in ("ready", "refused", "binding")
    }
    wait_until(
        lambda: in_order.items() <= metrics(controller, token).items(),
        what="the controller knows that all is done",
    )
    found = audit(control_plane, namespace)
    trail = binds(control_plane, namespace)
    ours = [bind for bind in trail if bind.user == user.name]
    codes = Counter(bind.code for bind in ours)
    print(
        f"\nrandom controller: {found.bound} of {PODS} pods bound in {seconds:.0f} s,"
        f" {SCALE.apiserver_kills} restarts, bound twice {len(found.double_binds)},"
        f" our requests {dict(codes)}, we counted {counted(controller, token)},"
        f" rival {dict(rival)}, answers cut {proxy.counters['bind replies cut']},"
        f" outcomes looked up {controller.log.count('the outcome of a bind is unknown')}",
        flush=True,
    )
    assert found.broken == ()
    assert found.unbound == ()
    assert found.bound == PODS
    assert codes[409] > PODS / 30
    assert counted(controller, token)["conflict"] > PODS / 30
    assert proxy.counters["bind replies cut"] > 0
    assert controller.process.is_alive
    assert controller.process.pid == pid
    assert "Traceback" not in controller.log
    controller.process.stop(timeout=30)
    assert controller.process.exit_code == 0


def test_a_replica_takes_over_from_a_leader_that_was_killed(
    control_plane: ControlPlane, namespace: str
) -> None:
    user = controller_user(control_plane, "replicas")
    duration, deadline, retry = SCALE.lease
    flags = (
        *("--leader-elect", f"--leader-elect-lease-duration={duration:g}s"),
        *(
            f"--leader-elect-renew-deadline={deadline:g}s",
            f"--leader-elect-retry-period={retry:g}s",
        ),
    )
    first = start_controller(control_plane, user, name="first", flags=flags)
    second = start_controller(control_plane, user, name="second", flags=flags)
    control_plane.admin.create_many(tiny_pods(30, namespace, "before"))
    wait_bound(control_plane, namespace, 30)
    bind = binds(control_plane, namespace)[0]
    told = wait_for_event(control_plane, namespace, bind.pod, "Scheduled")
    assert told["note"] == f"Successfully assigned {bind.key} to {bind.node}"
    assert told["reportingController"] == NAME
    assert counted(second, control_plane.token) == {}
    first.process.kill()
    control_plane.admin.create_many(tiny_pods(30, namespace, "after"))
    wait_until(
        lambda: not audit(control_plane, namespace).unbound,
        duration + 30.0,
        what="the other replica binds what is left",
        every=0.5,
    )
    found = audit(control_plane, namespace)
    assert (found.broken, found.bound) == ((), 60)
    assert counted(second, control_plane.token)["bound"] == 30
