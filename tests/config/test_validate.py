from typing import Any

import msgspec
import pytest

from mooring.api.requests import is_extended
from mooring.config.duration import Duration
from mooring.config.load import default_configuration
from mooring.config.types import (
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    ManagedResource,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from mooring.config.validate import validate

V1 = "kubescheduler.config.k8s.io/v1"


def problems(**changes: Any) -> list[str]:
    """What is wrong with the default configuration after these changes."""
    config: KubeSchedulerConfiguration = msgspec.structs.replace(default_configuration(), **changes)
    return [str(problem) for problem in validate(config)]


def enabled(*names: str) -> PluginSet:
    return PluginSet(enabled=tuple(map(PluginRef, names)))


def seconds(number: int) -> Duration:
    return Duration.of(number)


def test_finds_nothing_wrong_with_the_defaults() -> None:
    assert problems() == []


@pytest.mark.parametrize("value", [0, -1])
def test_wants_positive_parallelism(value: int) -> None:
    expected = f"parallelism: Invalid value: {value}: should be an integer value greater than zero"
    assert problems(parallelism=value) == [expected]


@pytest.mark.parametrize("value", [-1, 101])
def test_wants_percentages_between_0_and_100(value: int) -> None:
    text = f"percentageOfNodesToScore: Invalid value: {value}: not in valid range [0-100]"
    assert problems(percentage_of_nodes_to_score=value) == [text]
    profile = KubeSchedulerProfile(scheduler_name="x", percentage_of_nodes_to_score=value)
    assert problems(profiles=(profile,)) == [f"profiles[0].{text}"]


@pytest.mark.parametrize("value", [None, 0, 100])
def test_accepts_the_bounds_of_percentages(value: int | None) -> None:
    assert problems(percentage_of_nodes_to_score=value) == []


def test_wants_a_positive_backoff_that_does_not_shrink() -> None:
    assert problems(pod_initial_backoff_seconds=0, pod_max_backoff_seconds=0) == [
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"
    ]
    assert problems(pod_initial_backoff_seconds=11) == [
        "podMaxBackoffSeconds: Invalid value: 10: "
        "must be greater than or equal to PodInitialBackoffSeconds"
    ]
    assert problems(pod_initial_backoff_seconds=10) == []


def test_wants_a_burst_that_is_not_negative() -> None:
    assert problems(client_connection=ClientConnection(burst=-5)) == [
        "clientConnection.burst: Invalid value: -5: must be non-negative"
    ]


@pytest.mark.parametrize(
    ("election", "expected"),
    [
        (
            LeaderElectionConfiguration(
                resource_name="own", lease_duration=seconds(-1), renew_deadline=seconds(-2)
            ),
            [
                "leaseDuration: Invalid value: -1s: must be greater than zero",
                "renewDeadline: Invalid value: -2s: must be greater than zero",
            ],
        ),
        (
            LeaderElectionConfiguration(resource_name="own", retry_period=seconds(0)),
            ["retryPeriod: Invalid value: 0s: must be greater than zero"],
        ),
        (
            LeaderElectionConfiguration(resource_name="own", renew_deadline=seconds(15)),
            ["leaseDuration: Invalid value: 15s: must be greater than `RenewDeadline`"],
        ),
        (
            LeaderElectionConfiguration(resource_name="own", resource_lock="endpoints"),
            ['resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"'],
        ),
        (
            LeaderElectionConfiguration(resource_lock="", resource_name="", resource_namespace=""),
            [
                "resourceLock: Required value",
                "resourceNamespace: Required value",
                "resourceName: Required value",
            ],
        ),
        (
            LeaderElectionConfiguration(
                leader_elect=False, resource_lock="x", retry_period=seconds(0)
            ),
            [],
        ),
    ],
)
def test_checks_leader_election(election: LeaderElectionConfiguration, expected: list[str]) -> None:
    assert problems(leader_election=election) == [f"leaderElection.{line}" for line in expected]


def test_wants_profiles_with_distinct_names() -> None:
    assert problems(profiles=()) == ["profiles: Required value"]
    names = ["a", "", "a"]
    assert problems(
        profiles=tuple(KubeSchedulerProfile(scheduler_name=name) for name in names)
    ) == [
        "profiles[1].schedulerName: Required value",
        'profiles[2].schedulerName: Duplicate value: "a"',
    ]


@pytest.mark.parametrize("name", ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"])
def test_refuses_plugins_that_were_removed(name: str) -> None:
    profile = KubeSchedulerProfile(
        scheduler_name="x",
        plugins=Plugins(filter=enabled("NodeName", name), multi_point=enabled(name)),
        plugin_config=(PluginConfig(name=name),),
    )
    text = (
        f'Invalid value: "{name}": was invalid in version "{V1}" '
        f'(KubeSchedulerConfiguration is version "{V1}")'
    )
    assert problems(profiles=(profile,)) == [
        f"profiles[0].plugins.multiPoint.enabled[0]: {text}",
        f"profiles[0].plugins.filter.enabled[1]: {text}",
        f"profiles[0].pluginConfig[0]: {text}",
    ]


def test_refuses_negative_weights() -> None:
    score = PluginSet(enabled=(PluginRef("A"), PluginRef("B", -1)))
    profile = KubeSchedulerProfile(scheduler_name="x", plugins=Plugins(score=score))
    assert problems(profiles=(profile,)) == [
        "profiles[0].plugins.score.enabled[1].weight: Invalid value: -1: must be non-negative"
    ]


def test_wants_one_plugin_config_per_plugin() -> None:
    entries = (PluginConfig(name="A"), PluginConfig(name="B"), PluginConfig(name="A"))
    profile = KubeSchedulerProfile(scheduler_name="x", plugin_config=entries)
    assert problems(profiles=(profile,)) == ['profiles[0].pluginConfig[2]: Duplicate value: "A"']


def test_wants_one_queue_sort_plugin() -> None:
    profile = KubeSchedulerProfile(
        scheduler_name="x", plugins=Plugins(queue_sort=enabled("A", "B"))
    )
    assert problems(profiles=(profile,)) == [
        "profiles[0].plugins.queueSort.enabled: Invalid value: 2: "
        "only one queue sort plugin can be enabled"
    ]


def test_wants_the_same_queue_sort_in_all_profiles() -> None:
    one = KubeSchedulerProfile(scheduler_name="a", plugins=Plugins(queue_sort=enabled("A")))
    other = KubeSchedulerProfile(scheduler_name="b", plugins=Plugins(queue_sort=enabled("B")))
    assert problems(profiles=(one, other)) == [
        "profiles[1].plugins.queueSort: Invalid value: "
        '{"enabled": [{"name": "B", "weight": 0}], "disabled": []}: '
        "must be the same for all profiles"
    ]


def test_wants_the_same_queue_sort_args_in_all_profiles() -> None:
    def sorted_by(name: str, **args: object) -> KubeSchedulerProfile:
        entry = PluginConfig(name="Sort", args=args)
        plugins = Plugins(queue_sort=enabled("Sort"))
        return KubeSchedulerProfile(scheduler_name=name, plugins=plugins, plugin_config=(entry,))

    assert problems(profiles=(sorted_by("a", x=1), sorted_by("b", x=1))) == []
    assert problems(profiles=(sorted_by("a", x=1), sorted_by("b", x=2))) == [
        'profiles[1].pluginConfig[Sort].args: Invalid value: {"x": 2}: '
        "queueSort must be the same for all profiles"
    ]


def test_wants_a_weight_for_an_extender_that_scores() -> None:
    silent = Extender(url_prefix="http://a")
    scoring = Extender(url_prefix="http://b", prioritize_verb="score")
    assert problems(extenders=(silent, scoring)) == [
        "extenders[1].weight: Invalid value: 0: must have a positive weight applied to it"
    ]


def test_wants_at_most_one_extender_that_binds() -> None:
    binding = Extender(bind_verb="bind")
    assert problems(extenders=(binding,)) == []
    assert problems(extenders=(binding, Extender(), binding)) == [
        'extenders: Invalid value: "found 2 extenders implementing bind": '
        "only one extender can implement bind"
    ]


def test_wants_managed_resources_to_be_extended_and_distinct() -> None:
    def managing(*names: str) -> Extender:
        return Extender(managed_resources=tuple(ManagedResource(name=name) for name in names))

    assert problems(extenders=(managing("acme.com/gpu", "cpu"), managing("acme.com/gpu"))) == [
        "extenders[0].managedResources[1].name: Invalid value: "
        '"cpu": is an invalid extended resource name',
        "extenders[1].managedResources[0].name: Invalid value: "
        '"acme.com/gpu": duplicate extender managed resource name',
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("acme.com/gpu", True),
        ("a/b", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("cpu", False),
        ("", False),
        ("/gpu", False),
        ("acme.com/", False),
        ("acme.com/a/b", False),
        ("Acme.com/gpu", False),
        ("acme..com/gpu", False),
        ("acme.com/-gpu", False),
        ("kubernetes.io/batteries", False),
        ("x.kubernetes.io/batteries", False),
        ("requests.acme.com/gpu", False),
        (f"acme.com/{'g' * 63}", True),
        (f"acme.com/{'g' * 64}", False),
        (f"{'a' * 244}/gpu", True),
        (f"{'a' * 245}/gpu", False),
    ],
)
def test_tells_extended_resources_from_others(name: str, expected: bool) -> None:
    assert is_extended(name) is expected


def test_reports_everything_at_once() -> None:
    found = problems(parallelism=0, pod_initial_backoff_seconds=0, profiles=())
    assert [line.split(":")[0] for line in found] == [
        "parallelism",
        "podInitialBackoffSeconds",
        "profiles",
    ]
