"""Remedies that change the configuration: tried out with it, and told last."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from msgspec import structs
from tests.lens.clusters import cluster_of, texts
from tests.lens.test_remedies import merged, state_of, with_patches
from tests.sizes import sized

import mooring.framework as fw
from mooring import config as cfg
from mooring.api import codec, core
from mooring.api.apps import ReplicaSet
from mooring.cache.pods import Pod
from mooring.config.defaults import DEFAULT_MULTIPOINT
from mooring.lens.configurations import Configurations
from mooring.lens.explainer import Explainer
from mooring.lens.explanation import Explanation, ObjectPatch, Remedy
from mooring.lens.private import PrivateCluster
from mooring.lens.remedies import remedies_for
from mooring.lens.snapshot import Snapshot
from mooring.runtime.registry import Registry
from mooring.testing import node, pod
from mooring.testing._random_clusters import random_cluster

ZONE = "topology.kubernetes.io/zone"


class Closed(fw.Filter):
    """Refuses every node, unless another pod says otherwise."""

    name = "Closed"
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unresolvable("node(s) were closed")


class QuotaArgs(fw.Args, frozen=True):
    """How many pods a node may have."""

    most: int = 1
    names: dict[str, str] = {}


class Quota(fw.Plugin[QuotaArgs], fw.Filter):
    """Refuses nodes with too many pods, and says how many would have to be allowed."""

    name = "Quota"
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        is_full = len(list(node.pods)) >= self.args.most
        return fw.Status.unschedulable("node(s) had their quota") if is_full else fw.OK

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> list[fw.Edit]:
        assert node is not None
        most = len(list(node.pods)) + 1
        args = structs.replace(self.args, most=most)
        text = f"a quota of {most}"
        return [fw.Edit.of_args(text, self.name, args, family="quota", amount=float(most))]


class Gate(fw.PreEnqueue):
    """Keeps every pod out of the queue."""

    name = "Gate"
    wakes_on = ()

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status:
        return fw.Status.unresolvable("waiting for approval")


def config_of(*profiles: dict[str, Any]) -> cfg.KubeSchedulerConfiguration:
    fields = {"apiVersion": cfg.API_VERSION, "kind": cfg.KIND, "profiles": profiles}
    return cfg.load_text(json.dumps(fields), "test")


def enabling(*names: str, **args: dict[str, Any]) -> dict[str, Any]:
    return {
        "plugins": {"multiPoint": {"enabled": [{"name": name} for name in names]}},
        "pluginConfig": [{"name": name, "args": one} for name, one in args.items()],
    }


def with_args(name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"pluginConfig": [{"name": name, "args": args}]}


def explained(
    config: cfg.KubeSchedulerConfiguration,
    wanted: Pod,
    nodes: list[fw.Node],
    pods: list[Pod] | None = None,
    objects: list[Any] | None = None,
) -> Explanation:
    """With a check of every remedy that changes the configuration: as its user would make it."""
    registry = Registry.discover([Closed, Quota, Gate])
    cluster = cluster_of(nodes, [*(pods or ()), wanted], objects or ())
    snapshot = Snapshot(cluster=cluster)
    found = Explainer(snapshot, config, registry).explain(wanted.api)
    for remedy in found.remedies or ():
        if [edit.target for edit in remedy.edits] == ["configuration"]:
            other, other_pod = applied(config, wanted, remedy)
            changed = structs.replace(cluster, pods=(*cluster.pods[:-1], other_pod.api))
            after = Explainer(Snapshot(cluster=changed), other, registry).explain(other_pod.api)
            assert after.feasible == remedy.nodes, remedy.text
            assert after.choice is not None
            assert after.choice.node == remedy.node
    return found


def applied(
    config: cfg.KubeSchedulerConfiguration, wanted: Pod, remedy: Remedy
) -> tuple[cfg.KubeSchedulerConfiguration, Pod]:
    (edit,) = remedy.edits
    (patch,) = edit.patches
    if patch.kind == "Pod":
        fields = merged(codec.to_builtins(wanted.api), patch.patch)
        return config, Pod(codec.convert(fields, core.Pod))
    return configured(config, [patch]), wanted


def configured(
    config: cfg.KubeSchedulerConfiguration, patches: Iterable[ObjectPatch]
) -> cfg.KubeSchedulerConfiguration:
    """The configuration with patches of its profiles."""
    profiles = {one.scheduler_name: msgspec.to_builtins(one) for one in config.profiles}
    for patch in patches:
        assert patch.kind == cfg.KIND
        profiles[patch.name] = merged(profiles[patch.name], patch.patch)
    return config_of(*profiles.values())


def added_affinity(**labels: str) -> dict[str, Any]:
    tests = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    required = {"nodeSelectorTerms": [{"matchExpressions": tests}]}
    field = "requiredDuringSchedulingIgnoredDuringExecution"
    return with_args("NodeAffinity", {"addedAffinity": {field: required}})


def test_added_affinity_that_no_node_matches() -> None:
    config = config_of(added_affinity(pool="web"))
    found = explained(config, pod("web"), [node("a", labels={"pool": "batch"}), node("b")])
    assert texts(found) == [
        "label a pool=web",
        "drop the required part of addedAffinity",
    ]
    assert found.remedies is not None
    assert [one.target for one in found.remedies] == ["cluster", "configuration"]
    assert found.remedies[1].nodes == 2


def test_of_several_expressions_only_the_one_in_the_way_is_dropped() -> None:
    config = config_of(added_affinity(pool="web", disk="ssd"))
    nodes = [node("b", labels={"pool": "batch"}), node("a", labels={"pool": "web"})]
    found = explained(config, pod("web"), nodes)
    assert "drop disk=ssd from addedAffinity" in texts(found)
    assert "drop the required part of addedAffinity" not in texts(found)


def test_default_constraints_that_refuse() -> None:
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    args = {"defaultingType": "List", "defaultConstraints": [constraint]}
    owner = codec.convert(
        {
            "metadata": {"name": "web", "namespace": "default", "uid": "rs"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
        },
        ReplicaSet,
    )
    nodes = [node("a", zone="a"), node("b", zone="b", cpu=1)]
    labels = {"app": "web"}
    pods = [pod(f"web-{i}", labels=labels, on="a") for i in range(2)]
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs"}
    fields = codec.to_builtins(pod("web-2", cpu=2, labels=labels).api)
    fields["metadata"]["ownerReferences"] = [{**controller, "controller": True}]
    wanted = Pod(codec.convert(fields, core.Pod))
    found = explained(config_of(with_args("PodTopologySpread", args)), wanted, nodes, pods, [owner])
    assert f"raise maxSkew of {ZONE} to 3, in defaultConstraints" in texts(found)
    assert f"prefer the spread by {ZONE}, not require it, in defaultConstraints" not in texts(found)


def test_a_plugin_of_the_user_is_disabled_and_none_of_the_defaults() -> None:
    found = explained(config_of(enabling("Closed")), pod("web"), [node("a"), node("b")])
    assert texts(found) == ["disable Closed"]
    every = [{"name": one.name, "weight": one.weight} for one in DEFAULT_MULTIPOINT]
    listed = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": every}}
    for profile in ({}, {"plugins": listed}):
        found = explained(config_of(profile), pod("web", node_selector={"a": "b"}), [node("a")])
        assert not any("disable" in text for text in texts(found))


def test_a_plugin_offers_other_arguments_before_it_is_disabled() -> None:
    config = config_of(enabling("Quota", Quota={"most": 1}))
    found = explained(config, pod("web"), [node("a")], [pod("x", on="a")])
    assert texts(found) == ["a quota of 2", "disable Quota", "add a node like a"]


def test_a_gate_of_the_user() -> None:
    found = explained(config_of(enabling("Gate")), pod("web"), [node("a")])
    assert found.kind == "gated"
    assert texts(found) == ["disable Gate"]


def test_another_profile_takes_the_pod() -> None:
    config = config_of(
        {"schedulerName": "default-scheduler", **enabling("Closed")}, {"schedulerName": "open"}
    )
    found = explained(config, pod("web"), [node("a")])
    assert texts(found) == ["schedulerName open, another profile", "disable Closed"]


def test_edits_of_pod_and_configuration_together() -> None:
    config = config_of(enabling("Closed"))
    found = explained(config, pod("web", cpu=8), [node("a", cpu=4)])
    assert "ask for 4 cpu or less and disable Closed" in texts(found)
    remedy = next(one for one in found.remedies or () if len(one.edits) == 2)
    assert [edit.target for edit in remedy.edits] == ["pod", "configuration"]


@pytest.mark.parametrize("name", ["NodeAffinity", "PodTopologySpread"])
def test_the_arguments_of_a_patch_are_read_again(name: str) -> None:
    """What a patch has is what the file of a user may have."""
    plugin = Registry.discover().get(name)
    fields = msgspec.to_builtins(plugin.args_type())
    assert cfg.decode_args(fields, plugin.args_type, name, "x") == (plugin.args_type(), [])


class Picky(fw.Filter):
    """Refuses some nodes by their names."""

    name = "Picky"
    wakes_on = ()
    depends_on = fw.NODE

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        is_refused = sum(node.name.encode()) % 3 != 0
        return fw.Status.unschedulable("node(s) were not to its taste") if is_refused else fw.OK


def random_config(dice: random.Random, labels: list[tuple[str, str]]) -> Any:
    """Two profiles, the first of which refuses more than usual."""
    first: dict[str, Any] = {"schedulerName": cfg.DEFAULT_SCHEDULER_NAME, "pluginConfig": []}
    if dice.random() < 0.5 and labels:
        chosen = dict(dice.sample(labels, min(len(labels), 2)))
        first["pluginConfig"] += added_affinity(**chosen)["pluginConfig"]
    if dice.random() < 0.5:
        keys = (ZONE, "kubernetes.io/hostname")
        constraints = [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"} for key in keys
        ]
        args = {"defaultingType": "List", "defaultConstraints": constraints}
        first["pluginConfig"] += with_args("PodTopologySpread", args)["pluginConfig"]
    if dice.random() < 0.5:
        first["plugins"] = enabling("Picky")["plugins"]
    return config_of(first, {"schedulerName": "other"})


def test_on_random_clusters_each_makes_the_pod_fit_and_needs_all_its_edits() -> None:
    registry = Registry.discover([Picky])
    told = 0
    for seed in range(sized(12)):
        cluster = random_cluster(seed)
        every = {item for one in cluster.nodes for item in one.metadata.labels.items()}
        labels = sorted((key, value) for key, value in every if value.isalnum())
        config = random_config(random.Random(seed), labels)
        state = state_of(cluster)
        configurations = Configurations(config, registry)
        plan = configurations.plans[cfg.DEFAULT_SCHEDULER_NAME]
        private = PrivateCluster(plan, state, configurations=configurations)
        for wanted in cluster.incoming:
            if wanted.node_name or not cluster.nodes or private.fits(wanted) is not None:
                continue
            search = remedies_for(private, wanted)
            assert private.fits(wanted) is None, "the private copy is as before"
            for remedy, proven in zip(search.remedies, search.proven, strict=True):
                told += any(edit.target == "configuration" for edit in remedy.edits)
                patches = [patch for edit in remedy.edits for patch in edit.patches]
                others = [patch for patch in patches if patch.kind != cfg.KIND]
                changed, changed_pod = with_patches(state, wanted, others)
                after = configured(config, [one for one in patches if one.kind == cfg.KIND])
                plans = Configurations(after, registry).plans
                plan = plans[changed_pod.scheduler_name]
                evaluation = PrivateCluster(plan, changed).fits(changed_pod)
                assert evaluation is not None, (seed, wanted.key, remedy.text)
                assert evaluation.count == remedy.nodes
                for left_out in proven.edits:
                    kept = [edit for edit in proven.edits if edit is not left_out]
                    with private.edited(wanted, kept) as other:
                        assert private.fits(other) is None, (seed, remedy.text, left_out.text)
    assert told > 10
