from pathlib import Path

import pytest

from mooring import config as cfg
from mooring.config.duration import Duration
from mooring.config.load import default_configuration, load_file, load_text
from mooring.config.types import (
    Extender,
    ExtenderTLS,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    ManagedResource,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from mooring.errors import ConfigError, Problem

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def load(body: str) -> KubeSchedulerConfiguration:
    return load_text(HEADER + body)


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_text(text, "f.yaml")
    assert caught.value.source == "f.yaml"
    return str(caught.value).splitlines()


def test_takes_a_bare_header_for_all_defaults() -> None:
    assert load("") == default_configuration()


def test_takes_empty_sections_for_all_defaults() -> None:
    assert load("profiles:\nleaderElection:\nextenders: []\n") == default_configuration()
    assert load("profiles: [{plugins: , pluginConfig: }]\n") == default_configuration()


def test_loads_json() -> None:
    text = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",'
        ' "parallelism": 4, "clientConnection": {"qps": 1e2}}'
    )
    config = load_text(text)
    assert (config.parallelism, config.client_connection.qps) == (4, 100.0)


def test_loads_every_field() -> None:
    config = load(EVERYTHING)
    assert config.parallelism == 8
    assert config.leader_election.leader_elect is False
    assert config.leader_election.lease_duration == Duration.of(60)
    assert config.leader_election.resource_name == "mooring"
    assert config.client_connection.kubeconfig == "/etc/kubeconfig"
    assert config.enable_contention_profiling is False
    assert config.percentage_of_nodes_to_score == 0
    assert config.delay_cache_until_active is True
    assert config.profiles == (
        KubeSchedulerProfile(
            scheduler_name="packed",
            percentage_of_nodes_to_score=50,
            plugins=Plugins(
                multi_point=PluginSet(enabled=(PluginRef("Headroom"), PluginRef("a.b:C", 2))),
                score=PluginSet(disabled=(PluginRef("*"),)),
                placement_generate=PluginSet(enabled=(PluginRef("Racks"),)),
            ),
            plugin_config=(
                PluginConfig(name="Headroom", args={"resource": "memory", "reserve": 0.2}),
            ),
        ),
    )
    assert config.extenders == (
        Extender(
            url_prefix="https://ext.local/",
            filter_verb="filter",
            preempt_verb="preempt",
            prioritize_verb="prioritize",
            weight=3,
            bind_verb="bind",
            enable_https=True,
            tls_config=ExtenderTLS(insecure=True, server_name="ext", ca_data=b"hello"),
            http_timeout=Duration.parse("100ms"),
            node_cache_capable=True,
            managed_resources=(ManagedResource(name="acme.com/gpu", ignored_by_scheduler=True),),
            ignorable=True,
        ),
    )


EVERYTHING = """
parallelism: 8
leaderElection:
  leaderElect: false
  leaseDuration: 1m
  renewDeadline: 40s
  retryPeriod: 5s
  resourceLock: leases
  resourceName: mooring
  resourceNamespace: infra
clientConnection:
  kubeconfig: /etc/kubeconfig
  acceptContentTypes: application/json
  contentType: application/json
  qps: 12.5
  burst: 25
enableProfiling: true
enableContentionProfiling: false
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
delayCacheUntilActive: true
profiles:
- schedulerName: packed
  percentageOfNodesToScore: 50
  plugins:
    multiPoint:
      enabled:
      - name: Headroom
      - {name: "a.b:C", weight: 2}
    score:
      disabled: [{name: "*"}]
    placementGenerate:
      enabled: [{name: Racks}]
  pluginConfig:
  - name: Headroom
    args: {resource: memory, reserve: 0.2}
extenders:
- urlPrefix: https://ext.local/
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 3
  bindVerb: bind
  enableHTTPS: true
  tlsConfig: {insecure: true, serverName: ext, caData: aGVsbG8=}
  httpTimeout: 100ms
  nodeCacheCapable: true
  managedResources: [{name: acme.com/gpu, ignoredByScheduler: true}]
  ignorable: true
"""


