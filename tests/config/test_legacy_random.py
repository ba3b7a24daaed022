"""Any old file converts to one that the strict loader accepts, or is refused with a place."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from mooring import config as cfg
from mooring.config.legacy import names, policy
from mooring.config.legacy.types import POINTS
from mooring.errors import ConfigError, Problem

VERSIONS = ("v1beta3", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
NAMES = st.sampled_from(
    [
        *("*", "Mine", "DefaultBinder", "NodePreferAvoidPods", "NodeLabel", "ServiceAffinity"),
        *("NodeResourceLimits", *names.V1_SCORES, *names.V1_FILTERS, *names.STRATEGIES),
        *(*names.SELECTOR_SPREADS, *names.VOLUME_LIMITS),
    ]
)
SPOILT = st.sampled_from([None, 0, -1, 101, "x", "", [], {}, [None], {"a": 1}, True, 1.5])


def rarely_spoilt(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 40).flatmap(lambda number: SPOILT if number == 0 else good)


def fields(**of: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    spoilt = {name: rarely_spoilt(value) for name, value in of.items()}
    return st.fixed_dictionaries({}, optional=spoilt)


REF = st.fixed_dictionaries({"name": NAMES}, optional={"weight": st.integers(0, 9)})
PLUGIN_SET = fields(enabled=st.lists(REF, max_size=3), disabled=st.lists(REF, max_size=2))
POINT_NAMES = sorted({point for points in POINTS.values() for point in points})
PLUGINS = st.dictionaries(st.sampled_from(POINT_NAMES), rarely_spoilt(PLUGIN_SET), max_size=3)
SHAPE = st.lists(fields(utilization=st.integers(0, 100), score=st.integers(0, 10)), max_size=2)
RESOURCES = st.lists(fields(name=st.just("cpu"), weight=st.integers(0, 3)), max_size=2)
ARGS = fields(
    apiVersion=st.just("kubescheduler.config.k8s.io/v1beta1"),
    resources=RESOURCES,
    shape=SHAPE,
    presentLabels=st.lists(st.just("a"), max_size=1),
    affinityLabels=st.lists(st.just("a"), max_size=1),
    defaultConstraints=st.lists(st.just({"topologyKey": "a"}), max_size=1),
    defaultingType=st.sampled_from(["List", "System"]),
    scoringStrategy=fields(type=st.just("MostAllocated")),
    hardPodAffinityWeight=st.integers(0, 100),
)
PLUGIN_CONFIG = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"args": rarely_spoilt(ARGS)}), max_size=2
)
EXTENDER = fields(
    urlPrefix=st.just("http://x"),
    filterVerb=st.just("filter"),
    prioritizeVerb=st.just("p"),
    weight=st.integers(0, 3),
    bindVerb=st.just("b"),
    enableHttps=st.booleans(),
    enableHTTPS=st.booleans(),
    httpTimeout=st.sampled_from([0, 10**9, "5s"]),
    tlsConfig=fields(insecure=st.booleans(), CAFile=st.just("f")),
    managedResources=st.lists(fields(name=st.just("example.com/x")), max_size=2),
)
PREDICATE = fields(
    name=st.sampled_from([*policy._PREDICATES, "CheckServiceAffinity", "MaxEBSVolumeCount", "X"]),
    argument=fields(
        serviceAffinity=fields(labels=st.lists(st.just("a"), max_size=1)),
        labelsPresence=fields(labels=st.lists(st.just("a"), max_size=1), presence=st.booleans()),
    ),
)
PRIORITY = fields(
    name=st.sampled_from([*policy._PRIORITIES, "EqualPriority", "X"]),
    weight=st.integers(0, 9),
    argument=fields(
        labelPreference=fields(label=st.just("a"), presence=st.booleans()),
        requestedToCapacityRatioArguments=fields(shape=SHAPE, resources=RESOURCES),
    ),
)
POLICY = fields(
    predicates=st.lists(PREDICATE, max_size=4),
    priorities=st.lists(PRIORITY, max_size=4),
    extenders=st.lists(EXTENDER, max_size=2),
    hardPodAffinitySymmetricWeight=st.integers(-1, 101),
    alwaysCheckAllPredicates=st.booleans(),
)
PROFILE = fields(
    schedulerName=st.sampled_from(["a", "b"]), plugins=PLUGINS, pluginConfig=PLUGIN_CONFIG
)
ELECTION = fields(
    leaderElect=st.booleans(),
    resourceLock=st.sampled_from(["endpoints", "leases", "x"]),
    resourceName=st.just("a"),
    lockObjectName=st.sampled_from(["a", "b"]),
    leaseDuration=st.just("15s"),
)
CONFIGURATION = fields(
    leaderElection=ELECTION,
    clientConnection=fields(kubeconfig=st.just("f"), qps=st.floats(0, 9)),
    percentageOfNodesToScore=st.integers(-1, 101),
    profiles=st.lists(PROFILE, max_size=2),
    extenders=st.lists(EXTENDER, max_size=2),
    healthzBindAddress=st.just("0.0.0.0:10251"),
    plugins=PLUGINS,
    pluginConfig=PLUGIN_CONFIG,
    disablePreemption=st.booleans(),
    bindTimeoutSeconds=st.integers(0, 9),
    hardPodAffinitySymmetricWeight=st.integers(0, 100),
    algorithmSource=fields(
        provider=st.sampled_from(["", "DefaultProvider", "ClusterAutoscalerProvider", "x"]),
        policy=fields(
            file=fields(path=st.just("/no/such/policy")),
            configMap=fields(name=st.just("p"), namespace=st.just("n")),
        ),
    ),
    parallelism=st.integers(0, 3),
)


def known_to(version: str, document: dict[str, Any]) -> dict[str, Any]:
    """Mostly what the version has, or nearly every file of a beta version would be refused."""
    alpha = {"disablePreemption", "bindTimeoutSeconds"}
    first = {"plugins", "pluginConfig", "hardPodAffinitySymmetricWeight", "algorithmSource"}
    absent = {"v1alpha1": {"profiles", "extenders"}, "v1alpha2": first}.get(version, alpha | first)
    if version == "v1beta3":
        absent = absent | {"healthzBindAddress"}
    return {key: value for key, value in document.items() if key not in absent}


def read(text: str, answer: dict[str, str] | None) -> tuple[cfg.Loaded | None, tuple[Problem, ...]]:
    try:
        loaded = cfg.read_text(text, "f.yaml", read_config_map=lambda *asked: answer)
    except ConfigError as error:
        return None, error.problems
    return loaded, ()


def check(text: str, answer: dict[str, str] | None = None) -> None:
    loaded, problems = read(text, answer)
    assert (loaded is None) == bool(problems)
    assert all(problem.path and problem.message for problem in problems)
    if loaded is None:
        return
    again = cfg.read_text(cfg.to_v1_yaml(loaded))
    assert again.config == loaded.config
    assert again.notes == ()


@given(st.sampled_from(VERSIONS), CONFIGURATION, POLICY)
def test_converts_or_refuses_a_configuration(
    version: str, document: dict[str, Any], policy: dict[str, Any]
) -> None:
    header = {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
    }
    text = yaml.safe_dump({**header, **known_to(version, document)})
    check(text, {"policy.cfg": yaml.safe_dump(policy)})


@given(POLICY)
def test_converts_or_refuses_a_policy(document: dict[str, Any]) -> None:
    check(yaml.safe_dump({"apiVersion": "v1", "kind": "Policy", **document}))
