import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config.defaults import DEFAULT_MULTIPOINT
from mooring.config.duration import Duration
from mooring.config.load import default_configuration, load_text
from mooring.config.show import to_yaml
from mooring.config.types import (
    POINTS,
    Extender,
    ExtenderTLS,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    ManagedResource,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)

AVAILABLE = {"NodeName", "TaintToleration", "DefaultBinder"}


def test_shows_the_defaults() -> None:
    assert (
        to_yaml(default_configuration(), AVAILABLE)
        == """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 16
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: default-scheduler
  resourceNamespace: kube-system
clientConnection:
  kubeconfig: ''
  acceptContentTypes: ''
  contentType: application/vnd.kubernetes.protobuf
  qps: 50.0
  burst: 100
enableProfiling: true
enableContentionProfiling: true
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: NodeName
      - name: TaintToleration
        weight: 3
      - name: DefaultBinder
delayCacheUntilActive: false
"""
    )


class HeadroomArgs(msgspec.Struct, rename="camel"):
    keep_free: float = 0.1
    grace: Duration = Duration.of(300)


def test_shows_given_args_or_the_effective_ones() -> None:
    given_args = PluginConfig(name="Headroom", args={"keepFree": 0.5})
    profile = KubeSchedulerProfile(
        scheduler_name="a", plugin_config=(given_args, PluginConfig(name="Other"))
    )
    config = KubeSchedulerConfiguration(
        profiles=(profile, KubeSchedulerProfile(scheduler_name="b"))
    )
    assert shown_args(to_yaml(config, [])) == [{"Headroom": {"keepFree": 0.5}, "Other": {}}, {}]
    effective = {"a": {"Headroom": HeadroomArgs(0.5), "Third": {"x": 1}}}
    assert shown_args(to_yaml(config, [], effective)) == [
        {"Headroom": {"keepFree": 0.5, "grace": "5m0s"}, "Other": {}, "Third": {"x": 1}},
        {},
    ]


def shown_args(text: str) -> list[dict[str, object]]:
    profiles = load_text(text).profiles
    return [{entry.name: entry.args for entry in profile.plugin_config} for profile in profiles]


def test_refuses_to_show_args_that_no_file_could_hold() -> None:
    with pytest.raises(TypeError, match="object cannot be written to a configuration"):
        to_yaml(default_configuration(), [], {"default-scheduler": {"A": {"x": object()}}})


names = st.sampled_from([ref.name for ref in DEFAULT_MULTIPOINT] + ["Headroom", "acme.x:Y", "yes"])
refs = st.builds(PluginRef, names, st.integers(0, 9))
plugin_sets = st.builds(
    PluginSet,
    enabled=st.lists(refs, unique_by=lambda ref: ref.name, max_size=4).map(tuple),
    disabled=st.lists(names | st.just("*"), unique=True, max_size=3).map(
        lambda chosen: tuple(map(PluginRef, chosen))
    ),
)
plugins = st.dictionaries(
    st.sampled_from(["multiPoint", *(point for point in POINTS if point != "queueSort")]),
    plugin_sets,
    max_size=4,
).map(Plugins.of_points)
args = st.dictionaries(
    st.text("abcXYZ", min_size=1),
    st.none() | st.booleans() | st.integers() | st.text("ab 1e:-#'", max_size=6),
    max_size=3,
)
profiles = st.builds(
    KubeSchedulerProfile,
    scheduler_name=st.text("abc-123", min_size=1),
    percentage_of_nodes_to_score=st.none() | st.integers(0, 100),
    plugins=plugins,
    plugin_config=st.lists(
        st.builds(PluginConfig, name=names, args=args), unique_by=lambda entry: entry.name
    ).map(tuple),
)
extenders = st.builds(
    Extender,
    url_prefix=st.just("http://ext/x"),
    prioritize_verb=st.sampled_from(["", "score"]),
    weight=st.integers(1, 9),
    enable_https=st.booleans(),
    tls_config=st.none() | st.builds(ExtenderTLS, ca_data=st.binary(max_size=9)),
    http_timeout=st.builds(Duration, st.integers(0, 10**12)),
    managed_resources=st.just((ManagedResource(name="acme.com/gpu"),)),
)
configurations = st.builds(
    KubeSchedulerConfiguration,
    parallelism=st.integers(1, 64),
    leader_election=st.builds(
        LeaderElectionConfiguration,
        leader_elect=st.booleans(),
        retry_period=st.builds(Duration, st.integers(0, 2**40)),
    ),
    enable_profiling=st.booleans(),
    enable_contention_profiling=st.none() | st.booleans(),
    percentage_of_nodes_to_score=st.none() | st.integers(0, 100),
    profiles=st.lists(profiles, unique_by=lambda p: p.scheduler_name, max_size=2).map(tuple),
    extenders=st.lists(extenders, max_size=1).map(tuple),
)


@given(configurations, st.sets(names))
def test_shows_the_same_after_loading_what_it_showed(
    config: KubeSchedulerConfiguration, available: set[str]
) -> None:
    shown = to_yaml(config, available)
    loaded = load_text(shown)
    assert to_yaml(loaded, available) == shown
    assert load_text(to_yaml(loaded, available)) == loaded
