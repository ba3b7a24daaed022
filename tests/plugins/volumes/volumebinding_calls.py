"""Runs VolumeBinding on two nodes, in both forms."""

from tests.plugins.volumes.storage import storage_class, user

from mooring.api.meta import Object
from mooring.framework import OK, CycleState, Node, Status
from mooring.plugins.volumebinding.plugin import RESERVATION, VolumeBinding
from mooring.testing import StubHandle, build, node, nodes

LOCAL = storage_class(provisioner="kubernetes.io/no-provisioner")
CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
TWO = (node("a", zone="east"), node("b", zone="west"))


def ask(claims: str, *objects: Object, members: tuple[Node, ...] = TWO) -> list[Status]:
    """The statuses of the nodes; both forms must agree."""
    cluster = nodes(*members)
    plugin = build(VolumeBinding, handle=StubHandle(nodes=cluster, objects=objects))
    waiting, state = user("p", *claims.split()), CycleState()
    assert plugin.pre_filter(state, waiting, cluster) is OK
    one_by_one = [plugin.filter(state, waiting, it) for it in cluster]
    verdicts = plugin.filter_all(state, waiting, cluster)
    assert [verdicts.status(row) for row in range(len(cluster))] == one_by_one
    return one_by_one


def refused(*reasons: str) -> Status:
    return Status.unresolvable(*reasons)


def gets(claims: str, *objects: Object, on: str = "a") -> dict[str, str]:
    """Claim -> the volume it would get on a node, or "new"."""
    cluster = nodes(*TWO)
    plugin = build(VolumeBinding, handle=StubHandle(nodes=cluster, objects=objects))
    waiting, state = user("p", *claims.split()), CycleState()
    assert plugin.pre_filter(state, waiting, cluster) is OK
    assert plugin.reserve(state, waiting, on) is OK
    reservation = state[RESERVATION]
    found = {binding.claim.name: binding.volume.name for binding in reservation.static_bindings}
    return found | {claim.name: "new" for claim in reservation.dynamic_provisions}
