"""ServiceAccount and RBAC objects, with exactly the permissions that the plugins need."""

from __future__ import annotations

from typing import Any, Final

from mooring.cli.manifests.labels import metadata
from mooring.cli.manifests.options import SYSTEM_NAMESPACE, Release
from mooring.client.permissions import lease_permissions, rules
from mooring.scheduler.rbac import cluster_permissions

Object = dict[str, Any]

_GROUP: Final = "rbac.authorization.k8s.io"
# The API server's own Role to read the client CA.
_CLIENT_CA_READER: Final = "extension-apiserver-authentication-reader"


def rbac_objects(release: Release) -> list[Object]:
    """ServiceAccount, ClusterRole, the Role for the lease, and their bindings."""
    granted = rules(cluster_permissions(release.plans, reviews=True))
    objects = [
        _account(release),
        _role(release, "ClusterRole", granted),
        _binding(release, "ClusterRole", release.name),
    ]
    if release.elects:
        election = release.config.leader_election
        where = election.resource_namespace
        lease = rules(lease_permissions(where, election.resource_name))
        objects.append(_role(release, "Role", lease, where))
        objects.append(_binding(release, "Role", release.name, where))
    objects.append(
        _binding(release, "Role", _CLIENT_CA_READER, SYSTEM_NAMESPACE, f"{release.name}-client-ca")
    )
    return objects


def _account(release: Release) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(release.name, release.namespace),
        # Pods that need its token say so.
        "automountServiceAccountToken": False,
    }


def _role(release: Release, kind: str, rules: list[Object], namespace: str = "") -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": metadata(release.name, namespace),
        "rules": rules,
    }


def _binding(release: Release, kind: str, role: str, namespace: str = "", name: str = "") -> Object:
    account = {"kind": "ServiceAccount", "name": release.name, "namespace": release.namespace}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": metadata(release.name, namespace, name),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": role},
        "subjects": [account],
    }
