"""Who the scheduler is, and exactly what it may do: RBAC objects derived from its plugins."""

from __future__ import annotations

from typing import Any, Final

from mooring.cli.manifests.labels import labels
from mooring.cli.manifests.wanted import SYSTEM_NAMESPACE, Wanted
from mooring.scheduler import rbac

Object = dict[str, Any]

_GROUP: Final = "rbac.authorization.k8s.io"
# The API server's own role for those who have to know client certificates.
_CLIENT_CA_READER: Final = "extension-apiserver-authentication-reader"


def rights(wanted: Wanted) -> list[Object]:
    """The account, what it may do everywhere, and what with its lease."""
    granted = rbac.rules(rbac.cluster_permissions(wanted.plans, reviews=True))
    objects = [
        _account(wanted),
        _role(wanted, "ClusterRole", granted),
        _binding(wanted, "ClusterRole", wanted.name),
    ]
    if wanted.elects:
        election = wanted.config.leader_election
        where = election.resource_namespace
        lease = rbac.rules(rbac.lease_permissions(where, election.resource_name))
        objects.append(_role(wanted, "Role", lease, where))
        objects.append(_binding(wanted, "Role", wanted.name, where))
    objects.append(
        _binding(wanted, "Role", _CLIENT_CA_READER, SYSTEM_NAMESPACE, f"{wanted.name}-client-ca")
    )
    return objects


def _account(wanted: Wanted) -> Object:
    metadata = {"name": wanted.name, "namespace": wanted.namespace, "labels": labels(wanted.name)}
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        # Pods that need its token say so.
        "automountServiceAccountToken": False,
    }


def _role(wanted: Wanted, kind: str, rules: list[Object], namespace: str = "") -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": _metadata(wanted, wanted.name, namespace),
        "rules": rules,
    }


def _binding(wanted: Wanted, kind: str, role: str, namespace: str = "", name: str = "") -> Object:
    account = {"kind": "ServiceAccount", "name": wanted.name, "namespace": wanted.namespace}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": _metadata(wanted, name or wanted.name, namespace),
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": role},
        "subjects": [account],
    }


def _metadata(wanted: Wanted, name: str, namespace: str) -> Object:
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "labels": labels(wanted.name)}
