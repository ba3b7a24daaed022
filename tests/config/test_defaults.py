import pytest
from tests.config.plugin_refs import chosen, refs

from mooring.config.defaults import (
    DEFAULT_MULTIPOINT,
    apply_defaults,
    default_plugins,
    effective_plugins,
    merge_plugins,
    resolve_names,
)
from mooring.config.duration import Duration
from mooring.config.load import default_configuration
from mooring.config.types import (
    ClientConnection,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginRef,
    Plugins,
    PluginSet,
)


def test_gives_every_field_its_default() -> None:
    config = default_configuration()
    assert config.parallelism == 16
    assert config.enable_profiling is True
    assert config.enable_contention_profiling is True
    assert config.percentage_of_nodes_to_score is None
    assert config.pod_initial_backoff_seconds == 1
    assert config.pod_max_backoff_seconds == 10
    assert config.extenders == ()
    assert config.delay_cache_until_active is False
    assert config.profiles == (KubeSchedulerProfile(scheduler_name="default-scheduler"),)
    assert config.profiles[0].percentage_of_nodes_to_score is None
    assert config.profiles[0].plugins == Plugins()
    assert config.profiles[0].plugin_config == ()


def test_gives_leader_election_and_client_their_defaults() -> None:
    election = default_configuration().leader_election
    assert election.leader_elect is True
    assert [str(election.lease_duration), str(election.renew_deadline)] == ["15s", "10s"]
    assert str(election.retry_period) == "2s"
    assert election.resource_lock == "leases"
    assert (election.resource_namespace, election.resource_name) == (
        "kube-system",
        "default-scheduler",
    )
    client = default_configuration().client_connection
    assert (client.kubeconfig, client.accept_content_types) == ("", "")
    assert client.content_type == "application/vnd.kubernetes.protobuf"
    assert (client.qps, client.burst) == (50.0, 100)


def test_names_the_lease_after_the_first_profile() -> None:
    profiles = (
        KubeSchedulerProfile(scheduler_name="gpu"),
        KubeSchedulerProfile(scheduler_name="batch"),
    )
    config = apply_defaults(KubeSchedulerConfiguration(profiles=profiles))
    assert config.leader_election.resource_name == "gpu"


def test_gives_extenders_five_seconds() -> None:
    config = KubeSchedulerConfiguration(
        extenders=(Extender(), Extender(http_timeout=Duration()), Extender(http_timeout=SHORT))
    )
    timeouts = [str(extender.http_timeout) for extender in apply_defaults(config).extenders]
    assert timeouts == ["5s", "5s", "100ms"]


SHORT = Duration.parse("100ms")


def test_takes_explicit_zeros_for_unset() -> None:
    zeros = KubeSchedulerConfiguration(
        leader_election=LeaderElectionConfiguration(
            leader_elect=False,
            lease_duration=Duration(),
            renew_deadline=Duration(),
            retry_period=SHORT,
            resource_lock="",
            resource_name="",
            resource_namespace="",
        ),
        client_connection=ClientConnection(content_type="", qps=0.0, burst=0),
    )
    config = apply_defaults(zeros)
    assert config.leader_election == LeaderElectionConfiguration(
        leader_elect=False, retry_period=SHORT, resource_name="default-scheduler"
    )
    assert config.client_connection == ClientConnection()


