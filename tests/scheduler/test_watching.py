"""What is watched follows from the plugins; what does not matter is not even asked for."""

from tests.client.client_rig import ClientRig

import mooring.framework as fw
from mooring import config as cfg
from mooring.api.apps import StatefulSet
from mooring.api.core import ConfigMap, Namespace, Node, PersistentVolume, Pod
from mooring.api.meta import Object
from mooring.api.policy import PodDisruptionBudget
from mooring.api.resource import ResourceClaim
from mooring.client import paths
from mooring.client.informer import UNFINISHED_PODS, Informers
from mooring.framework.plugin import Base
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry
from mooring.scheduler.watching import add_informers, kinds_to_watch
from mooring.simulator import Simulation

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Curious(fw.Score):
    """Looks up one kind, and would be woken by another."""

    name = "Curious"
    reads = (ConfigMap, Pod, Node)
    wakes_on = (fw.ClusterEvent("apps/StatefulSet", fw.Action.ADD), fw.Event.NODE_ADDED)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 0


def plans(plugins: str, *known: type[Base]) -> list[ProfilePlan]:
    config = cfg.load_text(f"{HEADER}profiles:\n- plugins: {plugins}\n")
    return plan_profiles(config, Registry.discover(known))


def watched(plugins: str, *known: type[Base]) -> list[type[Object]]:
    return kinds_to_watch(plans(plugins, *known))


NOTHING = (
    "{multiPoint: {disabled: [{name: '*'}],"
    " enabled: [{name: PrioritySort}, {name: DefaultBinder}%s]}}"
)


def test_kinds_that_plugins_look_up_are_watched() -> None:
    found = watched("{}")
    assert {Namespace, PersistentVolume, PodDisruptionBudget, StatefulSet} <= set(found)
    assert PodDisruptionBudget not in watched(
        "{multiPoint: {disabled: [{name: DefaultPreemption}]}}"
    )


def test_without_plugins_only_pods_and_nodes_are_watched() -> None:
    assert watched(NOTHING % "") == []


def test_kinds_of_your_plugins_are_watched_and_those_that_wake_its_pods() -> None:
    assert watched(NOTHING % ", {name: Curious}", Curious) == [ConfigMap, StatefulSet]


def test_order_is_always_the_same() -> None:
    found = watched("{}")
    assert found == sorted(found, key=lambda kind: (paths.group_of(kind), kind.KIND))


def test_finished_pods_and_nodes_out_of_scope_are_not_asked_for() -> None:
    with Simulation() as sim, ClientRig() as rig:
        handlers = sim.scheduler.handlers
        informers = Informers(rig.client)
        add_informers(informers, rig.client, handlers, [Namespace], "pool=mine")
        for name, pool in (("n", "mine"), ("other", "theirs")):
            meta = {"name": name, "uid": name, "labels": {"pool": pool}}
            rig.server.put(Node, name, metadata=meta, status={"allocatable": {"cpu": "1"}})
        for name, phase in (("busy", "Running"), ("finished", "Succeeded")):
            rig.server.put(Pod, name, spec={"nodeName": "n"}, status={"phase": phase})
        rig.start(informers.run())
        assert informers.all_synced
        asked = {(request.verb, request.path): request.query for request in rig.server.asked}
        for verb in ("list", "watch"):
            nodes = asked[verb, paths.collection(Node)]
            pods = asked[verb, paths.collection(Pod)]
            namespaces = asked[verb, paths.collection(Namespace)]
            assert (nodes.get("labelSelector"), nodes.get("fieldSelector")) == ("pool=mine", None)
            assert (pods.get("labelSelector"), pods.get("fieldSelector")) == (None, UNFINISHED_PODS)
            assert "labelSelector" not in namespaces
        [node] = sim.scheduler.cache.nodes
        assert (node.name, [pod.name for pod in node.pods]) == ("n", ["busy"])
        assert len(asked) == 6


def test_claims_are_listed_before_the_pods_that_name_them() -> None:
    """Otherwise every pod is gated first, and asked again at every claim."""
    with Simulation() as sim, ClientRig() as rig:
        informers = Informers()
        kinds = kinds_to_watch(plans("{}"))
        add_informers(informers, rig.client, sim.scheduler.handlers, kinds)
        rig.server.forbidden = {("list", ResourceClaim)}
        rig.start(informers.run())
        assert {"pods", "resourceclaims.resource.k8s.io"} == set(informers.unsynced())
        rig.server.forbidden.clear()
        rig.advance(30)
        assert informers.all_synced
