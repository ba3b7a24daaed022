import json
import re

import pytest
from tests.testing import by_domain, overclaims

import mooring.framework as fw
from mooring.api import core
from mooring.cache.cache import Cache
from mooring.runtime.classes import class_of
from mooring.testing import Examples, check_plugin, node, plugin_checks, pod
from mooring.testing._changes import changes
from mooring.testing._likenesses import TWINS, twin_of
from mooring.testing._random_clusters import random_cluster

FEW = Examples(seeds=range(12))
ALIKE = "check_pods_of_a_class_are_alike"
SCOPE = "check_scope_is_all_that_matters"
PART = "check_part_is_all_that_matters"
EQUAL = "check_equal_points_stay_equal"
EXTREMES = "check_extremes_are_all_that_matters"
REFUSE = "check_domains_refuse_alike"
SCORE = "check_domains_score_alike"
LABELS = "check_labels_score_alike"
LOCAL = "check_local_tables_are_local"
EARLIER = "check_earlier_pods_leave_no_trace"

WRONG: list[tuple[type[fw.Base], str, str]] = [
    (overclaims.ByName, ALIKE, "for a pod with another name and uid, but"),
    (overclaims.ByAge, ALIKE, "for a pod created at another time, but Success for"),
    (overclaims.ByLuck, ALIKE, "with other random numbers, but"),
    (overclaims.ByClock, ALIKE, "an hour later, but"),
    (overclaims.ByAttempts, ALIKE, "for a pod that was tried before, but Success for"),
    (overclaims.ByVolumes, ALIKE, "pre_score gives Success for a pod with one more volume that"),
    (overclaims.ByBest, ALIKE, "when pre_score is given the nodes that fit only, but"),
    (overclaims.UsesUp, ALIKE, "with what pre_filter and pre_score stored before, but 100 when"),
    (overclaims.ByWord, ALIKE, "scope_of() returned 'node', expected a Scope or None"),
    (overclaims.CountsPods, SCOPE, "was added to node node-1, but 100 before; scope OBJECT says"),
    (overclaims.LooksAround, SCOPE, "before; scope NODE says that"),
    (overclaims.ComparesNodes, SCOPE, "and stamp() still is ('node-"),
    (overclaims.CountsNodes, SCOPE, "was removed, but Success before; scope NODE says"),
    (overclaims.CountsRunning, SCOPE, "after the status of pod"),
    (overclaims.StoresCounts, SCOPE, "with what pre_filter and pre_score stored before, but"),
    (overclaims.WithoutStamp, SCOPE, "after Namespace"),
    (overclaims.SteadyByPods, SCOPE, "@steady says that can't be: no node, no feature"),
    (overclaims.Sometimes, SCOPE, "scope OBJECT says"),
    (overclaims.ForgetsMemory, PART, "for a pod with other memory, but"),
    (overclaims.ForgetsTolerations, PART, "for a pod with other tolerations, but"),
    (overclaims.SkipsByLabel, PART, "pre_filter gives Success for a pod with other labels, but"),
    (overclaims.StoresLabels, PART, "for a pod with other labels, but"),
    (overclaims.ListsParts, PART, "part_of() returned [0], expected something hashable"),
    (overclaims.BreaksTies, EQUAL, "by_extremes says that equal points"),
    (by_domain.ByMean, EXTREMES, "where every number of points occurs once"),
    (by_domain.RefusesAll, REFUSE, "is refused for its topology.kubernetes.io/zone"),
    (by_domain.ShortTable, REFUSE, "values of bool"),
    (by_domain.OtherPoints, SCORE, "by score_by_domain(), but"),
    (by_domain.CountsTheFit, SCORE, "must not look at which nodes fit"),
    (by_domain.RoomiestOfAll, LABELS, "by final_by_label(), but 100 by score_all() in the end"),
    (by_domain.NotFinal, LABELS, "expected 0 to 100"),
    (by_domain.NotLocal, LOCAL, "must not look at pods of other domains"),
    (by_domain.StaysWithIt, EARLIER, "with the state of an earlier pod"),
]
TRUE: list[type[fw.Base]] = [
    overclaims.NoScope,
    overclaims.ReadsNamespaces,
    overclaims.BySpread,
    overclaims.SteadyBySpread,
    overclaims.ByRequests,
    overclaims.ByLabels,
    overclaims.NeverZero,
    by_domain.Zonal,
    by_domain.Local,
    by_domain.Roomiest,
]


@pytest.mark.parametrize(
    ("plugin", "check", "words"), WRONG, ids=[plugin.__name__ for plugin, _, _ in WRONG]
)
def test_catches_a_claim_that_is_not_true(plugin: type[fw.Base], check: str, words: str) -> None:
    expected = rf"^plugin {plugin.name} fails {check}: .*{re.escape(words)}"
    with pytest.raises(AssertionError, match=expected):
        dict(plugin_checks())[check](plugin, examples=FEW)


@pytest.mark.parametrize("plugin", TRUE, ids=[plugin.__name__ for plugin in TRUE])
def test_finds_nothing_wrong_with_a_claim_that_is_true(plugin: type[fw.Base]) -> None:
    check_plugin(plugin, examples=FEW)


def test_says_in_one_line_what_differed_and_what_was_claimed() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(overclaims.CountsPods, examples=FEW)
    first, *example, seed = str(failure.value).splitlines()
    assert first == (
        "plugin CountsPods fails check_scope_is_all_that_matters: node node-1: score is 99"
        " after pod team-b/new-0-twin was added to node node-1, but 100 before;"
        " scope OBJECT says that only the pod's class and the node's own object matter,"
        " and stamp() still is None"
    )
    assert [line.split(maxsplit=1)[0] for line in example] == ["pod", "node"]
    assert set(json.loads(example[0].split(maxsplit=1)[1])) == {"apiVersion", "kind", "metadata"}
    assert seed == "  (from seed 0)"


def test_tries_pods_that_it_is_given_as_well() -> None:
    class Licensed(overclaims.ByRequests):
        """Looks at an annotation that no random pod has."""

        name = "Licensed"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
            return fw.OK if "licence" not in pod.annotations else overclaims.NOT_HERE

    check_plugin(Licensed, examples=FEW)
    licensed = Examples(
        seeds=range(4), pods=[pod("p", annotations={"licence": "x"})], nodes=[node("n")]
    )
    with pytest.raises(AssertionError, match=rf"{PART}.* for default/p, but Success"):
        check_plugin(Licensed, examples=licensed)


@pytest.mark.parametrize("seed", range(12))
def test_makes_twins_that_are_of_one_class(seed: int) -> None:
    for one in random_cluster(seed).incoming:
        twins = [fw.Pod(change(one.api)) for change in TWINS.values()]
        assert all(class_of(twin) == class_of(one) for twin in [*twins, twin_of(one)])
        assert all(twin.api != one.api for twin in twins)


@pytest.mark.parametrize("seed", range(12))
def test_leaves_a_cluster_as_it_was(seed: int) -> None:
    for case in Examples(seeds=[seed]).cases():
        cache = case.cluster.cache()
        before = contents(cache)
        for change in changes(case, [core.Namespace]):
            for step in (change, *change.parts()):
                step.make(cache)
                step.undo(cache)
                assert contents(cache) == before


def contents(cache: Cache) -> dict[str, object]:
    found: dict[str, object] = {
        node.name: (
            node.api,
            {pod.uid: pod.api for pod in node.pods},
            node.requested("cpu"),
            node.requested("memory"),
        )
        for node in cache.nodes
    }
    return found | {value.key: value for value in cache.objects.list(core.Namespace)}
