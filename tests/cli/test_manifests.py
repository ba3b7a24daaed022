"""`mooring manifests`: what it completes, derives, refuses and prints."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring import config as cfg
from mooring.cli import main
from mooring.cli.manifests.workload import config_text
from mooring.cli.manifests.writing import to_yaml

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GENTLE = "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]\n"
PLUGIN = """
import mooring.framework as fw
from mooring.api.core import ConfigMap
from mooring.api.storage import StorageClass

class Mine(fw.Score):
    name = "Mine"
    reads = (ConfigMap,)
    writes = (StorageClass,)
    def score(self, state, pod, node):
        return 1
"""
ORDER = [
    "ServiceAccount/s",
    "ClusterRole/s",
    "ClusterRoleBinding/s",
    "Role/s",
    "RoleBinding/s",
    "RoleBinding/s-client-ca",
    "ConfigMap/s",
    "Deployment/s",
    "PodDisruptionBudget/s",
    "Service/s",
]


class Printed:
    """What the command said about a configuration."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> None:
        assert main(["manifests", *words]) == code
        self.out, self.err = capsys.readouterr()
        self.objects: dict[str, Any] = {
            f"{value['kind']}/{value['metadata']['name']}": value
            for value in yaml.safe_load_all(self.out)
        }

    def __getitem__(self, name: str) -> Any:
        return self.objects[name]

    @property
    def config(self) -> cfg.KubeSchedulerConfiguration:
        return cfg.load_text(self["ConfigMap/s"]["data"]["config.yaml"])

    @property
    def rights(self) -> set[str]:
        return {
            f"{verb} {resource}"
            for rule in self["ClusterRole/s"]["rules"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }


def file_with(folder: Path, text: str) -> str:
    file = folder / "config.yaml"
    file.write_text(HEAD + text)
    return str(file)


# --- what is printed ----------------------------------------------------------------------------


def test_prints_every_object_in_a_fixed_order(capsys: pytest.CaptureFixture[str]) -> None:
    printed = Printed(capsys, "--name", "s")
    assert list(printed.objects) == ORDER
    assert printed.err == ""
    selector = printed["Deployment/s"]["spec"]["selector"]["matchLabels"]
    assert printed["Service/s"]["spec"]["selector"] == selector
    assert printed["PodDisruptionBudget/s"]["spec"]["selector"]["matchLabels"] == selector
    template = printed["Deployment/s"]["spec"]["template"]
    assert selector.items() <= template["metadata"]["labels"].items()
    assert template["spec"]["serviceAccountName"] == printed["ServiceAccount/s"]["metadata"]["name"]
    assert template["spec"]["schedulerName"] == "default-scheduler"


def test_prints_the_same_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert Printed(capsys, "--name", "s").out == Printed(capsys, "--name", "s").out


def test_json_is_a_list_of_the_same_objects(capsys: pytest.CaptureFixture[str]) -> None:
    objects = Printed(capsys, "--name", "s").objects
    assert main(["manifests", "--name", "s", "--output", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["kind"] == "List"
    assert printed["items"] == list(objects.values())


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_folder_gets_a_file_for_each_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    objects = Printed(capsys, "--name", "s").objects
    target = f"{tmp_path}/new/"
    assert main(["manifests", "--name", "s", "-o", output, "--write-to", target]) == 0
    assert capsys.readouterr().out == f"wrote 10 objects to {target}\n"
    files = {path.name: path.read_text() for path in Path(target).iterdir()}
    assert f"rolebinding-client-ca.{output}" in files
    assert f"deployment.{output}" in files
    found = [yaml.safe_load(text) for text in files.values()]
    if output == "json":
        found = [item for each in found for item in each["items"]]
    assert sorted(map(str, found)) == sorted(map(str, objects.values()))


def test_file_gets_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = Printed(capsys, "--name", "s")
    target = tmp_path / "all.yaml"
    assert main(["manifests", "--name", "s", "--write-to", str(target)]) == 0
    assert target.read_text() == printed.out


def test_says_where_it_can_not_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "no" / "such.yaml")
    assert main(["manifests", "--name", "s", "--write-to", target]) == 1
    assert capsys.readouterr().err == f"{target}: No such file or directory\n"


# --- the configuration --------------------------------------------------------------------------


def test_names_that_are_open_become_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_with(tmp_path, "parallelism: 4\n")
    printed = Printed(capsys, "--name", "s", "--namespace", "here", "--config", file)
    assert yaml.safe_load(printed["ConfigMap/s"]["data"]["config.yaml"]) == {
        "apiVersion": cfg.API_VERSION,
        "kind": cfg.KIND,
        "parallelism": 4,
        "leaderElection": {
            "leaderElect": True,
            "resourceName": "s",
            "resourceNamespace": "here",
        },
        "profiles": [{"schedulerName": "s"}],
    }
    assert printed["Role/s"]["metadata"]["namespace"] == "here"
    assert printed["Role/s"]["rules"][-1]["resourceNames"] == ["s"]
    assert printed["RoleBinding/s-client-ca"]["metadata"]["namespace"] == "kube-system"


def test_names_that_are_stated_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "leaderElection: {resourceNamespace: kube-system}\nprofiles: [{schedulerName: gpu}]"
    printed = Printed(
        capsys, "--name", "s", "--namespace", "here", "--config", file_with(tmp_path, text)
    )
    election = printed.config.leader_election
    assert (election.resource_namespace, election.resource_name) == ("kube-system", "gpu")
    assert printed.config.profiles[0].scheduler_name == "gpu"
    assert printed["Role/s"]["metadata"]["namespace"] == "kube-system"
    (subject,) = printed["RoleBinding/s"]["subjects"]
    assert subject["namespace"] == "here"


def test_default_scheduler_is_kept_if_it_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_with(tmp_path, "profiles: [{schedulerName: default-scheduler}]")
    printed = Printed(capsys, "--name", "s", "--config", file)
    assert printed.config.profiles[0].scheduler_name == "default-scheduler"
    assert "note: profiles: default-scheduler is kube-scheduler's" in printed.err


def test_kubeconfig_of_a_laptop_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_with(tmp_path, "clientConnection: {kubeconfig: /home/me/config, qps: 7}")
    printed = Printed(capsys, "--name", "s", "--config", file)
    assert printed.config.client_connection.kubeconfig == ""
    assert printed.config.client_connection.qps == 7
    assert "note: clientConnection.kubeconfig: /home/me/config is left out" in printed.err


def test_configuration_comes_from_standard_input_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{HEAD}profiles: [{{schedulerName: piped}}]"))
    printed = Printed(capsys, "--name", "s", "--config", "-")
    assert printed.config.profiles[0].scheduler_name == "piped"


def test_changed_configuration_changes_the_pods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sums = set()
    for number in (4, 5):
        file = file_with(tmp_path, f"parallelism: {number}")
        template = Printed(capsys, "--name", "s", "--config", file)["Deployment/s"]["spec"][
            "template"
        ]
        sums.add(template["metadata"]["annotations"]["checksum/config"])
    assert len(sums) == 2


SECTIONS: dict[str, list[Any]] = {
    "parallelism": [1, 16],
    "percentageOfNodesToScore": [0, 50],
    "podInitialBackoffSeconds": [1, 2],
    "podMaxBackoffSeconds": [10, 30],
    "delayCacheUntilActive": [True],
    "enableProfiling": [True, False],
    "enableContentionProfiling": [True, False],
    "clientConnection": [{}, {"qps": 1e6, "burst": 3}, {"contentType": "application/json"}],
    "leaderElection": [
        {"leaderElect": False},
        {"leaderElect": False, "resourceName": "other"},
        {"resourceName": "1e3"},
        {"leaseDuration": "30s", "renewDeadline": "1.5s", "retryPeriod": "250ms"},
    ],
    "profiles": [
        [{"schedulerName": "only"}],
        [{"schedulerName": "a"}, {"schedulerName": "b", "percentageOfNodesToScore": 5}],
        [
            {
                "schedulerName": "c",
                "plugins": {
                    "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "x"}]},
                    "score": {"enabled": [{"name": "y", "weight": 3}]},
                },
                "pluginConfig": [{"name": "x", "args": {"size": "1e3", "on": "yes", "n": [1.5]}}],
            }
        ],
    ],
    "extenders": [
        [{"urlPrefix": "http://127.0.0.1:1/", "filterVerb": "filter", "weight": 1}],
        [
            {
                "urlPrefix": "https://extender:443",
                "prioritizeVerb": "p",
                "weight": 2,
                "enableHTTPS": True,
                "tlsConfig": {"caData": "YWJj"},
                "httpTimeout": "2s",
                "managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}],
            }
        ],
    ],
}
CONFIGURATIONS = st.fixed_dictionaries(
    {}, optional={key: st.sampled_from(values) for key, values in SECTIONS.items()}
)


@settings(max_examples=40)
@given(CONFIGURATIONS)
def test_text_of_the_config_map_means_the_same_configuration(given: dict[str, Any]) -> None:
    header = {"apiVersion": cfg.API_VERSION, "kind": cfg.KIND}
    config = cfg.load_text(json.dumps({**header, **given}))
    assert cfg.load_text(config_text(config)) == config
    inside = to_yaml([{"data": {"config.yaml": config_text(config)}}], "a comment")
    assert yaml.safe_load(inside)["data"]["config.yaml"] == config_text(config)


def test_extenders_are_kept_and_their_files_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extender = {
        "urlPrefix": "https://extender.example:8443",
        "filterVerb": "filter",
        "enableHTTPS": True,
        "tlsConfig": {"caFile": "/etc/extender/ca.crt"},
        "httpTimeout": "5s",
    }
    file = file_with(tmp_path, f"extenders: {json.dumps([extender])}")
    printed = Printed(capsys, "--name", "s", "--config", file)
    said = yaml.safe_load(printed["ConfigMap/s"]["data"]["config.yaml"])
    assert said["extenders"] == [extender]
    wanted = "note: extenders[0].tlsConfig.caFile: /etc/extender/ca.crt has to be mounted"
    assert wanted in printed.err
    assert printed.rights == Printed(capsys, "--name", "s").rights


# --- rights -------------------------------------------------------------------------------------


def test_rights_follow_from_the_plugins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = Printed(capsys, "--name", "s").rights
    gentle = Printed(capsys, "--name", "s", "--config", file_with(tmp_path, GENTLE)).rights
    assert usual - gentle == {
        "delete pods",
        "list poddisruptionbudgets",
        "watch poddisruptionbudgets",
    }
    assert gentle < usual


def test_plugin_of_yours_brings_its_rights_and_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_mine.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(tmp_path))
    usual = Printed(capsys, "--name", "s").rights
    file = file_with(tmp_path, "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]")
    printed = Printed(capsys, "--name", "s", "--config", file, "--plugin", "of_mine:Mine")
    assert printed.rights - usual == {
        "list configmaps",
        "watch configmaps",
        "get storageclasses",
        "patch storageclasses",
    }
    (container,) = printed["Deployment/s"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == "--plugin=of_mine:Mine"


def test_no_right_is_wider_than_it_has_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    printed = Printed(capsys, "--name", "s")
    rules = [*printed["ClusterRole/s"]["rules"], *printed["Role/s"]["rules"]]
    words = {word for rule in rules for values in rule.values() for word in values}
    forbidden = {"*", "secrets", "pods/exec", "pods/eviction", "nodes/status", "deletecollection"}
    assert words.isdisjoint(forbidden)
    assert not {right for right in printed.rights if right.endswith(" nodes")} - {
        "list nodes",
        "watch nodes",
    }


# --- the Deployment -----------------------------------------------------------------------------


def test_without_election_there_is_one_replica_and_no_lease(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_with(tmp_path, "leaderElection: {leaderElect: false}")
    printed = Printed(capsys, "--name", "s", "--config", file)
    assert [name for name in ORDER if name not in printed.objects] == ["Role/s", "RoleBinding/s"]
    spec = printed["Deployment/s"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
    assert "note: leaderElection.leaderElect: false" in printed.err
    refused = Printed(capsys, "--name", "s", "--config", file, "--replicas", "2", code=1)
    assert f"{file}: leaderElection.leaderElect: must be true for 2 replicas" in refused.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "system-cluster-critical"),
        (["--namespace", "mine"], None),
        (["--namespace", "mine", "--priority-class", "high"], "high"),
        (["--priority-class", ""], None),
    ],
)
def test_critical_priority_is_for_kube_system(
    capsys: pytest.CaptureFixture[str], words: list[str], expected: str | None
) -> None:
    printed = Printed(capsys, "--name", "s", *words)
    pod = printed["Deployment/s"]["spec"]["template"]["spec"]
    assert pod.get("priorityClassName") == expected


def test_image_and_replicas_are_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--image", "registry.example/mine:1", "--replicas", "3")
    spec = Printed(capsys, "--name", "s", *words)["Deployment/s"]["spec"]
    assert spec["replicas"] == 3
    assert spec["template"]["spec"]["containers"][0]["image"] == "registry.example/mine:1"


# --- what is refused ----------------------------------------------------------------------------


def test_problems_are_those_of_config_validate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_with(tmp_path, "parallelism: 0\nprofiles: [{plugins: {filter: {enabled: 3}}}]")
    assert main(["config", "validate", file]) == 1
    expected = capsys.readouterr().err
    assert Printed(capsys, "--name", "s", "--config", file, code=1).err == expected
    file = file_with(tmp_path, "profiles: [{plugins: {filter: {enabled: [{name: Nonsense}]}}}]")
    assert main(["config", "validate", file]) == 1
    expected = capsys.readouterr().err
    assert Printed(capsys, "--name", "s", "--config", file, code=1).err == expected


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--name", "My_Scheduler"], "mooring manifests: --name: expected lower-case letters"),
        (["--name", "1st"], "--name: expected lower-case letters, digits and -, a letter first"),
        (["--name", "x" * 64], "--name: "),
        (["--name", "s", "--namespace", "Here"], "--namespace: expected lower-case letters"),
        (["--name", "s", "--image", "two words"], "--image: expected the name of an image"),
        (["--name", "s", "--image", ""], "--image: "),
        (["--name", "s", "--replicas", "0"], "--replicas: expected 1 or more, got 0"),
        (["--name", "s", "--plugin", "no.such:Thing"], "--plugin no.such:Thing: "),
        (["--name", "kube-scheduler"], "belongs to kube-scheduler"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    is_malformed = problem not in ("--plugin no.such:Thing: ", "belongs to kube-scheduler")
    printed = Printed(capsys, *words, code=2 if is_malformed else 1)
    assert problem in printed.err
    assert "1 problem found" in printed.err
    assert printed.out == ""
