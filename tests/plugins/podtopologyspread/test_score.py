"""Soft constraints: what PodTopologySpread prefers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mooring.api import codec, core
from mooring.cache.objects import Objects
from mooring.framework import Code, CycleState, Node, Nodes, Pod
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import StubHandle, build, node, nodes, pod
from mooring.testing.builders import HOSTNAME, ZONE

WEB = {"app": "web"}


def soft(key: str = HOSTNAME, skew: int = 1, **other: Any) -> dict[str, Any]:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": WEB},
        **other,
    }


def spread(*constraints: dict[str, Any], **other: Any) -> Pod:
    return pod("new", labels=WEB, spec={"topologySpreadConstraints": list(constraints)}, **other)


def host(name: str, pods: int, **other: Any) -> Node:
    residents = [pod(f"{name}-{number}", labels=WEB) for number in range(pods)]
    return node(name, pods=residents, **other)


def scores(
    new: Pod,
    cluster: Nodes,
    feasible: Sequence[str] | None = None,
    objects: Objects | None = None,
    **args: Any,
) -> tuple[list[int], list[int]]:
    """Raw and normalised scores of the feasible nodes; both forms, which must agree."""
    handle = StubHandle(nodes=cluster, objects=objects or Objects())
    plugin = build(PodTopologySpread, handle=handle, **args)
    chosen = [feasible is None or name in feasible for name in cluster.names]
    fitting = cluster.take(np.array(chosen, np.bool_))
    state = CycleState()
    assert plugin.pre_score(state, new, fitting).ok
    raw = plugin.score_all(state, new, fitting)
    assert raw.tolist() == [plugin.score(state, new, one) for one in fitting]
    return raw.tolist(), plugin.normalize_score(state, new, fitting, raw).tolist()


def test_prefers_hosts_with_few_pods_of_the_kind() -> None:
    cluster = nodes(*(host(f"n{i}", pods) for i, pods in enumerate([2, 1, 0, 3])))
    assert scores(spread(soft()), cluster) == ([4, 2, 0, 5], [20, 60, 100, 0])


def test_a_generous_skew_evens_the_scores_out() -> None:
    cluster = nodes(*(host(f"n{i}", pods) for i, pods in enumerate([1, 1, 0, 0])))
    assert scores(spread(soft(skew=3)), cluster) == ([4, 4, 2, 2], [50, 50, 100, 100])


def test_gives_all_nodes_everything_if_there_is_nothing_to_spread() -> None:
    assert scores(spread(soft()), nodes(host("a", 0), host("b", 0))) == ([0, 0], [100, 100])


def test_counts_a_domain_on_all_nodes_even_those_that_do_not_fit() -> None:
    cluster = nodes(host("a", 0, zone="z1"), host("b", 3, zone="z1"), host("c", 1, zone="z2"))
    raw, normal = scores(spread(soft(ZONE)), cluster, feasible=["a", "c"])
    assert raw == [4, 1]  # 3 and 1 pods, two domains: times ln 4
    assert normal == [25, 100]


def test_only_domains_of_fitting_nodes_make_a_count_weigh_more() -> None:
    cluster = nodes(*(host(f"n{i}", 10, zone=f"z{i}") for i in range(3)))
    assert scores(spread(soft(ZONE)), cluster)[0] == [16, 16, 16]  # ln 5
    assert scores(spread(soft(ZONE)), cluster, feasible=["n0"])[0] == [11]  # ln 3


def test_ignores_nodes_without_one_of_the_labels() -> None:
    cluster = nodes(host("a", 1, zone="z1"), host("b", 0), host("c", 0, zone="z2"))
    assert scores(spread(soft(), soft(ZONE)), cluster) == ([3, 0, 0], [0, 0, 100])


def test_gives_nothing_to_anybody_if_all_nodes_are_ignored() -> None:
    assert scores(spread(soft("rack")), nodes(host("a", 1), host("b", 0))) == ([0, 0], [0, 0])


def test_leaves_out_nodes_that_the_pod_may_not_use() -> None:
    cluster = nodes(
        host("a", 4, zone="z1", labels={"disk": "hdd"}),
        host("b", 0, zone="z1", labels={"disk": "ssd"}),
        host("c", 1, zone="z2", labels={"disk": "ssd"}, taints=["gpu:NoExecute"]),
    )
    picky = {"node_selector": {"disk": "ssd"}}
    assert scores(spread(soft(ZONE), **picky), cluster)[0] == [0, 0, 1]
    ignoring = soft(ZONE, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor")
    assert scores(spread(ignoring, **picky), cluster)[0] == [6, 6, 0]


def web_service() -> Objects:
    objects = Objects()
    meta = {"name": "web", "namespace": "default"}
    objects.put(codec.convert({"metadata": meta, "spec": {"selector": WEB}}, core.Service))
    return objects


def test_spreads_the_pods_of_a_service_by_host_and_zone() -> None:
    cluster = nodes(host("a", 2, zone="z1"), host("b", 0, zone="z1"), host("c", 1, zone="z2"))
    raw, normal = scores(pod("new", labels=WEB), cluster, objects=web_service())
    # skews 3 and 5 add 6; three hosts weigh ln 5, two zones ln 4
    assert raw == [12, 9, 9]
    assert normal == [75, 100, 100]


def test_system_defaults_put_up_with_nodes_outside_a_zone() -> None:
    cluster = nodes(host("a", 6, zone="z1"), host("b", 2), host("c", 1, zone=""))
    raw, _ = scores(pod("new", labels=WEB), cluster, objects=web_service())
    # a: 6 ln 5 + 2 + 6 ln 4 + 4; b has no zone; c shares the pods of b: ln 5 + 2 + 3 ln 4 + 4
    assert raw == [24, 5, 12]


def test_a_list_of_defaults_wants_every_label() -> None:
    default = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    cluster = nodes(host("a", 2, zone="z1"), host("b", 2))
    args: dict[str, Any] = {"defaulting_type": "List", "default_constraints": [default]}
    assert scores(pod("new", labels=WEB), cluster, objects=web_service(), **args)[1] == [100, 0]


def test_match_label_keys_of_a_default_are_overruled_by_the_owners_selector() -> None:
    default = {"topologyKey": HOSTNAME, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    cluster = nodes(host("a", 2), host("b", 0))
    args: dict[str, Any] = {
        "defaulting_type": "List",
        "default_constraints": [default | {"matchLabelKeys": ["rev"]}],
    }
    new = pod("new", labels={**WEB, "rev": "9"})
    assert scores(new, cluster, objects=web_service(), **args)[0] == [3, 0]


@pytest.mark.parametrize("new", [pod("lone"), spread(soft(whenUnsatisfiable="DoNotSchedule"))])
def test_has_nothing_to_say_without_soft_constraints(new: Pod) -> None:
    cluster = nodes(host("a", 1))
    plugin = build(PodTopologySpread, handle=StubHandle(nodes=cluster, objects=web_service()))
    assert plugin.pre_score(CycleState(), new, cluster).skipped


def test_fails_on_a_selector_that_makes_no_sense() -> None:
    cluster = nodes(host("a", 1))
    broken = soft(labelSelector={"matchLabels": {"a b": "c"}})
    plugin = build(PodTopologySpread, handle=StubHandle(nodes=cluster))
    status = plugin.pre_score(CycleState(), spread(broken), cluster)
    assert status.code is Code.ERROR
    text = "calculating preScoreState: obtaining pod's soft topology spread constraints: "
    assert status.message.startswith(text)
