import json
import re

import pytest
from tests.sizes import seeds
from tests.testing import applies_to, declarations

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
FEWER = Examples(seeds=seeds(0, 1, 2))  # for plugins without a fault, which are tried on all
DECLARED = "check_declarations_are_true"
APPLIES = "check_applies_to_is_true"
STORED = "with what pre_filter and pre_score stored before"

WRONG: list[tuple[type[Base], str, str]] = [
    (declarations.ByName, DECLARED, "for a pod with another name and uid, but"),
    (declarations.ByAge, DECLARED, "for a pod created at another time, but Success was kept from"),
    (declarations.ByLuck, DECLARED, "with other random numbers, but"),
    (declarations.ByClock, DECLARED, "an hour later, but"),
    (
        declarations.ByAttempts,
        DECLARED,
        "for a pod that was tried before, but Success was kept from",
    ),
    (
        declarations.ByVolumes,
        DECLARED,
        "score is 1 for a pod with one more volume that has no source",
    ),
    (declarations.ByBest, DECLARED, "depends_on = fw.NODE says"),
    (declarations.ByFeasible, DECLARED, "pre_score is given all nodes and not only those that fit"),
    (declarations.UsesUp, DECLARED, STORED),
    (declarations.KeyByName, DECLARED, "which goes unnoticed: it is asked for once for all pods"),
    (declarations.ByWord, "check_contract", "its depends_on must be NODE or NODE_AND_PODS"),
    (
        declarations.CountsPods,
        DECLARED,
        "added to node node-1, but 100 was kept; depends_on = fw.NODE",
    ),
    (declarations.LooksAround, DECLARED, "was kept; depends_on = fw.NODE_AND_PODS says that"),
    (declarations.ComparesNodes, DECLARED, "and cache_key() still is ('node-"),
    (declarations.CountsNodes, DECLARED, "after node node-new was added, but none was kept"),
    (declarations.CountsRunning, DECLARED, "after the status of pod"),
    (declarations.StoresCounts, DECLARED, STORED),
    (declarations.ReadsBySpec, DECLARED, "for a pod with other namespace, but"),
    (
        declarations.KeyByPods,
        DECLARED,
        "which goes unnoticed: it is asked for again when a node or",
    ),
    (declarations.DependsByPods, DECLARED, "depends_on = fw.NODE says"),
    (declarations.OldVersion, DECLARED, "which goes unnoticed"),
    (declarations.SpecKeyByNodes, DECLARED, "which goes unnoticed"),
    (declarations.Sometimes, DECLARED, "depends_on = fw.NODE says"),
    (declarations.ForgetsMemory, DECLARED, "for a pod with other memory, but"),
    (declarations.ForgetsTolerations, DECLARED, "for a pod with other tolerations, but"),
    (declarations.SkipsByLabel, DECLARED, "for a pod with other labels, but Success was kept from"),
    (declarations.StoresLabels, DECLARED, "for a pod with other labels, but"),
    (declarations.ListsKeys, DECLARED, "cache_key() returned [0], expected something hashable"),
    (declarations.ForgetsSelector, DECLARED, "cache_key() says that all that matters of both is"),
    (declarations.SpecKeyByLabels, DECLARED, "for a pod with other labels, but"),
    (declarations.FailsElsewhere, DECLARED, "KeyError: 'topology.kubernetes.io/zone'"),
    (declarations.KeyFails, DECLARED, "cache_key() raised KeyError: 'app'"),
    (applies_to.RefusesOthers, APPLIES, "pre_filter() gives Unschedulable ['node(s) are not for"),
    (applies_to.RestrictsOthers, APPLIES, "pre_filter() gives OnlyNodes ["),
    (applies_to.FiltersOthers, APPLIES, "filter() for node node-4 gives Unschedulable"),
    (applies_to.FailsOthers, APPLIES, "no app'], although applies_to() is False for"),
    (applies_to.ScoresOthers, APPLIES, ": expected equal scores"),
    (applies_to.ReservesOthers, APPLIES, "reserve() gives Unschedulable"),
    (applies_to.DelaysOthers, APPLIES, "permit() gives Wait(timeout=10.0), although"),
    (applies_to.PreparesOthers, APPLIES, "pre_flight() gives Success, although"),
    (applies_to.TrustsAppliesTo, APPLIES, "KeyError: 'app'"),
    (applies_to.AppliesToText, APPLIES, "applies_to() returned None, expected a bool"),
    (
        applies_to.AppliesToNames,
        APPLIES,
        "applies_to() is False for a pod with another name and uid",
    ),
    (applies_to.AppliesAtFirst, APPLIES, "applies_to() is False an hour later, but True for"),
    (applies_to.AppliesToSmallClusters, APPLIES, "after node node-new was added, but True for"),
]
SHOWN_SMALL: list[type[Base]] = [  # the words are those of a cluster made as small as it can be
    declarations.CountsNodes,
    declarations.KeyByPods,
    declarations.ForgetsMemory,
    declarations.ListsKeys,
    applies_to.AppliesToSmallClusters,
]
TRUE: list[type[Base]] = [
    declarations.Undeclared,
    declarations.ReadsNamespaces,
    declarations.BySpread,
    declarations.ByRequests,
    declarations.ByTolerations,
    declarations.BySpec,
    declarations.ByPod,
    declarations.ByLabels,
    applies_to.ForApps,
    applies_to.SkipsOthers,
    applies_to.KeptForApps,
]


@pytest.mark.parametrize(
    ("plugin", "check", "words"), WRONG, ids=[plugin.__name__ for plugin, _, _ in WRONG]
)
def test_catches_a_claim_that_is_not_true(
    plugin: type[Base], check: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plugin not in SHOWN_SMALL:
        monkeypatch.setattr("mooring.testing._shrink.MAX_QUESTIONS", 0)
    expected = rf"^plugin {plugin.name} fails {check}: .*{re.escape(words)}"
    with pytest.raises(AssertionError, match=expected):
        dict(plugin_checks())[check](plugin, examples=FEW)


@pytest.mark.parametrize("plugin", TRUE, ids=[plugin.__name__ for plugin in TRUE])
def test_finds_nothing_wrong_with_a_claim_that_is_true(plugin: type[Base]) -> None:
    check_plugin(plugin, examples=FEWER)


@pytest.mark.parametrize("plugin", [applies_to.AppliesToNames, applies_to.AppliesAtFirst])
def test_finds_a_wrong_applies_to_once(plugin: type[Base]) -> None:
    with pytest.raises(AssertionError, match=rf"^plugin {plugin.name} fails {APPLIES}: "):
        check_plugin(plugin, examples=FEW)


def test_says_in_one_line_what_differed_and_what_was_claimed() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(declarations.CountsPods, examples=FEW)
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
    class Licensed(declarations.ByRequests):
        """Looks at an annotation that no random pod has."""

        name = "Licensed"

        def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
            return fw.OK if "licence" not in pod.annotations else declarations.NOT_HERE

    check_plugin(Licensed, examples=FEWER)
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
    ("check", "plugin"), [(DECLARED, declarations.ByRequests), (APPLIES, applies_to.ForApps)]
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
