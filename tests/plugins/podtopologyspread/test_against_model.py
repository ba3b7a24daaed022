"""On clusters made at random: the columns agree with a plain count, in thought and in fact."""

from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.plugins.podtopologyspread import model
from tests.sizes import sized

from mooring.api.meta import LabelSelector
from mooring.cache.cache import Cache
from mooring.cache.internals import on_rows_of
from mooring.framework import Code, CycleState, Node, Nodes, Pod
from mooring.framework._internal import ScoresByCode
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import StubHandle, build, node, pod
from mooring.testing.builders import HOSTNAME, ZONE

CODES = {
    Code.SUCCESS: "",
    Code.UNSCHEDULABLE: "crowded",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "missing",
}
WEB = {"app": "web"}
# Mostly things that meet: pods that count, nodes in a zone, constraints that refuse.
labels = st.sampled_from([WEB, WEB, WEB, WEB | {"rev": "1"}, WEB | {"rev": "2"}, {"app": "db"}])
selectors = st.sampled_from(
    [*[{"matchLabels": WEB}] * 4, {"matchLabels": WEB | {"rev": "1"}}, {}, None]
)
constraints = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from([ZONE, ZONE, HOSTNAME, "rack"]),
        "maxSkew": st.sampled_from([1, 1, 2]),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": selectors,
        "minDomains": st.sampled_from([None, None, 1, 2, 3]),
        "nodeAffinityPolicy": st.sampled_from([None, "Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from([None, "Honor", "Ignore"]),
        "matchLabelKeys": st.sampled_from([[], [], ["rev"]]),
    },
)


@st.composite
def incoming(draw: st.DrawFn) -> Pod:
    some: list[Any] = draw(st.lists(constraints, min_size=1, max_size=3))
    return pod(
        "new",
        labels=draw(labels),
        tolerates=draw(st.sampled_from([[], ["gpu"]])),
        node_selector=draw(st.sampled_from([{}, {"rack": "1"}])),
        spec={"topologySpreadConstraints": some},
    )


@st.composite
def residents(draw: st.DrawFn) -> Pod:
    namespace = draw(st.sampled_from([*["default"] * 5, "other"]))
    is_dying = draw(st.sampled_from([*[False] * 5, True]))
    return pod("old", namespace=namespace, labels=draw(labels), deleting=is_dying)


@st.composite
def members(draw: st.DrawFn, number: int) -> Node:
    rack = draw(st.sampled_from([{}, {"rack": "1"}, {"rack": "1"}, {"rack": "2"}]))
    return node(
        f"n{number}",
        zone=draw(st.sampled_from(["a", "a", "b", "b", "c", "", None])),
        labels=rack,
        taints=draw(st.sampled_from([[], [], ["gpu:NoSchedule"]])),
        pods=draw(st.lists(residents(), max_size=3)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cache:
    cache = Cache()
    for number in range(draw(st.integers(2, 6))):
        member = draw(members(number))
        cache.put_node(member.api)
        for resident in member.pods:
            cache.put_pod(resident)
    return cache


def answers(
    plugin: PodTopologySpread, state: CycleState, new: Pod, cluster: list[Node]
) -> list[str]:
    return [CODES[plugin.filter(state, new, one).code] for one in cluster]


@given(cache=clusters(), new=incoming())
@settings(max_examples=sized(50), deadline=None)
def test_refuses_what_the_model_refuses(cache: Cache, new: Pod) -> None:
    cluster = cache.nodes
    plugin = build(PodTopologySpread, handle=StubHandle(nodes=cluster))
    expected = [model.verdict(new, one, cluster) for one in cluster]
    state = CycleState()
    if plugin.pre_filter(state, new, cluster).skipped:
        assert not any(expected)
        return
    verdicts = plugin.filter_all(state, new, cluster)
    vectorised = [CODES[verdicts.status(place).code] for place in range(len(cluster))]
    assert vectorised == answers(plugin, state, new, list(cluster)) == expected


@given(cache=clusters(), new=incoming(), data=st.data())
@settings(max_examples=sized(50), deadline=None)
def test_scores_as_the_model_scores(cache: Cache, new: Pod, data: st.DataObject) -> None:
    cluster = cache.nodes
    size = len(cluster)
    chosen = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    feasible: Nodes = cluster.take(np.array(chosen, np.bool_))
    plugin = build(PodTopologySpread, handle=StubHandle(nodes=cluster))
    state = CycleState()
    if plugin.pre_score(state, new, feasible).skipped:
        assert not model.of_kind(new, "ScheduleAnyway")
        return
    raw = plugin.score_all(state, new, feasible)
    assert raw.tolist() == [plugin.score(state, new, one) for one in feasible]
    found = plugin.normalize_score(state, new, feasible, raw).tolist()
    assert found == model.scores(new, list(feasible), cluster)
    final = plugin.normalized_by_label(state, new, feasible)
    if isinstance(final, ScoresByCode):
        assert final.points[on_rows_of(feasible, final.codes)].tolist() == found
    elif final is not None:
        assert final.points[feasible.label_codes(final.key)].tolist() == found


@given(cache=clusters(), new=incoming(), data=st.data())
@settings(max_examples=sized(50), deadline=None)
def test_what_is_thought_equals_what_is(cache: Cache, new: Pod, data: st.DataObject) -> None:
    # An empty selector counts no pod of the cluster, but pods that are added in thought.
    selectors = [raw.label_selector for raw in new.spec.topology_spread_constraints]
    assume(LabelSelector() not in selectors)
    plugin = build(PodTopologySpread, handle=StubHandle(nodes=cache.nodes))
    state = CycleState()
    if plugin.pre_filter(state, new, cache.nodes).skipped:
        return
    before = answers(plugin, state, new, list(cache.nodes))
    thought = state.clone()
    imagined = list(cache.nodes)
    steps: list[tuple[Pod, bool]] = []
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(imagined) - 1))
        here = imagined[place]
        staying = [pod for pod in here.pods if not pod.is_terminating]  # the others count oddly
        leaving = data.draw(st.sampled_from([None, *staying]))
        if leaving is None:
            coming = data.draw(residents()).assumed_on(here.name)
            assume(not coming.is_terminating)
            imagined[place] = here.with_pod(coming)
            assert plugin.add_pod(thought, new, coming, imagined[place]).ok
            steps.append((coming, True))
        else:
            imagined[place] = here.without_pod(leaving)
            assert plugin.remove_pod(thought, new, leaving, imagined[place]).ok
            steps.append((leaving, False))
    found = answers(plugin, thought, new, imagined)
    assert answers(plugin, state, new, list(cache.nodes)) == before

    for changed, is_new in steps:  # now let it be so
        cache.put_pod(changed) if is_new else cache.remove_pod(changed)
    fresh = CycleState()
    assert plugin.pre_filter(fresh, new, cache.nodes).ok
    assert answers(plugin, fresh, new, list(cache.nodes)) == found