def test_reports_problems_of_every_step_together() -> None:
    body = """
parallelism: 0
percentageOfNodesToScore: 130
leaderElection: {leaseDuration: 15, renewDeadlin: 3s}
profiles:
- schedulerName: a
  plugins: {score: {enabled: [{name: X, weight: -1}, {name: Y, wieght: 2}]}}
- schedulerName: a
  pluginConfig: [{name: Z, name: Z}]
extenders:
- httpTimeout: 5x
"""
    assert problems(HEADER + body) == [
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
        "percentageOfNodesToScore: Invalid value: 130: not in valid range [0-100]",
        "leaderElection.renewDeadlin: unknown field; expected one of: leaderElect, leaseDuration, "
        "renewDeadline, retryPeriod, resourceLock, resourceName, resourceNamespace; "
        'did you mean "renewDeadline"?',
        "leaderElection.leaseDuration: expected a duration such as 15s or 1m30s, got 15",
        "profiles[0].plugins.score.enabled[1].wieght: unknown field; "
        'expected one of: name, weight; did you mean "weight"?',
        "profiles[0].plugins.score.enabled[0].weight: Invalid value: -1: must be non-negative",
        'profiles[1].schedulerName: Duplicate value: "a"',
        "profiles[1].pluginConfig[0].name: duplicate key on line 11, first set on line 11",
        'extenders[0].httpTimeout: time: unknown unit "x" in duration "5x"',
    ]


def test_says_the_line_of_every_problem() -> None:
    body = """percentageOfNodesToScore: 130
profiles:
- plugins:
    score:
      enabled:
      - name: X
        weight: -1
      - weight: 2
extenders:
- urlPrefix: a
  prioritizeVerb: p
"""
    with pytest.raises(ConfigError) as refused:
        cfg.load_text(HEADER + body, "own.yaml")
    assert [line.split(": ")[:2] for line in refused.value.lines] == [
        ["own.yaml:3", "percentageOfNodesToScore"],
        ["own.yaml:10", "profiles[0].plugins.score.enabled[1].name"],  # absent: where it belongs
        ["own.yaml:12", "extenders[0].weight"],
    ]


def test_adds_what_the_caller_finds_unless_it_follows_from_another_problem() -> None:
    def check(config: cfg.KubeSchedulerConfiguration) -> list[Problem]:
        found = [Problem("profiles[0].pluginConfig[Fit].args.ratio", "too large")]
        return [*found, Problem("parallelism", "the default is used here")]

    body = """parallelism: x
profiles:
- pluginConfig:
  - name: Other
  - name: Fit
    args:
      ratio: 3
"""
    with pytest.raises(ConfigError) as refused:
        cfg.read_text(HEADER + body, "own.yaml", check=check)
    assert refused.value.lines == [
        'own.yaml:3: parallelism: expected int, got str "x"',
        "own.yaml:9: profiles[0].pluginConfig[Fit].args.ratio: too large",
    ]


def test_does_not_report_what_only_follows_from_another_problem() -> None:
    body = "leaderElection: {leaseDuration: soon, renewDeadline: 1m}\nprofiles: {}\n"
    assert problems(HEADER + body) == [
        'leaderElection.leaseDuration: time: invalid duration "soon"',
        "profiles: expected array, got object",
    ]


def test_wants_args_to_be_a_mapping() -> None:
    assert problems(HEADER + "profiles: [{pluginConfig: [{name: A, args: [1]}]}]\n") == [
        "profiles[0].pluginConfig[0].args: expected object, got array"
    ]


def test_wants_apiversion_and_kind_and_goes_on_without_them() -> None:
    assert problems("parallelism: 0\n") == [
        'apiVersion: Required value: must be "kubescheduler.config.k8s.io/v1"',
        'kind: Required value: must be "KubeSchedulerConfiguration"',
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ]


def test_names_the_accepted_versions_for_any_other() -> None:
    group = "kubescheduler.config.k8s.io"
    versions = ("v1", "v1beta3", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
    assert problems(HEADER.replace("/v1", "/v2") + "nonsense: 1\n") == [
        f'apiVersion: Unsupported value: "{group}/v2": supported values: '
        + ", ".join(f'"{group}/{version}"' for version in versions)
    ]
    assert problems(HEADER.replace("KubeSchedulerConfiguration", "Pod")) == [
        'kind: Unsupported value: "Pod": supported values: "KubeSchedulerConfiguration", "Policy"'
    ]
    assert problems("kind: Policy\napiVersion: policy/v1\n") == [
        'apiVersion: Unsupported value: "policy/v1": supported values: "v1", '
        '"kubescheduler.config.k8s.io/v1"'
    ]


def test_wants_a_mapping() -> None:
    assert problems("- a\n") == ['f.yaml: expected a KubeSchedulerConfiguration, got ["a"]']


def test_loads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("\ufeff" + HEADER + "parallelism: 3\n", encoding="utf-8")
    assert load_file(path).parallelism == 3
    assert load_file(str(path)).parallelism == 3


def test_says_which_file_cannot_be_read(tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    with pytest.raises(ConfigError) as caught:
        load_file(missing)
    assert str(caught.value) == f"{missing}: No such file or directory"
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError) as caught:
        load_file(binary)
    assert str(caught.value) == f"{binary}: not UTF-8 text: byte 3 is not valid"
