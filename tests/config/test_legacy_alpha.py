from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring import config as cfg
from mooring.errors import ConfigError

GROUP = "kubescheduler.config.k8s.io"
POLICY = "kind: Policy\napiVersion: v1\npriorities: []\n"
BY_FILE = "algorithmSource: {policy: {file: {path: /no/such/folder/policy.yaml}}}\n"
BY_MAP = "algorithmSource: {policy: {configMap: {name: scheduler-policy}}}\n"


def text(version: str, body: str) -> str:
    return f"apiVersion: {GROUP}/{version}\nkind: KubeSchedulerConfiguration\n{body}"


def document(version: str, body: str) -> dict[str, Any]:
    return cfg.read_text(text(version, body), "f.yaml").document


def problems(version: str, body: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        cfg.read_text(text(version, body), "f.yaml")
    return str(caught.value).splitlines()


def scores_of(document: dict[str, Any]) -> list[str]:
    enabled = document["profiles"][0]["plugins"].get("score", {}).get("enabled", [])
    return [ref["name"] for ref in enabled]


def test_switches_preemption_off_as_a_plugin() -> None:
    for version in ("v1alpha1", "v1alpha2"):
        plugins = document(version, "disablePreemption: true\n")["profiles"][0]["plugins"]
        assert plugins["multiPoint"] == {"disabled": [{"name": "DefaultPreemption"}]}
        plugins = document(version, "disablePreemption: false\n")["profiles"][0]["plugins"]
        assert "multiPoint" not in plugins


def test_takes_the_time_to_bind_volumes_over() -> None:
    entries = document("v1alpha2", "bindTimeoutSeconds: 0\n")["profiles"][0]["pluginConfig"]
    assert entries == [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 0}}]


def test_reads_post_filter_of_v1alpha1_as_what_runs_before_scores() -> None:
    found = document("v1alpha1", "plugins: {postFilter: {enabled: [{name: Mine}]}}\n")
    plugins = found["profiles"][0]["plugins"]
    assert plugins["preScore"] == {"enabled": [{"name": "Mine"}]}
    assert "postFilter" not in plugins


def test_reads_unreserve_as_the_other_half_of_reserve() -> None:
    body = (
        "plugins: {reserve: {enabled: [{name: A}]}, unreserve: {enabled: [{name: A}, {name: B}]}}"
    )
    plugins = document("v1alpha1", f"{body}\n")["profiles"][0]["plugins"]
    assert plugins["reserve"] == {"enabled": [{"name": "A"}, {"name": "B"}]}


def test_renames_the_lock_object() -> None:
    body = "leaderElection: {lockObjectName: a, lockObjectNamespace: b, resourceName: a}\n"
    assert document("v1alpha1", body)["leaderElection"] == {
        "resourceName": "a",
        "resourceNamespace": "b",
    }
    assert problems("v1alpha1", "leaderElection: {lockObjectName: a, resourceName: b}\n") == [
        "leaderElection.lockObjectName: ResourceName and LockObjectName are both set and do not"
        " match, ResourceName: b, LockObjectName: a"
    ]


def test_spreads_by_constraints_alone_when_spreading_by_selector_is_off() -> None:
    body = "profiles: [{plugins: {score: {disabled: [{name: DefaultPodTopologySpread}]}}}]\n"
    profile = document("v1alpha2", body)["profiles"][0]
    assert profile["pluginConfig"] == [
        {"name": "PodTopologySpread", "args": {"defaultingType": "List"}}
    ]
    assert "pluginConfig" not in document("v1alpha2", "")["profiles"][0]


def test_packs_with_the_provider_for_autoscaling() -> None:
    body = "algorithmSource: {provider: ClusterAutoscalerProvider}\n"
    entries = document("v1alpha1", body)["profiles"][0]["pluginConfig"]
    assert entries[0]["args"] == {"scoringStrategy": {"type": "MostAllocated"}}
    assert document("v1alpha1", "algorithmSource: {provider: DefaultProvider}\n") == document(
        "v1alpha1", ""
    )
    (problem,) = problems("v1alpha1", "algorithmSource: {provider: Mine}\n")
    assert problem.startswith(
        'algorithmSource.provider: algorithm provider "Mine" is not registered'
    )


def test_reads_the_weight_of_hard_affinity_in_either_place() -> None:
    body = "hardPodAffinitySymmetricWeight: 7\n"
    entries = document("v1alpha1", body)["profiles"][0]["pluginConfig"]
    assert entries == [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}]
    other = "pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 8}}]\n"
    (problem,) = problems("v1alpha1", body + other)
    assert problem.startswith("hardPodAffinitySymmetricWeight: differs")


