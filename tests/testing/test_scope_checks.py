import json
import re

import pytest
from tests.testing import by_domain, left_out, overclaims

import mooring.framework as fw
from mooring.api import core
from mooring.cache.cache import Cache
from mooring.framework.scope import everything_of
from mooring.testing import Examples, check_plugin, node, plugin_checks, pod
from mooring.testing._changes import changes
from mooring.testing._likenesses import TWINS, twin_of
from mooring.testing._random_clusters import random_cluster

FEW = Examples(seeds=range(12))
ALIKE = "check_pods_of_a_class_are_alike"
SCOPE = "check_scope_is_all_that_matters"
KEY = "check_cache_key_is_all_that_matters"
APPLIES = "check_applies_to_is_true"
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
    (overclaims.KeyByName, ALIKE, "for a pod with another name and uid, but 'new-0' for"),
    (overclaims.ByWord, ALIKE, "scope_of() returned 'node', expected a Scope or None"),
    (overclaims.CountsPods, SCOPE, "was added to node node-1, but 100 before; scope OBJECT says"),
    (overclaims.LooksAround, SCOPE, "before; scope NODE says that"),
    (overclaims.ComparesNodes, SCOPE, "and cache_key() still is ('node-"),
    (overclaims.CountsNodes, SCOPE, "was removed, but Success before; scope NODE says"),
    (overclaims.CountsRunning, SCOPE, "after the status of pod"),
    (overclaims.StoresCounts, SCOPE, "with what pre_filter and pre_score stored before, but"),
    (overclaims.ReadsBySpec, SCOPE, "after Namespace"),
    (overclaims.KeyByPods, SCOPE, "before; that would go unnoticed: it is asked for again only if"),
    (overclaims.ScopeByPods, SCOPE, "but Scope.OBJECT before; that would go unnoticed"),
    (overclaims.OldVersion, SCOPE, "that would go unnoticed: key_version() still is"),
    (by_domain.OldVersionOfApps, SCOPE, "that would go unnoticed: key_version() still is 0"),
    (overclaims.SpecKeyByNodes, SCOPE, "key_from_spec says that it looks at nothing but"),
    (overclaims.Sometimes, SCOPE, "scope OBJECT says"),
    (overclaims.ForgetsMemory, KEY, "for a pod with other memory, but"),
    (overclaims.ForgetsTolerations, KEY, "for a pod with other tolerations, but"),
    (overclaims.SkipsByLabel, KEY, "pre_filter gives Success for a pod with other labels, but"),
    (overclaims.StoresLabels, KEY, "for a pod with other labels, but"),
    (overclaims.ListsKeys, KEY, "cache_key() returned [0], expected something hashable"),
    (overclaims.ForgetsSelector, KEY, "for a pod with other node selector, but"),
    (overclaims.SpecKeyByLabels, KEY, "for a pod with other labels, but"),
    (overclaims.BreaksTies, EQUAL, "by_extremes says that equal points"),
    (by_domain.ByMean, EXTREMES, "where every number of points occurs once"),
    (by_domain.HalfForApps, EXTREMES, "only points and extremes matter, for pods with equal keys"),
    (by_domain.RefusesAll, REFUSE, "is refused for its topology.kubernetes.io/zone"),
    (by_domain.ShortTable, REFUSE, "values of bool"),
    (by_domain.OtherPoints, SCORE, "by score_by_domain(), but"),
    (by_domain.CountsTheFit, SCORE, "must not look at which nodes fit"),
    (by_domain.RoomiestOfAll, LABELS, "by final_by_label(), but 100 by score_all() in the end"),
    (by_domain.NotFinal, LABELS, "expected 0 to 100"),
    (by_domain.NotLocal, LOCAL, "must not look at pods of other domains"),
    (by_domain.ForgetsApp, LOCAL, "with equal cache keys and the same basis"),
    (by_domain.StaysWithIt, EARLIER, "with the state of an earlier pod, but"),
    (by_domain.StaysWithLabels, EARLIER, "with the state of an earlier pod with other labels, but"),
    (left_out.RefusesOthers, APPLIES, "pre_filter gives Unschedulable ['node(s) are not for"),
    (left_out.RestrictsOthers, APPLIES, "pre_filter gives OnlyNodes ["),
    (left_out.FiltersOthers, APPLIES, "for node node-4, although applies_to() is False for"),
    (left_out.FailsOthers, APPLIES, "pre_score gives Error ['no app'], although"),
    (left_out.ScoresOthers, APPLIES, ": expected equal scores"),
    (left_out.ReservesOthers, APPLIES, "reserve gives Unschedulable"),
    (left_out.DelaysOthers, APPLIES, "permit gives Wait(timeout=10.0) for node"),
    (left_out.PreparesOthers, APPLIES, "pre_flight gives Success for node"),
    (left_out.TrustsAppliesTo, APPLIES, "raised KeyError"),
    (left_out.AppliesToText, APPLIES, "applies_to() returned None, expected a bool"),
    (left_out.AppliesToNames, APPLIES, "applies_to() is False for a pod with another name and uid"),
    (left_out.AppliesAtFirst, APPLIES, "an hour later, with other random numbers, but True for"),
    (left_out.AppliesToSmallClusters, APPLIES, "was removed, but False for"),
]
TRUE: list[type[fw.Base]] = [
    overclaims.NoScope,
    overclaims.ReadsNamespaces,
    overclaims.BySpread,
    overclaims.ByRequests,
    overclaims.ByTolerations,
    overclaims.BySpec,
    overclaims.ByScopes,
    overclaims.ByLabels,
    overclaims.NeverZero,
    by_domain.Zonal,
    by_domain.Local,
    by_domain.LocalByApp,
    by_domain.Roomiest,
    left_out.ForApps,
    left_out.SkipsOthers,
    left_out.KeptForApps,
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
        " scope OBJECT says that only the cache key and the node's own object matter,"
        " and the cache key is still the same"
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
    with pytest.raises(AssertionError, match=rf"{KEY}.* for default/p, but Success"):
        check_plugin(Licensed, examples=licensed)


@pytest.mark.parametrize("seed", range(12))
def test_makes_twins_that_are_of_one_class(seed: int) -> None:
    for one in random_cluster(seed).incoming:
        twins = [fw.Pod(change(one.api)) for change in TWINS.values()]
        assert all(everything_of(twin) == everything_of(one) for twin in [*twins, twin_of(one)])
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
