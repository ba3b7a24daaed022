import json
import re

import pytest
from tests.testing import left_out, overclaims

import mooring.framework as fw
from mooring.api import core
from mooring.cache.cache import Cache
from mooring.framework.depends_on import everything_of
from mooring.framework.plugin import Base
from mooring.testing import Examples, check_plugin, node, plugin_checks, pod
from mooring.testing._changes import changes
from mooring.testing._columns_digest import digest
from mooring.testing._other_pods import TWINS, twin_of
from mooring.testing._random_clusters import random_cluster

FEW = Examples(seeds=range(12))
DECLARED = "check_declarations_are_true"
APPLIES = "check_applies_to_is_true"
STORED = "with what pre_filter and pre_score stored before"

WRONG: list[tuple[type[Base], str, str]] = [
    (overclaims.ByName, DECLARED, "for a pod with another name and uid, but"),
    (overclaims.ByAge, DECLARED, "for a pod created at another time, but Success was kept from"),
    (overclaims.ByLuck, DECLARED, "with other random numbers, but"),
    (overclaims.ByClock, DECLARED, "an hour later, but"),
    (overclaims.ByAttempts, DECLARED, "for a pod that was tried before, but Success was kept from"),
    (
        overclaims.ByVolumes,
        DECLARED,
        "score is 1 for a pod with one more volume that has no source",
    ),
    (overclaims.ByBest, DECLARED, "depends_on = fw.NODE says"),
    (overclaims.ByFeasible, DECLARED, "pre_score is given all nodes and not only those that fit"),
    (overclaims.UsesUp, DECLARED, STORED),
    (overclaims.KeyByName, DECLARED, "which goes unnoticed: it is asked for once for all pods"),
    (overclaims.ByWord, "check_contract", "its depends_on must be NODE or NODE_AND_PODS"),
    (
        overclaims.CountsPods,
        DECLARED,
        "added to node node-1, but 100 was kept; depends_on = fw.NODE",
    ),
    (overclaims.LooksAround, DECLARED, "was kept; depends_on = fw.NODE_AND_PODS says that"),
    (overclaims.ComparesNodes, DECLARED, "and cache_key() still is ('node-"),
    (overclaims.CountsNodes, DECLARED, "after node node-new was added, but none was kept"),
    (overclaims.CountsRunning, DECLARED, "after the status of pod"),
    (overclaims.StoresCounts, DECLARED, STORED),
    (overclaims.ReadsBySpec, DECLARED, "for a pod with other namespace, but"),
    (overclaims.KeyByPods, DECLARED, "which goes unnoticed: it is asked for again when a node or"),
    (overclaims.DependsByPods, DECLARED, "depends_on = fw.NODE says"),
    (overclaims.OldVersion, DECLARED, "which goes unnoticed"),
    (overclaims.SpecKeyByNodes, DECLARED, "which goes unnoticed"),
    (overclaims.Sometimes, DECLARED, "depends_on = fw.NODE says"),
    (overclaims.ForgetsMemory, DECLARED, "for a pod with other memory, but"),
    (overclaims.ForgetsTolerations, DECLARED, "for a pod with other tolerations, but"),
    (overclaims.SkipsByLabel, DECLARED, "for a pod with other labels, but Success was kept from"),
    (overclaims.StoresLabels, DECLARED, "for a pod with other labels, but"),
    (overclaims.ListsKeys, DECLARED, "cache_key() returned [0], expected something hashable"),
    (overclaims.ForgetsSelector, DECLARED, "cache_key() says that all that matters of both is"),
    (overclaims.SpecKeyByLabels, DECLARED, "for a pod with other labels, but"),
    (overclaims.FailsElsewhere, DECLARED, "KeyError: 'topology.kubernetes.io/zone'"),
    (overclaims.KeyFails, DECLARED, "cache_key() raised KeyError: 'app'"),
    (left_out.RefusesOthers, APPLIES, "pre_filter() gives Unschedulable ['node(s) are not for"),
    (left_out.RestrictsOthers, APPLIES, "pre_filter() gives OnlyNodes ["),
    (left_out.FiltersOthers, APPLIES, "filter() for node node-4 gives Unschedulable"),
    (left_out.FailsOthers, APPLIES, "no app'], although applies_to() is False for"),
    (left_out.ScoresOthers, APPLIES, ": expected equal scores"),
    (left_out.ReservesOthers, APPLIES, "reserve() gives Unschedulable"),
    (left_out.DelaysOthers, APPLIES, "permit() gives Wait(timeout=10.0), although"),
    (left_out.PreparesOthers, APPLIES, "pre_flight() gives Success, although"),
    (left_out.TrustsAppliesTo, APPLIES, "KeyError: 'app'"),
    (left_out.AppliesToText, APPLIES, "applies_to() returned None, expected a bool"),
    (left_out.AppliesToNames, APPLIES, "applies_to() is False for a pod with another name and uid"),
    (left_out.AppliesAtFirst, APPLIES, "applies_to() is False an hour later, but True for"),
    (left_out.AppliesToSmallClusters, APPLIES, "after node node-new was added, but True for"),
]
TRUE: list[type[Base]] = [
    overclaims.Undeclared,
    overclaims.ReadsNamespaces,
    overclaims.BySpread,
    overclaims.ByRequests,
    overclaims.ByTolerations,
    overclaims.BySpec,
    overclaims.ByPod,
    overclaims.ByLabels,
    left_out.ForApps,
    left_out.SkipsOthers,
    left_out.KeptForApps,
]