def test_overlooks_unknown_fields_as_was_done_then_and_says_so() -> None:
    loaded = cfg.read_text(text("v1alpha1", "failureDomains: a,b\nplugins: {odd: {}}\n"))
    assert {note.path for note in loaded.notes} >= {"failureDomains", "plugins.odd"}


def test_writes_nanoseconds_as_a_duration() -> None:
    body = "extenders: [{urlPrefix: u, httpTimeout: 1500000000, ENABLEHTTPS: true}]\n"
    assert document("v1alpha2", body)["extenders"] == [
        {"urlPrefix": "u", "httpTimeout": "1.5s", "enableHTTPS": True}
    ]
    (problem,) = problems("v1alpha2", "extenders: [{urlPrefix: u, httpTimeout: 5s}]\n")
    assert problem == (
        "extenders[0].httpTimeout: expected a number of nanoseconds, such as 5000000000, got '5s'"
    )


def test_reads_the_policy_where_the_file_says(tmp_path: Path) -> None:
    policy = tmp_path / "elsewhere" / "policy.yaml"
    policy.parent.mkdir()
    policy.write_text(POLICY)
    loaded = cfg.read_text(text("v1alpha1", BY_FILE.replace("/no/such/folder", str(policy.parent))))
    assert scores_of(loaded.document) == []
    assert all("algorithmSource" not in note.path for note in loaded.notes)


def test_reads_the_policy_beside_the_file_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    config = tmp_path / "config.yaml"
    config.write_text(text("v1alpha1", BY_FILE))
    loaded = cfg.read_file(config)
    assert scores_of(loaded.document) == []
    assert loaded.notes[0].path == "algorithmSource.policy.file.path"
    assert f"read {tmp_path / 'policy.yaml'} beside this file" in loaded.notes[0].text


def test_says_where_it_looked_for_the_policy(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(text("v1alpha1", BY_FILE))
    with pytest.raises(ConfigError) as caught:
        cfg.read_file(config)
    assert str(caught.value) == (
        "algorithmSource.policy.file.path: missing policy config file"
        f" /no/such/folder/policy.yaml, nor is there {tmp_path / 'policy.yaml'}"
    )


def test_names_the_policy_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    body = BY_FILE.replace("/no/such/folder", str(tmp_path))
    for content, expected in (
        ("predicates: [{name: Nonsense}]\n", "predicates[0].name: predicate type not found"),
        ("extenders: [{weight: x}]\n", "extenders[0].weight: expected int"),
        ("kind: Pod\n", 'kind: expected Policy, got "Pod"'),
        ("- a\n", 'expected a Policy, got ["a"]'),
        ("predicates: []\npredicates: []\n", "predicates: duplicate key"),
    ):
        policy.write_text(content)
        assert problems("v1alpha1", body)[0].startswith(f"{policy}: {expected}")
    policy.write_text("{")
    assert problems("v1alpha1", body)[0].startswith(f"{policy}:1:2: ")


def test_asks_the_caller_for_a_policy_in_the_cluster() -> None:
    asked = []

    def read_config_map(namespace: str, name: str, kubeconfig: str) -> dict[str, str] | None:
        asked.append((namespace, name, kubeconfig))
        return {"policy.cfg": POLICY}

    whole = text("v1alpha1", BY_MAP + "clientConnection: {kubeconfig: k}\n")
    assert scores_of(cfg.read_text(whole, read_config_map=read_config_map).document) == []
    assert asked == [("kube-system", "scheduler-policy", "k")]
    answers: list[tuple[dict[str, str] | None, str]] = [
        (None, "couldn't get policy config map kube-system/scheduler-policy: not found"),
        ({"other": ""}, 'missing policy config map value at key "policy.cfg"'),
    ]
    for answer, expected in answers:
        answering = dict.fromkeys(asked, answer)
        with pytest.raises(ConfigError, match=expected):
            cfg.read_text(whole, read_config_map=lambda *key, known=answering: known[key])


def test_says_what_to_do_about_a_policy_in_a_cluster_it_cannot_see() -> None:
    (problem,) = problems("v1alpha1", BY_MAP)
    assert problem.startswith("algorithmSource.policy.configMap: the Policy is in the ConfigMap")
    assert "kubectl -n kube-system get configmap scheduler-policy" in problem


def test_refuses_a_policy_beside_plugins() -> None:
    assert "plugins: using Plugins and Policy simultaneously is not supported" in problems(
        "v1alpha1", BY_MAP + "plugins: {score: {}}\n"
    )


def test_wants_to_know_where_the_policy_is() -> None:
    (problem,) = problems("v1alpha1", "algorithmSource: {policy: {}}\n")
    assert problem.startswith("algorithmSource.policy: Required value")