@pytest.mark.parametrize(
    ("profiling", "contention", "expected"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
def test_profiles_contention_when_it_profiles_at_all(
    profiling: bool, contention: bool | None, expected: bool
) -> None:
    config = KubeSchedulerConfiguration(
        enable_profiling=profiling, enable_contention_profiling=contention
    )
    assert apply_defaults(config).enable_contention_profiling is expected


def test_names_a_profile_only_when_it_is_the_only_one() -> None:
    one = apply_defaults(KubeSchedulerConfiguration(profiles=(KubeSchedulerProfile(),)))
    assert [profile.scheduler_name for profile in one.profiles] == ["default-scheduler"]
    two = apply_defaults(
        KubeSchedulerConfiguration(
            profiles=(KubeSchedulerProfile(), KubeSchedulerProfile(scheduler_name="x"))
        )
    )
    assert [profile.scheduler_name for profile in two.profiles] == ["", "x"]


def test_changes_nothing_the_second_time() -> None:
    once = default_configuration()
    assert apply_defaults(once) == once


def test_lists_the_default_plugins_of_kubernetes_in_order() -> None:
    expected = refs(
        "SchedulingGates PrioritySort NodeUnschedulable NodeName TaintToleration:3 NodeAffinity:2 "
        "NodePorts NodeResourcesFit:1 VolumeRestrictions NodeVolumeLimits VolumeBinding "
        "VolumeZone PodTopologySpread:2 InterPodAffinity:2 DynamicResources:2 DefaultPreemption "
        "NodeResourcesBalancedAllocation:1 ImageLocality:1 DefaultBinder NodeDeclaredFeatures"
    )
    assert expected == DEFAULT_MULTIPOINT


def test_leaves_out_default_plugins_the_build_does_not_carry() -> None:
    available = {"DefaultBinder", "TaintToleration", "NodeName", "Headroom"}
    assert default_plugins(available) == refs("NodeName TaintToleration:3 DefaultBinder")
    assert default_plugins([]) == ()


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (chosen(), "A B:2 C"),
        (chosen("X"), "A B:2 C X"),
        (chosen("X Y:4"), "A B:2 C X Y:4"),
        (chosen("B:5"), "A B:5 C"),
        (chosen("X B:5 Y"), "A B:5 C X Y"),
        (chosen("B"), "A B C"),
        (chosen(disabled="B"), "A C"),
        (chosen("B:7", disabled="B"), "A C B:7"),
        (chosen(disabled="*"), ""),
        (chosen("C X A", disabled="*"), "C X A"),
        (chosen("C B A", disabled="A B C"), "C B A"),
        (chosen(disabled="Unknown"), "A B:2 C"),
        (chosen("B:5 B:6"), "A B:6 C B:5"),
    ],
)
def test_lays_the_users_set_over_the_defaults(user: PluginSet, expected: str) -> None:
    defaults = Plugins(multi_point=chosen("A B:2 C"))
    merged = merge_plugins(defaults, Plugins(multi_point=user))
    assert merged.multi_point.enabled == refs(expected)
    assert merged.multi_point.disabled == user.disabled
    if expected.count("B:") < 2:
        assert merge_plugins(defaults, merged) == merged


def test_merges_each_point_on_its_own() -> None:
    defaults = Plugins(multi_point=chosen("A B"), filter=chosen("F", disabled="D"))
    user = Plugins(
        filter=chosen("G", disabled="F"), score=chosen("S", disabled="A"), pre_bind=chosen("P")
    )
    merged = merge_plugins(defaults, user)
    assert merged == Plugins(
        multi_point=chosen("A B"),
        filter=chosen("G", disabled="F D"),
        score=chosen("S", disabled="A"),
        pre_bind=chosen("P"),
    )


def test_drops_weights_of_disabled_names() -> None:
    merged = merge_plugins(Plugins(), Plugins(score=chosen(disabled="A:3")))
    assert merged.score.disabled == refs("A")


def test_merges_a_profile_with_the_defaults_of_the_build() -> None:
    profile = KubeSchedulerProfile(plugins=Plugins(multi_point=chosen("Headroom NodeName:4")))
    plugins = effective_plugins(profile, {"NodeName", "DefaultBinder"})
    assert plugins.multi_point.enabled == refs("NodeName:4 DefaultBinder Headroom")


def test_rewrites_names_but_not_the_star() -> None:
    plugins = Plugins(
        score=PluginSet(
            enabled=(PluginRef("acme.h:H", 2),), disabled=(PluginRef("*"), PluginRef("acme.h:H"))
        )
    )
    resolved = resolve_names(plugins, lambda name: name.rpartition(":")[2])
    assert resolved == Plugins(score=chosen("H:2", disabled="* H"))