@pytest.mark.parametrize(
    ("plugin", "check", "words"), WRONG, ids=[plugin.__name__ for plugin, _, _ in WRONG]
)
def test_catches_a_claim_that_is_not_true(plugin: type[Base], check: str, words: str) -> None:
    expected = rf"^plugin {plugin.name} fails {check}: .*{re.escape(words)}"
    with pytest.raises(AssertionError, match=expected):
        dict(plugin_checks())[check](plugin, examples=FEW)


@pytest.mark.parametrize("plugin", TRUE, ids=[plugin.__name__ for plugin in TRUE])
def test_finds_nothing_wrong_with_a_claim_that_is_true(plugin: type[Base]) -> None:
    check_plugin(plugin, examples=FEW)


@pytest.mark.parametrize("plugin", [left_out.AppliesToNames, left_out.AppliesAtFirst])
def test_finds_a_wrong_applies_to_once(plugin: type[Base]) -> None:
    with pytest.raises(AssertionError, match=rf"^plugin {plugin.name} fails {APPLIES}: "):
        check_plugin(plugin, examples=FEW)


def test_says_in_one_line_what_differed_and_what_was_claimed() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(overclaims.CountsPods, examples=FEW)
    first, *example, seed = str(failure.value).splitlines()
    assert first == (
        "plugin CountsPods fails check_declarations_are_true: node node-1: score is 99 after pod"
        " team-b/new-0-twin was added to node node-1, but 100 was kept; depends_on = fw.NODE says"
        " that only the cache key and the node's own object matter"
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
    with pytest.raises(AssertionError, match=rf"{DECLARED}.* for default/p, but Success"):
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
            change.make(cache)
            change.undo(cache)
            assert contents(cache) == before


@pytest.mark.parametrize(
    ("check", "plugin"), [(DECLARED, overclaims.ByRequests), (APPLIES, left_out.ForApps)]
)
def test_changes_no_cluster_that_other_checks_look_at(check: str, plugin: type[Base]) -> None:
    cases = list(Examples(seeds=range(4)).cases(shared=True))
    before = [digest(case.cluster.shared_cache, case.pod) for case in cases]
    assert dict(plugin_checks())[check].find(plugin, {}, cases) is None
    assert [digest(case.cluster.shared_cache, case.pod) for case in cases] == before


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
