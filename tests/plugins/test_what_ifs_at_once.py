"""Plugins that count pods on several nodes say the same of many hypothetical nodes as of each.

Node by node, `add_pod` and `remove_pod` tell them what is different; at once, `filter_all` asks the
hypothetical nodes.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import mooring.framework as fw
from mooring.cache.hypothetical import NodesWithMorePods, NodesWithoutPods
from mooring.plugins.interpodaffinity.plugin import InterPodAffinity
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import StubHandle, build, node, nodes, pod
from mooring.testing.builders import HOSTNAME, ZONE

KEYS = (ZONE, HOSTNAME, "rack")
APPS = ("a", "b")
CASES = 120  # of each plugin


def labelled(dice: random.Random) -> dict[str, str]:
    return {"app": dice.choice(APPS)}


def selector(dice: random.Random) -> dict[str, Any]:
    return {"matchLabels": labelled(dice)}


def terms(dice: random.Random) -> dict[str, Any]:
    kinds = dice.sample(("podAffinity", "podAntiAffinity"), dice.choice((1, 1, 2)))
    return {
        kind: {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": dice.choice(KEYS), "labelSelector": selector(dice)}
                for _ in range(dice.choice((1, 1, 2)))
            ]
        }
        for kind in kinds
    }


def constraints(dice: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "topologyKey": dice.choice(KEYS),
            "maxSkew": dice.choice((1, 1, 2)),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {} if dice.random() < 0.2 else selector(dice),
            **({"minDomains": dice.choice((2, 3))} if dice.random() < 0.3 else {}),
            **({"nodeTaintsPolicy": "Honor"} if dice.random() < 0.5 else {}),
        }
        for _ in range(dice.choice((1, 1, 2)))
    ]


def some_pod(dice: random.Random, name: str, share: float, plugin: type[fw.Filter]) -> fw.Pod:
    """A pod that has rules for this plugin, with this probability."""
    rules: dict[str, Any] = {}
    if dice.random() < share:
        if plugin is InterPodAffinity:
            rules["affinity"] = terms(dice)
        else:
            rules["spec"] = {"topologySpreadConstraints": constraints(dice)}
    return pod(name, labels=labelled(dice), deleting=dice.random() < 0.1, **rules)


def some_nodes(dice: random.Random, plugin: type[fw.Filter]) -> fw.Nodes:
    def pods(number: int) -> list[fw.Pod]:
        count = dice.choice((0, 0, 1, 2))
        return [some_pod(dice, f"p{number}-{i}", 0.3, plugin) for i in range(count)]

    return nodes(
        *(
            node(
                f"n{number}",
                zone=dice.choice("ab"),
                labels={"rack": dice.choice("12")} if dice.random() < 0.7 else {},
                taints=["gpu=yes:NoSchedule"] if dice.random() < 0.2 else [],
                pods=pods(number),
            )
            for number in range(dice.randint(1, 4))
        )
    )


def one_by_one(
    plugin: Any, state: fw.CycleState, new: fw.Pod, one: fw.Node, gone: Any, more: Any
) -> fw.Status:
    state = state.clone()
    for other in gone:
        one = one.without_pod(other)
        assert plugin.remove_pod(state, new, other, one).ok
    for other in more:
        one = one.with_pod(other)
        assert plugin.add_pod(state, new, other, one).ok
    status: fw.Status = plugin.filter(state, new, one)
    return status


@pytest.mark.parametrize("kind", [InterPodAffinity, PodTopologySpread])
def test_says_the_same_at_once_as_node_by_node(kind: type[Any]) -> None:
    compared = refused = 0
    for seed in range(CASES):
        dice = random.Random(seed)
        cluster = some_nodes(dice, kind)
        plugin = build(kind, handle=StubHandle(nodes=cluster))
        new = some_pod(dice, "new", 0.9, kind)
        state = fw.CycleState()
        if plugin.pre_filter(state, new, cluster) is not fw.OK:
            continue
        gone = [[it for it in one.pods if dice.random() < 0.7] for one in cluster]
        more = {
            place: [some_pod(dice, f"c{place}-{i}", 0.3, kind) for i in range(dice.randint(1, 2))]
            for place in range(len(cluster))
            if dice.random() < 0.6
        }
        without = NodesWithoutPods(cluster, np.arange(len(cluster)), gone)
        expected = [
            one_by_one(plugin, state, new, one, out, ())
            for one, out in zip(cluster, gone, strict=True)
        ]
        assert plugin.filter_all(state, new, without).each() == expected, seed
        if more:
            with_more = NodesWithMorePods(without, more)
            with_them = [
                one_by_one(plugin, state, new, cluster[place], gone[place], pods)
                for place, pods in more.items()
            ]
            expected += with_them
            assert plugin.filter_all(state, new, with_more).each() == with_them, seed
        compared += len(expected)
        refused += sum(not status.ok for status in expected)
    assert 0.2 < refused / compared < 0.8
