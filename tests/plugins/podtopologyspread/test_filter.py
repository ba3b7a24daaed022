"""Hard constraints: what PodTopologySpread refuses."""

from typing import Any

import pytest

from mooring.cache.cache import Cache
from mooring.framework import Code, CycleState, Node, Nodes, Pod
from mooring.framework._internal import COMPARES_TAINTS
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import StubHandle, build, node, nodes, pod
from mooring.testing.builders import HOSTNAME, ZONE

WEB = {"app": "web"}


def hard(key: str = ZONE, skew: int = 1, **other: Any) -> dict[str, Any]:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": WEB},
        **other,
    }


def spread(*constraints: dict[str, Any], **other: Any) -> Pod:
    spec = {"topologySpreadConstraints": list(constraints)}
    return pod("new", labels={**WEB, "rev": "1"}, spec=spec, **other)


def zonal(name: str, zone: str | None, pods: int = 0, **other: Any) -> Node:
    residents = [pod(f"{name}-{number}", labels=WEB) for number in range(pods)]
    return node(name, zone=zone, pods=residents, **other)


def refusals(new: Pod, cluster: Nodes, **args: Any) -> dict[str, str]:
    """What is said about each node: "" is a yes. Both forms, which must agree."""
    plugin = build(PodTopologySpread, handle=StubHandle(nodes=cluster), **args)
    state = CycleState()
    assert plugin.pre_filter(state, new, cluster).ok
    verdicts = plugin.filter_all(state, new, cluster)
    each = [plugin.filter(state, new, one) for one in cluster]
    assert [verdicts.status(place) for place in range(len(cluster))] == each
    return {one.name: status.message for one, status in zip(cluster, each, strict=True)}


def open_nodes(new: Pod, cluster: Nodes, **args: Any) -> list[str]:
    return [name for name, refusal in refusals(new, cluster, **args).items() if not refusal]


def test_refuses_the_zone_that_would_get_too_far_ahead() -> None:
    cluster = nodes(zonal("a", "z1", 2), zonal("b", "z1"), zonal("c", "z2", 1))
    message = "node(s) didn't match pod topology spread constraints"
    assert refusals(spread(hard()), cluster) == {"a": message, "b": message, "c": ""}
    assert open_nodes(spread(hard(skew=2)), cluster) == ["a", "b", "c"]
    assert PodTopologySpread.TOO_MANY.code is Code.UNSCHEDULABLE


def test_refuses_a_node_outside_the_topology_for_good() -> None:
    cluster = nodes(zonal("a", "z1"), zonal("b", None))
    message = "node(s) didn't match pod topology spread constraints (missing required label)"
    assert refusals(spread(hard()), cluster) == {"a": "", "b": message}
    assert PodTopologySpread.NO_DOMAIN.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_node_without_one_of_the_labels_counts_for_no_constraint() -> None:
    cluster = nodes(zonal("a", "z1", 1), zonal("b", "z2", 1), zonal("c", None))
    assert open_nodes(spread(hard(), hard(HOSTNAME, 1)), cluster) == ["a", "b"]
    # Alone, the constraint on hosts sees the empty one, and the others are too full.
    assert open_nodes(spread(hard(HOSTNAME, 1)), cluster) == ["c"]


def test_says_no_with_the_first_constraint_that_objects() -> None:
    cluster = nodes(zonal("a", "z1", 2), zonal("b", "z2"), zonal("c", "z1", labels={"rack": "r"}))
    told = refusals(spread(hard(), hard("rack")), cluster)
    assert told["a"] == PodTopologySpread.NO_DOMAIN.message
    told = refusals(spread(hard(skew=1, minDomains=3), hard(HOSTNAME, 9)), cluster)
    assert told["a"] == PodTopologySpread.TOO_MANY.message


def test_counts_only_living_pods_of_its_own_namespace() -> None:
    others = [
        pod("other", labels=WEB, namespace="elsewhere"),
        pod("dying", labels=WEB, deleting=True),
        pod("db", labels={"app": "db"}),
    ]
    cluster = nodes(node("a", zone="z1", pods=others), zonal("b", "z2"))
    assert open_nodes(spread(hard()), cluster) == ["a", "b"]


