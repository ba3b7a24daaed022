"""Checks of what surrounds a scheduler: nodes, leases, other schedulers and their pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from mooring.api import core
from mooring.api.coordination import Lease
from mooring.api.meta import parse_time
from mooring.cli.doctor.findings import DoctorFinding, ok, problem, warning
from mooring.client.lease import Election
from mooring.config import DEFAULT_SCHEDULER_NAME
from mooring.lens.snapshot import ClusterState


class Leases(msgspec.Struct, frozen=True):
    """The leases of a cluster; `now` is when they were listed."""

    all: tuple[Lease, ...]
    now: float

    def holder(self, namespace: str, name: str) -> str | None:
        """Who holds it now; "" if it has lapsed, None if there is no such lease."""
        for lease in self.all:
            if (lease.metadata.namespace, lease.metadata.name) == (namespace, name):
                return self._holder(lease)
        return None

    def held(self, name: str) -> bool:
        """Whether a lease of this name is held, in any namespace."""
        return any(lease.metadata.name == name and self._holder(lease) for lease in self.all)

    def _holder(self, lease: Lease) -> str:
        spec = lease.spec
        if not spec.holder_identity or not spec.renew_time:
            return ""
        until = parse_time(spec.renew_time) + (spec.lease_duration_seconds or 0)
        return spec.holder_identity if until > self.now else ""


def check_nodes(cluster: ClusterState) -> Iterator[DoctorFinding]:
    """Whether there are nodes that pods can go to."""
    nodes = cluster.nodes
    if not nodes:
        yield problem("nodes", "there are none", "pods will wait until a node is added")
        return
    usable = [node for node in nodes if _is_ready(node) and not node.spec.unschedulable]
    text = f"{len(usable)} of {len(nodes)} are ready and not cordoned"
    if usable:
        yield ok("nodes", text)
    else:
        yield problem("nodes", text, "`kubectl get nodes` says why")


def check_schedulers(
    names: Sequence[str], cluster: ClusterState, leases: Leases | None
) -> Iterator[DoctorFinding]:
    """Names that two schedulers serve, and pods whose scheduler does not seem to run."""
    if leases is None:
        yield warning("names", "leases may not be listed", "grant `list leases` to see conflicts")
        return
    if DEFAULT_SCHEDULER_NAME in names and leases.holder("kube-system", "kube-scheduler"):
        yield problem(
            "names",
            f'"{DEFAULT_SCHEDULER_NAME}" is served by kube-scheduler, which is running',
            "give the profile a schedulerName of its own, or stop kube-scheduler",
        )
    waiting = Counter(
        pod.spec.scheduler_name
        for pod in cluster.pods
        if not pod.spec.node_name and not pod.spec.scheduling_gates
    )
    for name, count in sorted(waiting.items()):
        if name in names or name == DEFAULT_SCHEDULER_NAME or leases.held(name):
            continue
        pods = "1 pod waits" if count == 1 else f"{count} pods wait"
        yield warning(
            "names",
            f'{pods} for the scheduler "{name}", and no lease of that name is held',
            f"start it, or add a profile with schedulerName: {name}",
        )
    yield ok("names", f"profiles: {', '.join(names)}")


def check_lease(election: Election | None, leases: Leases | None) -> Iterator[DoctorFinding]:
    """Whether a replica leads."""
    if election is None:
        yield ok("lease", "leader election is off: run one replica only")
        return
    if leases is None:
        return
    name = f"{election.namespace}/{election.name}"
    holder = leases.holder(election.namespace, election.name)
    if holder:
        yield ok("lease", f"{name} is held by {holder}")
    elif holder is None:
        yield ok("lease", f"{name} does not exist: no replica has led yet")
    else:
        advice = "the next replica that starts takes it; if one should be running, see its log"
        yield warning("lease", f"{name} has lapsed: no replica leads", advice)


def _is_ready(node: core.Node) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
