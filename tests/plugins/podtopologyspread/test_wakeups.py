"""Which events may let a pod in that PodTopologySpread has refused."""

from typing import Any

import pytest

from mooring.framework import Event, Pod
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import build, node, pod
from mooring.testing.builders import ZONE

WEB = {"app": "web"}


def waiting(**other: Any) -> Pod:
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **other,
    }
    return pod("new", uid="new", labels=WEB, spec={"topologySpreadConstraints": [constraint]})


@pytest.mark.parametrize(
    ("other", "helps"),
    [
        (pod("p", labels=WEB, on="n"), True),
        (pod("p", labels=WEB, nominated="n"), True),
        (pod("p", labels=WEB), False),
        (pod("p", labels=WEB, on="n", namespace="elsewhere"), False),
        (pod("p", labels={"app": "db"}, on="n"), False),
    ],
)
def test_pods_that_count_help_when_they_come_or_go(other: Pod, helps: bool) -> None:
    plugin = build(PodTopologySpread)
    assert plugin.hint(Event.POD_ADDED, waiting(), None, other) is helps
    assert plugin.hint(Event.POD_DELETED, waiting(), other, None) is helps


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (WEB, {"app": "db"}, True),
        ({}, WEB, True),
        (WEB, {**WEB, "tier": "front"}, False),
        ({"app": "db"}, {"app": "cache"}, False),
    ],
)
def test_relabelled_pods_help_if_they_begin_or_cease_to_count(
    before: dict[str, str], after: dict[str, str], helps: bool
) -> None:
    old, new = pod("p", labels=before, on="n"), pod("p", labels=after, on="n")
    assert build(PodTopologySpread).hint(Event.POD_LABELS_CHANGED, waiting(), old, new) is helps


@pytest.mark.parametrize("policy", ["Honor", "Ignore"])
def test_its_own_new_toleration_helps_if_taints_are_honoured(policy: str) -> None:
    subject = waiting(nodeTaintsPolicy=policy)
    old = pod("new", uid="new", labels=WEB)
    new = pod("new", uid="new", labels=WEB, tolerates=["gpu"])
    helps = build(PodTopologySpread).hint(Event.POD_TOLERATIONS_CHANGED, subject, old, new)
    assert helps is (policy == "Honor")


def test_nodes_inside_the_topology_help_when_they_come_or_go() -> None:
    plugin = build(PodTopologySpread)
    inside, outside = node("n", zone="z").api, node("n").api
    assert plugin.hint(Event.NODE_ADDED, waiting(), None, inside)
    assert plugin.hint(Event.NODE_DELETED, waiting(), inside, None)
    assert not plugin.hint(Event.NODE_ADDED, waiting(), None, outside)
    assert not plugin.hint(Event.NODE_DELETED, waiting(), outside, None)


def test_nodes_help_that_change_their_domain_or_their_taints() -> None:
    plugin = build(PodTopologySpread)
    here, there, nowhere = node("n", zone="a").api, node("n", zone="b").api, node("n").api
    tainted, elsewhere = node("n", zone="a", taints=["x:NoSchedule"]).api, node("n", labels=WEB).api
    changes = [(here, there), (here, nowhere), (nowhere, here), (here, tainted)]
    for old, new in changes:
        assert plugin.hint(Event.NODE_LABELS_CHANGED, waiting(), old, new)
    for old, new in [(here, here), (nowhere, elsewhere)]:
        assert not plugin.hint(Event.NODE_LABELS_CHANGED, waiting(), old, new)


def test_a_selector_that_makes_no_sense_is_tried_again_at_every_chance() -> None:
    broken = waiting(labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    assert build(PodTopologySpread).hint(Event.NODE_ADDED, broken, None, node("n").api)
