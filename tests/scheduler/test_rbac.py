"""The rights that are asked for follow from the plugins, and are those that we ship."""

from pathlib import Path
from typing import Any

import yaml

import mooring.framework as fw
from mooring import config as cfg
from mooring.api.core import ConfigMap
from mooring.api.storage import StorageClass
from mooring.client.permissions import Permission, lease_permissions, rules
from mooring.framework.plugin import Base
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry
from mooring.scheduler.rbac import cluster_permissions

ROOT = Path(__file__).resolve().parents[2]
HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Gardener(fw.Reserve, fw.PreBind):
    """Looks up one kind and changes another."""

    name = "Gardener"
    reads = (ConfigMap,)
    writes = (StorageClass,)

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        return None

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        return fw.OK


class Bailiff(fw.PostFilter):
    """May name victims."""

    name = "Bailiff"

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, verdicts: fw.Verdicts
    ) -> fw.Status:
        return fw.Status.unschedulable("nobody to evict")


def plans(plugins: str = "{}", *known: type[Base]) -> list[ProfilePlan]:
    config = cfg.load_text(f"{HEADER}profiles:\n- plugins: {plugins}\n")
    return plan_profiles(config, Registry.discover(known))


def needed(plugins: str = "{}", *known: type[Base]) -> set[str]:
    found = cluster_permissions(plans(plugins, *known), reviews=False)
    return {str(permission) for permission in found}


def without(*names: str) -> str:
    """The default plugins but these."""
    return f"{{multiPoint: {{disabled: [{', '.join(f'{{name: {name}}}' for name in names)}]}}}}"


def shipped(kind: str) -> list[dict[str, Any]]:
    documents = yaml.safe_load_all((ROOT / "deploy" / "rbac.yaml").read_text())
    return [document for document in documents if document["kind"] == kind]


# --- what we ship -------------------------------------------------------------------------------


def test_shipped_cluster_role_is_what_the_default_plugins_need() -> None:
    (role,) = shipped("ClusterRole")
    assert role["rules"] == rules(cluster_permissions(plans(), reviews=True))


def test_shipped_role_is_what_the_lease_needs() -> None:
    (role,) = shipped("Role")
    namespace = role["metadata"]["namespace"]
    assert role["rules"] == rules(lease_permissions(namespace, "mooring"))
    assert namespace == cfg.default_configuration().leader_election.resource_namespace


def test_shipped_bindings_give_all_of_it_to_the_service_account() -> None:
    (account,) = shipped("ServiceAccount")
    bindings = [*shipped("ClusterRoleBinding"), *shipped("RoleBinding")]
    given = {(binding["roleRef"]["kind"], binding["roleRef"]["name"]) for binding in bindings}
    assert given == {
        ("ClusterRole", "mooring"),
        ("Role", "mooring"),
        ("Role", "extension-apiserver-authentication-reader"),
    }
    for binding in bindings:
        (subject,) = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == (
            account["metadata"]["name"],
            account["metadata"]["namespace"],
        )


# --- what follows from plugins ------------------------------------------------------------------


def test_pods_may_be_deleted_only_if_a_plugin_evicts() -> None:
    assert "delete pods" in needed()
    assert needed() - needed(without("DefaultPreemption")) == {
        "delete pods",
        "list poddisruptionbudgets.policy",
        "watch poddisruptionbudgets.policy",
    }
    bailiff = "{postFilter: {enabled: [{name: Bailiff}], disabled: [{name: DefaultPreemption}]}}"
    assert "delete pods" in needed(bailiff, Bailiff)


def test_volumes_may_be_patched_only_if_a_plugin_binds_them() -> None:
    assert needed() - needed(without("VolumeBinding")) >= {
        "get persistentvolumeclaims",
        "get persistentvolumes",
        "patch persistentvolumeclaims",
        "patch persistentvolumes",
    }
    volume_plugins = ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")
    left = needed(without(*volume_plugins))
    assert not [right for right in left if "volume" in right or "storage.k8s.io" in right]


def test_kinds_of_a_plugin_of_yours_are_asked_for() -> None:
    enabled = "{multiPoint: {enabled: [{name: Gardener}]}}"
    assert needed(enabled, Gardener) - needed() == {
        "list configmaps",
        "watch configmaps",
        "get storageclasses.storage.k8s.io",
        "patch storageclasses.storage.k8s.io",
    }


def test_rights_of_several_profiles_are_added_up() -> None:
    gentle = f"{{schedulerName: gentle, plugins: {without('DefaultPreemption')}}}"
    text = f"{HEADER}profiles: [{gentle}, {{schedulerName: other}}]"
    both = plan_profiles(cfg.load_text(text), Registry.discover())
    found = {str(right) for right in cluster_permissions(both, reviews=False)}
    assert found == needed()


def test_reviews_are_for_processes_that_serve() -> None:
    serving = cluster_permissions(plans(), reviews=True)
    assert {str(right) for right in serving} - needed() == {
        "create tokenreviews.authentication.k8s.io",
        "create subjectaccessreviews.authorization.k8s.io",
    }


# --- rules --------------------------------------------------------------------------------------


def test_verbs_on_one_resource_share_a_rule() -> None:
    asked = [
        Permission("watch", "pods"),
        Permission("create", "pods", subresource="binding"),
        Permission("list", "pods"),
        Permission("watch", "pods"),
        Permission("get", "leases", "coordination.k8s.io", namespace="here", name="mine"),
    ]
    assert rules(asked) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["mine"],
            "verbs": ["get"],
        },
    ]
