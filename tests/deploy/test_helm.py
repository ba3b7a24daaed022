"""The chart, rendered by Helm: the same objects, and what its values change."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.deploy.rendering import CHART, ChartError, by_name, helm, one

from mooring import config as cfg
from mooring.cli.manifests.command import objects
from mooring.cli.manifests.options import ManifestOptions, plan_release
from mooring.client.permissions import lease_permissions, rules

pytestmark = pytest.mark.usefixtures("helm_program")

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packed
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
- schedulerName: plain
"""


def container_of(rendered: list[dict[str, Any]]) -> dict[str, Any]:
    (found,) = one(rendered, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def configuration_of(rendered: list[dict[str, Any]]) -> cfg.KubeSchedulerConfiguration:
    return cfg.load_text(one(rendered, "ConfigMap")["data"]["config.yaml"])


# --- the same objects ---------------------------------------------------------------------------


def test_default_values_give_what_the_command_prints() -> None:
    assert by_name(helm()) == by_name(objects(plan_release(ManifestOptions(name="mooring"))))


def test_release_of_another_name_and_namespace_gives_what_the_command_prints() -> None:
    rendered = helm(name="my-scheduler", namespace="scheduling")
    assert by_name(rendered) == by_name(
        objects(plan_release(ManifestOptions(name="my-scheduler", namespace="scheduling")))
    )


@pytest.mark.parametrize("as_text", [True, False])
def test_configuration_gives_what_the_command_prints(as_text: bool, tmp_path: Any) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(CONFIG)
    value = CONFIG if as_text else yaml.safe_load(CONFIG)
    ours = by_name(objects(plan_release(ManifestOptions(name="mooring", config=str(file)))))
    theirs = by_name(helm({"config": value}))
    # Helm sorts the keys of profiles: another text, and another checksum, of the same meaning.
    for side in (ours, theirs):
        side["ConfigMap/mooring"]["data"] = cfg.load_text(
            side["ConfigMap/mooring"]["data"]["config.yaml"]
        )
        del side["Deployment/mooring"]["spec"]["template"]["metadata"]["annotations"]
    assert theirs == ours


def test_one_replica_without_election_gives_what_the_command_prints(tmp_path: Any) -> None:
    file = tmp_path / "config.yaml"
    alone = {"leaderElection": {"leaderElect": False}}
    header = {"apiVersion": cfg.API_VERSION, "kind": cfg.KIND}
    file.write_text(json.dumps({**header, **alone}))
    ours = by_name(objects(plan_release(ManifestOptions(name="mooring", config=str(file)))))
    assert by_name(helm({"replicas": 1, "config": alone})) == ours
    assert by_name(helm({"config": alone})) == ours  # the default follows the configuration
    assert one(helm({}), "Deployment")["spec"]["replicas"] == 2
    assert "Role/mooring" not in ours


# --- what values change -------------------------------------------------------------------------


def test_names_that_the_configuration_states_are_kept() -> None:
    election = {"resourceName": "mine", "resourceNamespace": "leases"}
    profile = {"schedulerName": "gpu"}
    rendered = helm({"config": {"leaderElection": election, "profiles": [profile]}})
    config = configuration_of(rendered)
    assert config.profiles[0].scheduler_name == "gpu"
    role = one(rendered, "Role")
    assert role["metadata"]["namespace"] == "leases"
    assert role["rules"] == rules(lease_permissions("leases", "mine"))


def test_rules_can_be_added_and_replaced() -> None:
    usual = one(helm(), "ClusterRole")["rules"]
    own = {"apiGroups": ["example.com"], "resources": ["quotas"], "verbs": ["list", "watch"]}
    assert one(helm({"rbac": {"extraRules": [own]}}), "ClusterRole")["rules"] == [*usual, own]
    assert one(helm({"rbac": {"rules": [own]}}), "ClusterRole")["rules"] == [own]


def test_image_may_be_named_by_tag_or_digest() -> None:
    image = {"repository": "registry.example/team/mooring", "tag": "mine"}
    assert container_of(helm({"image": image}))["image"] == "registry.example/team/mooring:mine"
    image["digest"] = f"sha256:{'0' * 64}"
    assert container_of(helm({"image": image}))["image"].endswith(f"/mooring@{image['digest']}")


def test_plugins_and_flags_reach_the_command_line() -> None:
    rendered = helm({"plugins": ["acme.rules:Mine"], "extraArgs": ["--node-selector=pool=gpu"]})
    assert container_of(rendered)["args"] == [
        "run",
        "--config=/etc/mooring/config.yaml",
        "--v=2",
        "--plugin=acme.rules:Mine",
        "--node-selector=pool=gpu",
    ]


def test_changed_configuration_changes_the_pods() -> None:
    sums = {
        one(helm({"config": {"parallelism": number}}), "Deployment")["spec"]["template"][
            "metadata"
        ]["annotations"]["checksum/config"]
        for number in (8, 16)
    }
    assert len(sums) == 2


def test_everything_about_the_pods_can_be_said() -> None:
    mount = {"name": "plugins", "mountPath": "/plugins"}
    values: dict[str, Any] = {
        "imagePullSecrets": [{"name": "pull"}],
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "priorityClassName": "important",
    }
    inside: dict[str, Any] = {
        "env": [{"name": "PYTHONPATH", "value": "/plugins"}],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
    }
    volume = {"name": "plugins", "configMap": {"name": "plugins"}}
    labels = {"team": "a"}
    extra = {"volumes": [volume], "volumeMounts": [mount], "podLabels": labels}
    rendered = helm({**values, **inside, **extra, "podAnnotations": {"note": "b"}})
    template = one(rendered, "Deployment")["spec"]["template"]
    assert {key: template["spec"][key] for key in values} == values
    assert {key: container_of(rendered)[key] for key in inside} == inside
    assert template["spec"]["volumes"][-1] == volume
    assert container_of(rendered)["volumeMounts"][-1] == mount
    assert template["metadata"]["labels"]["team"] == "a"
    assert template["metadata"]["annotations"]["note"] == "b"


def test_service_monitor_is_made_if_asked_for() -> None:
    monitored = helm({"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}})
    monitor = one(monitored, "ServiceMonitor")
    service = one(monitored, "Service")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    selected = monitor["spec"]["selector"]["matchLabels"]
    assert selected.items() <= service["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] == service["spec"]["ports"][0]["name"]
    unprotected = helm({"podDisruptionBudget": {"enabled": False}})
    kinds = {value["kind"] for value in unprotected}
    assert kinds.isdisjoint({"ServiceMonitor", "PodDisruptionBudget"})


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"replica": 3}, "replica"),
        ({"replicas": 0}, "replicas"),
        ({"name": "Mine"}, "name"),
        ({"plugins": ["acme.rules"]}, "plugins"),
        ({"config": "profiles: ["}, "config: "),
        (
            {"replicas": 2, "config": {"leaderElection": {"leaderElect": False}}},
            "must be true for 2 replicas",
        ),
        (
            {"config": {"leaderElection": {"resourceName": "kube-scheduler"}}},
            "belongs to kube-scheduler",
        ),
    ],
)
def test_values_that_make_no_sense_are_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ChartError, match=reason):
        helm(values)


def test_schema_knows_every_value() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    known = schema["properties"].keys() - {"global"}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == known
    for key, value in values.items():
        inner = schema["properties"][key].get("properties")
        if inner is not None:
            assert set(value) == set(inner)
