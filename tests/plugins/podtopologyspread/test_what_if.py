"""Pods added to a node in thought, or taken away, as nominations and preemption do."""

from typing import Any

import pytest

from mooring.framework import OK, CycleState, Nodes, Pod
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import StubHandle, build, node, nodes, pod
from mooring.testing.builders import ZONE

WEB = {"app": "web"}


def waiting(**other: Any) -> Pod:
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        "nodeTaintsPolicy": "Honor",
    }
    spec = {"topologySpreadConstraints": [constraint | other]}
    return pod("new", labels=WEB, node_selector={"disk": "ssd"}, spec=spec)


SSD = {"disk": "ssd"}
RESIDENT = pod("old", labels=WEB)


def cluster() -> Nodes:
    return nodes(
        node("full", zone="a", labels=SSD, pods=[RESIDENT]),
        node("empty", zone="b", labels=SSD),
        node("slow", zone="b", labels={"disk": "hdd"}),
        node("tainted", zone="b", labels=SSD, taints=["gpu:NoSchedule"]),
        node("nowhere", labels=SSD),
    )


def prepared(new: Pod, everywhere: Nodes) -> tuple[PodTopologySpread, CycleState]:
    plugin = build(PodTopologySpread, handle=StubHandle(nodes=everywhere))
    state = CycleState()
    assert plugin.pre_filter(state, new, everywhere).ok
    return plugin, state


def test_a_pod_that_goes_opens_its_domain_and_one_that_comes_back_closes_it() -> None:
    everywhere, new = cluster(), waiting()
    plugin, state = prepared(new, everywhere)
    full = everywhere[0]
    assert plugin.filter(state, new, full) == PodTopologySpread.TOO_MANY
    plugin.remove_pod(state, new, RESIDENT, full.without_pod(RESIDENT))
    assert plugin.filter(state, new, full).ok
    plugin.add_pod(state, new, RESIDENT, full)
    assert plugin.filter(state, new, full) == PodTopologySpread.TOO_MANY


def test_a_pod_in_the_emptiest_domain_opens_the_others() -> None:
    everywhere, new = cluster(), waiting()
    plugin, state = prepared(new, everywhere)
    added = pod("added", labels=WEB)
    plugin.add_pod(state, new, added, everywhere[1].with_pod(added))
    assert plugin.filter(state, new, everywhere[0]).ok


def test_a_thought_stays_in_its_clone() -> None:
    everywhere, new = cluster(), waiting()
    plugin, state = prepared(new, everywhere)
    first, second = state.clone(), state.clone()
    plugin.remove_pod(first, new, RESIDENT, everywhere[0].without_pod(RESIDENT))
    assert plugin.filter(first, new, everywhere[0]).ok
    for other in (state, second):
        assert plugin.filter(other, new, everywhere[0]) == PodTopologySpread.TOO_MANY


@pytest.mark.parametrize("place", ["slow", "tainted", "nowhere"])
def test_a_pod_on_a_node_that_does_not_count_changes_nothing(place: str) -> None:
    everywhere, new = cluster(), waiting()
    plugin, state = prepared(new, everywhere)
    here = everywhere.get(place)
    assert here is not None
    added = pod("added", labels=WEB)
    plugin.add_pod(state, new, added, here.with_pod(added))
    assert plugin.filter(state, new, everywhere[0]) == PodTopologySpread.TOO_MANY


def test_a_pod_that_is_leaving_counts_in_thought_though_it_was_not_counted() -> None:
    everywhere, new = cluster(), waiting()
    plugin, state = prepared(new, everywhere)
    dying = pod("dying", labels=WEB, deleting=True)
    plugin.add_pod(state, new, dying, everywhere[1].with_pod(dying))
    assert plugin.filter(state, new, everywhere[0]) is OK  # as kube-scheduler does


@pytest.mark.parametrize(
    "added",
    [
        pod("stranger", labels=WEB, namespace="elsewhere"),
        pod("other", labels={"app": "db"}),
    ],
    ids=lambda added: added.name,
)
def test_a_pod_that_does_not_count_changes_nothing(added: Pod) -> None:
    everywhere, new = cluster(), waiting()
    plugin, state = prepared(new, everywhere)
    plugin.add_pod(state, new, added, everywhere[1].with_pod(added))
    assert plugin.filter(state, new, everywhere[0]) == PodTopologySpread.TOO_MANY
