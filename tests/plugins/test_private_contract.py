"""Our plugins with tables by domain keep the contract that only they have."""

import re
from collections.abc import Hashable, Mapping
from typing import Any

import pytest
from tests.contract.test_every_plugin import ARGS
from tests.plugins import faulty_domain_plugins
from tests.plugins.private_contract import PRIVATE_CHECKS
from tests.sizes import seeds

from mooring.api import codec, core
from mooring.cache.pods import Pod
from mooring.framework.plugin import Base
from mooring.plugins.interpodaffinity.plugin import InterPodAffinity
from mooring.plugins.podtopologyspread.plugin import PodTopologySpread
from mooring.testing import Examples, node, pod
from mooring.testing._bench import varied
from mooring.testing._declarations import check_declarations_are_true
from mooring.testing.builders import HOSTNAME, ZONE

FEW = Examples(seeds=range(12))
FEWER = Examples(seeds=seeds(0, 1, 2))  # for tables without a fault, which are tried on all
SOLO = {"app": "solo"}
SOLO_ONLY = {"matchLabels": SOLO}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def rule(kind: str, **term: object) -> dict[str, Any]:
    return {kind: {REQUIRED: [{"topologyKey": ZONE, "labelSelector": SOLO_ONLY, **term}]}}


def soft(topology_key: str, skew: int) -> dict[str, Any]:
    return {
        "topologyKey": topology_key,
        "maxSkew": skew,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": SOLO_ONLY,
    }


# What random pods hardly ever have, and parts of the keys are about.
RARE = Examples(
    seeds=seeds(0, 2, 5, 9),
    pods=[
        # The default constraints, written out, and the same by default.
        pod(
            "own",
            labels=SOLO,
            spec={"topologySpreadConstraints": [soft(HOSTNAME, 3), soft(ZONE, 5)]},
        ),
        pod("by-default", labels=SOLO),
        # The first of its group, which may go anywhere because its own rule means it.
        pod("first", labels=SOLO, affinity=rule("podAffinity")),
        pod("meant", namespace="team-a", labels=SOLO),
    ],
    nodes=[
        node("bare", labels={HOSTNAME: "bare"}),
        node(
            "strict",
            zone="a",
            pods=[
                pod(
                    "strict",
                    namespace="team-b",
                    affinity=rule(
                        "podAntiAffinity", namespaceSelector={"matchLabels": {"team": "a"}}
                    ),
                )
            ],
        ),
        node("other", zone="b"),
    ],
    objects=[
        codec.convert(
            {"metadata": {"name": "solo", "namespace": "default"}, "spec": {"selector": SOLO}},
            core.Service,
        )
    ],
)
OURS: list[type[Base]] = [InterPodAffinity, PodTopologySpread]
CHECKS = {check.name: check for check in (*PRIVATE_CHECKS, check_declarations_are_true)}

WRONG: list[tuple[type[Base], str, str]] = [
    (faulty_domain_plugins.RefusesAll, "check_domains_refuse_alike", "but filter() says Success"),
    (faulty_domain_plugins.RefusesAll, "check_declarations_are_true", "the feasible nodes are"),
    (faulty_domain_plugins.ShortTable, "check_domains_refuse_alike", "values of bool"),
    (
        faulty_domain_plugins.OtherPoints,
        "check_domains_score_alike",
        "has 2 by score_by_domain(), but 1",
    ),
    (faulty_domain_plugins.CountsTheFit, "check_declarations_are_true", "the best node is"),
    (
        faulty_domain_plugins.RoomiestOfAll,
        "check_labels_score_alike",
        "by final_by_label(), but 100",
    ),
    (faulty_domain_plugins.NotFinal, "check_labels_score_alike", "expected 0 to 100"),
    (faulty_domain_plugins.NotLocal, "check_local_tables_are_local", "was added to node"),
    (
        faulty_domain_plugins.BasisWithoutApp,
        "check_declarations_are_true",
        "for a pod with other labels",
    ),
    (
        faulty_domain_plugins.ForgetsApp,
        "check_local_tables_are_local",
        "for a pod with other labels, but",
    ),
    (
        faulty_domain_plugins.ForgetsApp,
        "check_declarations_are_true",
        "cache_key() says that all that matters",
    ),
    (faulty_domain_plugins.StaysWithIt, "check_declarations_are_true", "was added to node"),
    (
        faulty_domain_plugins.StaysWithLabels,
        "check_declarations_are_true",
        "for a pod with other labels",
    ),
]
TRUE: list[type[Base]] = [
    faulty_domain_plugins.Zonal,
    faulty_domain_plugins.Local,
    faulty_domain_plugins.LocalByApp,
    faulty_domain_plugins.Roomiest,
]


@pytest.mark.parametrize(
    ("plugin", "args"), [(plugin, args) for plugin in OURS for args in ARGS[plugin.name]]
)
def test_keeps_the_private_contract(plugin: type[Base], args: Mapping[str, Any]) -> None:
    for check in PRIVATE_CHECKS:
        check(plugin, args, FEW)


@pytest.mark.parametrize("plugin", OURS)
def test_has_all_that_matters_in_its_keys(plugin: type[Base]) -> None:
    check_declarations_are_true(plugin, examples=RARE)


def affinity_without_itself(self: InterPodAffinity, given: Pod) -> Hashable:
    key: Any = InterPodAffinity.cache_key(self, given)
    return key if key is None else (*key[:2], *key[3:])


def version_without_namespaces(self: InterPodAffinity) -> Hashable:
    rules, _ = InterPodAffinity._version(self, self.handle.nodes)
    return rules


@pytest.mark.parametrize(
    ("plugin", "members"),
    [
        (InterPodAffinity, {"cache_key": affinity_without_itself}),
        (InterPodAffinity, {"key_version": version_without_namespaces}),
    ],
    ids=["means_itself", "namespaces"],
)
def test_notices_what_is_missing_in_a_key(
    plugin: type[Base], members: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mooring.testing._shrink.MAX_QUESTIONS", 0)
    with pytest.raises(AssertionError, match="check_declarations_are_true"):
        check_declarations_are_true(varied(plugin, members), examples=RARE)


@pytest.mark.parametrize(
    ("plugin", "check", "words"), WRONG, ids=[f"{one.__name__}-{name}" for one, name, _ in WRONG]
)
def test_catches_a_table_that_is_wrong(
    plugin: type[Base], check: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mooring.testing._shrink.MAX_QUESTIONS", 0)
    expected = rf"^plugin {plugin.name} fails {check}: .*{re.escape(words)}"
    with pytest.raises(AssertionError, match=expected):
        CHECKS[check](plugin, examples=FEW)


@pytest.mark.parametrize("plugin", TRUE, ids=[plugin.__name__ for plugin in TRUE])
def test_finds_nothing_wrong_with_tables_that_are_right(plugin: type[Base]) -> None:
    for check in CHECKS.values():
        check(plugin, examples=FEWER)