def test_too_few_domains_mean_a_minimum_of_zero() -> None:
    cluster = nodes(zonal("a", "z1", 1), zonal("b", "z2", 1))
    assert open_nodes(spread(hard(minDomains=2)), cluster) == ["a", "b"]
    assert open_nodes(spread(hard(minDomains=3)), cluster) == []


def test_leaves_out_nodes_that_the_pod_may_not_use() -> None:
    cluster = nodes(zonal("a", "z1", 1, labels={"disk": "ssd"}), zonal("b", "z2"))
    picky = {"node_selector": {"disk": "ssd"}}
    assert open_nodes(spread(hard(), **picky), cluster) == ["a", "b"]
    constraint = hard(nodeAffinityPolicy="Ignore")
    assert open_nodes(spread(constraint, **picky), cluster) == ["b"]


def test_counts_tainted_nodes_unless_told_to_honour_taints() -> None:
    cluster = nodes(zonal("a", "z1", 1), zonal("b", "z2", taints=["gpu:NoSchedule"]))
    assert open_nodes(spread(hard()), cluster) == ["b"]
    constraint = hard(nodeTaintsPolicy="Honor")
    assert open_nodes(spread(constraint), cluster) == ["a", "b"]
    assert open_nodes(spread(constraint, tolerates=["gpu"]), cluster) == ["b"]


@pytest.mark.parametrize("is_on", [True, False])
def test_honours_tolerations_that_compare_where_the_gate_is_on(
    is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates = frozenset({COMPARES_TAINTS}) if is_on else frozenset()
    monkeypatch.setattr(PodTopologySpread, "feature_gates", gates)
    cluster = nodes(zonal("a", "z1", 1), zonal("b", "z2", taints=["level=4:NoSchedule"]))
    level = {"key": "level", "operator": "Gt", "value": "3"}
    spec = {
        "topologySpreadConstraints": [hard(nodeTaintsPolicy="Honor")],
        "tolerations": [level],
    }
    new = pod("new", labels=WEB, spec=spec)
    assert open_nodes(new, cluster) == (["b"] if is_on else ["a", "b"])


def test_match_label_keys_narrow_the_count_to_pods_labelled_alike() -> None:
    old = [pod("old", labels={**WEB, "rev": "0"})]
    cluster = nodes(node("a", zone="z1", pods=old), zonal("b", "z2"))
    assert open_nodes(spread(hard()), cluster) == ["b"]
    assert open_nodes(spread(hard(matchLabelKeys=["rev", "absent"])), cluster) == ["a", "b"]


def test_an_empty_selector_counts_nobody_but_the_pod_itself() -> None:
    cluster = nodes(zonal("a", "z1", 5), zonal("b", "z2"))
    assert open_nodes(spread(hard(labelSelector={})), cluster) == ["a", "b"]
    assert open_nodes(spread(hard(labelSelector={}, skew=0)), cluster) == []


def test_no_selector_counts_nobody_at_all() -> None:
    cluster = nodes(zonal("a", "z1", 5), zonal("b", "z2"))
    constraint = hard(labelSelector=None, matchLabelKeys=["rev"], skew=0)
    assert open_nodes(spread(constraint), cluster) == ["a", "b"]


@pytest.mark.parametrize("constraints", [[], [hard(whenUnsatisfiable="ScheduleAnyway")]])
def test_has_nothing_to_say_without_hard_constraints(constraints: list[Any]) -> None:
    plugin = build(PodTopologySpread)
    assert plugin.pre_filter(CycleState(), spread(*constraints), nodes()).skipped


def test_fails_on_a_selector_that_makes_no_sense() -> None:
    broken = hard(labelSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    status = build(PodTopologySpread).pre_filter(CycleState(), spread(broken), nodes())
    assert status.code is Code.ERROR
    assert status.message.startswith("obtaining pod's hard topology spread constraints: ")


def test_follows_a_pod_that_begins_to_terminate() -> None:
    cache = Cache()
    for name, zone in ("a", "z1"), ("b", "z2"):
        cache.put_node(zonal(name, zone).api)
    cache.put_pod(pod("old", uid="u", labels=WEB, on="a"))
    assert open_nodes(spread(hard()), cache.nodes) == ["b"]
    cache.put_pod(pod("old", uid="u", labels=WEB, on="a", deleting=True))
    assert open_nodes(spread(hard()), cache.nodes) == ["a", "b"]
