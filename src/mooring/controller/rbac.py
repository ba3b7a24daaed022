"""The permissions that a pod controller needs, for the RBAC objects of its deployment."""

from mooring.client.permissions import binding_permissions as cluster_permissions
from mooring.client.permissions import lease_permissions, rules

__all__ = ["cluster_permissions", "lease_permissions", "rules"]
