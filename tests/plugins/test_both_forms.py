"""The vectorised forms say what the specification says, on clusters made at random."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sizes import sized

from mooring.framework import (
    CycleState,
    Filter,
    Node,
    Nodes,
    OnlyNodes,
    Pod,
    PreFilter,
    PreScore,
    Score,
)
from mooring.framework.plugin import Base
from mooring.plugins.imagelocality import ImageLocality
from mooring.plugins.nodeaffinity import NodeAffinity
from mooring.plugins.nodename import NodeName
from mooring.plugins.nodeports import NodePorts
from mooring.plugins.noderesources.balanced import NodeResourcesBalancedAllocation
from mooring.plugins.noderesources.fit import NodeResourcesFit
from mooring.plugins.nodeunschedulable import NodeUnschedulable
from mooring.plugins.tainttoleration import TaintToleration
from mooring.testing.build import StubHandle, build
from mooring.testing.builders import node, nodes, pod

GPU = "example.com/gpu"
RESOURCES = ("cpu", "memory", GPU, "ephemeral-storage")
MIB = 1024 * 1024

# Few values, so that things meet; some of them zero, some of them beyond what a product can hold.
amounts = st.sampled_from([0, 1, 2, 3, 7, 10, 100, 999, 2**40, 2**61])
labels = st.dictionaries(st.sampled_from(["disk", "gen"]), st.sampled_from(["1", "5", "x"]))
taints = st.lists(
    st.builds(
        "{}={}:{}".format,
        st.sampled_from(["gpu", "spot"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    ),
    max_size=3,
    unique=True,
)
ports: st.SearchStrategy[list[int | str]] = st.lists(
    st.sampled_from([80, "80/UDP", "10.0.0.1:80", "10.0.0.2:80", 81]), max_size=2
)
requests = st.dictionaries(st.sampled_from(RESOURCES), amounts)
images = st.sampled_from(["app", "web:1", "db:2"])


@st.composite
def residents(draw: st.DrawFn) -> Pod:
    return pod("resident", requests=draw(requests), ports=draw(ports))


@st.composite
def clusters(draw: st.DrawFn) -> Nodes:
    members = [
        node(
            f"n{number}",
            cpu=draw(amounts),
            memory=draw(amounts),
            max_pods=draw(st.sampled_from([0, 1, 110])),
            resources=draw(st.dictionaries(st.sampled_from(RESOURCES[2:]), amounts)),
            labels=draw(labels),
            taints=draw(taints),
            unschedulable=draw(st.booleans()),
            images=draw(
                st.dictionaries(
                    st.sampled_from(["app:latest", "web:1", "db:2"]),
                    st.integers(0, 3_000 * MIB),
                )
            ),
            pods=draw(st.lists(residents(), max_size=1)),
        )
        for number in range(draw(st.integers(0, 6)))
    ]
    return nodes(*members)


@st.composite
def terms(draw: st.DrawFn) -> dict[str, Any]:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    some = {"In": ["1", "5"], "NotIn": ["1"], "Gt": ["1"], "Lt": ["5"]}.get(operator, [])
    test = {"key": draw(st.sampled_from(["disk", "gen"])), "operator": operator, "values": some}
    term: dict[str, Any] = {"matchExpressions": [test] if draw(st.booleans()) else []}
    if draw(st.booleans()):
        way = draw(st.sampled_from(["In", "NotIn"]))
        name = draw(st.sampled_from(["n0", "n1", "gone"]))
        term["matchFields"] = [{"key": "metadata.name", "operator": way, "values": [name]}]
    return term


@st.composite
def incoming(draw: st.DrawFn) -> Pod:
    affinity: dict[str, Any] = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": draw(terms())}
            for weight in draw(st.lists(st.integers(0, 100), max_size=3))
        ]
    }
    if draw(st.booleans()):
        some = draw(st.lists(terms(), max_size=2))
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": some}
    return pod(
        requests=draw(requests),
        on=draw(st.sampled_from(["", "", "n0", "n2", "gone"])),
        images=draw(st.lists(images, min_size=1, max_size=3)),
        ports=draw(ports),
        tolerates=draw(st.lists(st.sampled_from(["", "gpu", "spot=a", "gpu:NoExecute"]))),
        node_selector=draw(st.one_of(st.none(), labels)),
        affinity={"nodeAffinity": affinity},
    )


SHAPE = [
    {"utilization": 0, "score": 9},
    {"utilization": 30, "score": 0},
    {"utilization": 90, "score": 10},
]
ALL_RESOURCES = [{"name": name, "weight": weight} for weight, name in enumerate(RESOURCES, start=1)]
CASES: list[tuple[type[Base], Mapping[str, Any]]] = [
    (NodeName, {}),
    (NodeUnschedulable, {}),
    (TaintToleration, {}),
    (NodeAffinity, {}),
    (NodePorts, {}),
    (ImageLocality, {}),
    (NodeResourcesFit, {}),
    (
        NodeResourcesFit,
        {
            "ignored_resources": [GPU],
            "scoring_strategy": {"type": "MostAllocated", "resources": ALL_RESOURCES},
        },
    ),
    (
        NodeResourcesFit,
        {
            "scoring_strategy": {
                "type": "RequestedToCapacityRatio",
                "resources": ALL_RESOURCES,
                "requestedToCapacityRatio": {"shape": SHAPE},
            }
        },
    ),
    (NodeResourcesBalancedAllocation, {}),
    (NodeResourcesBalancedAllocation, {"resources": [{"name": name} for name in RESOURCES]}),
]


@given(cluster=clusters(), new=incoming())
@settings(max_examples=sized(60), deadline=None)
def test_both_forms_agree(cluster: Nodes, new: Pod) -> None:
    # All plugins look at the same cluster, because making one takes longer than asking them all.
    for plugin_class, args in CASES:
        plugin = build(plugin_class, handle=StubHandle(nodes=cluster), **args)
        state = CycleState()
        asks_filter = True
        if isinstance(plugin, PreFilter):
            answer = plugin.pre_filter(state, new, cluster)
            asks_filter = isinstance(answer, OnlyNodes) or answer.ok
        asks_score = not isinstance(plugin, PreScore) or plugin.pre_score(state, new, cluster).ok
        every_other = cluster.take(np.arange(0, len(cluster), 2))
        for some in (cluster, every_other):
            compare(plugin, state, new, some, asks_filter, asks_score)


def compare(
    plugin: Base, state: CycleState, new: Pod, some: Nodes, asks_filter: bool, asks_score: bool
) -> None:
    each: list[Node] = list(some)
    if isinstance(plugin, Filter) and asks_filter:
        verdicts = plugin.filter_all(state, new, some)
        expected = [plugin.filter(state, new, one) for one in each]
        assert [verdicts.status(place) for place in range(len(some))] == expected, plugin.name
    if isinstance(plugin, Score) and asks_score:
        scores = plugin.score_all(state, new, some)
        assert scores.shape == (len(some),)
        expected_scores = [plugin.score(state, new, one) for one in each]
        assert scores.tolist() == expected_scores, plugin.name
