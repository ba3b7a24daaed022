"""Pods that need something new go where it is declared."""

from typing import Any

import pytest
from msgspec import structs

import mooring.framework as fw
from mooring.api import core
from mooring.cache.cache import Cache
from mooring.framework.events import NODE, POD, UNSCHEDULABLE_POD
from mooring.plugins.nodedeclaredfeatures import NodeDeclaredFeatures, features_of
from mooring.testing.build import build
from mooring.testing.builders import node, pod

RESTART = "RestartAllContainersOnContainerExits"
USERS = "UserNamespacesHostNetworkSupport"
RULE: dict[str, Any] = {"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}
BOTH: dict[str, Any] = {"containers": [RULE], "hostNetwork": True, "hostUsers": False}


def declaring(name: str, *features: str) -> core.Node:
    api = node(name).api
    return structs.replace(api, status=structs.replace(api.status, declared_features=features))


def cluster(*members: core.Node) -> fw.Nodes:
    cache = Cache()
    for member in members:
        cache.put_node(member)
    return cache.nodes


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, set()),
        ({"containers": [RULE]}, {RESTART}),
        ({"initContainers": [RULE]}, {RESTART}),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, set()),
        ({"hostNetwork": True, "hostUsers": False}, {USERS}),
        ({"hostNetwork": True, "hostUsers": True}, set()),
        ({"hostNetwork": True}, set()),
        ({"hostUsers": False}, set()),
        (BOTH, {RESTART, USERS}),
    ],
)
def test_knows_what_a_pod_needs(spec: dict[str, Any], expected: set[str]) -> None:
    assert features_of(pod(spec=spec)) == expected


def test_skips_pods_that_need_nothing_special() -> None:
    plugin, state, nodes = build(NodeDeclaredFeatures), fw.CycleState(), cluster(declaring("a"))
    assert plugin.pre_filter(state, pod(), nodes) is fw.SKIP


def test_wants_every_feature_declared() -> None:
    plugin, state, demanding = build(NodeDeclaredFeatures), fw.CycleState(), pod(spec=BOTH)
    nodes = cluster(
        declaring("none"),
        declaring("one", RESTART),
        declaring("all", "Other", USERS, RESTART),
        declaring("other", "Other"),
    )
    assert plugin.pre_filter(state, demanding, nodes) is fw.OK
    lacking = fw.Status.unresolvable("node(s) didn't match Pod's required features")
    expected = [lacking, lacking, fw.OK, lacking]
    assert [plugin.filter(state, demanding, member) for member in nodes] == expected
    assert plugin.filter_all(state, demanding, nodes) == fw.Verdicts.of(expected)


def test_wakes_for_new_nodes_and_changed_features() -> None:
    plugin, demanding = build(NodeDeclaredFeatures), pod("p", uid="p", spec=BOTH)
    old, new = declaring("a"), declaring("a", RESTART)
    changed = fw.Event.NODE_FEATURES_CHANGED
    assert plugin.hint(fw.Event.NODE_ADDED, demanding, None, old)
    assert plugin.hint(changed, demanding, old, new)
    assert not plugin.hint(changed, demanding, old, old)


def test_wakes_for_its_own_pod_if_its_needs_have_changed() -> None:
    plugin, demanding = build(NodeDeclaredFeatures), pod("p", uid="p", spec=BOTH)
    event = fw.ClusterEvent(POD, fw.Action.UPDATE)
    modest = pod("p", uid="p")
    assert plugin.hint(event, demanding, demanding, modest)
    assert not plugin.hint(event, demanding, demanding, demanding)
    assert not plugin.hint(event, demanding, pod("q", spec=BOTH), pod("q"))
    awaited = [known for known in plugin.wakes_on if known.resource != NODE]
    labels = fw.ClusterEvent(UNSCHEDULABLE_POD, fw.Action.UPDATE_POD_LABEL)
    assert any(known.matches(labels) for known in awaited)
