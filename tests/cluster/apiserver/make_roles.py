"""Asks a real kube-apiserver for the roles that it creates, and writes down those that people use.

    python -m tests.cluster.apiserver.make_roles

starts one and rewrites `src/mooring/cluster/apiserver/roles.json`; `test_bootstrap.py` checks that
they are what the server has. The roles of kube-controller-manager's controllers are left out.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.controlplane.admin import AdminApi, Object
from tests.controlplane.cluster import ControlPlane

from mooring.cluster.apiserver.bootstrap import ROLES_FILE

_GROUP = "/apis/rbac.authorization.k8s.io/v1"
_KINDS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "namespaces/kube-system/roles",
    "RoleBinding": "namespaces/kube-system/rolebindings",
}
_LEFT_OUT = ("system:controller:", "system:certificates.k8s.io:")
_KEPT = ("name", "namespace", "labels", "annotations")


def describe(api: AdminApi) -> list[Object]:
    """The content of the file."""
    found = []
    for kind, place in _KINDS.items():
        items = [
            _plain(kind, item)
            for item in api.request("GET", f"{_GROUP}/{place}")["items"]
            if not item["metadata"]["name"].startswith(_LEFT_OUT)
        ]
        if kind == "ClusterRole":
            _aggregate(items)
        found += items
    return found


def _plain(kind: str, item: Object) -> Object:
    meta = {key: item["metadata"][key] for key in _KEPT if key in item["metadata"]}
    parts = ("aggregationRule", "rules", "roleRef", "subjects")
    return {"kind": kind, "metadata": meta, **{key: item[key] for key in parts if item.get(key)}}


def _aggregate(roles: list[Object]) -> None:
    """Collect the rules of aggregated roles, as the controller manager does; inner ones first."""
    for name in ("view", "edit", "admin"):
        role = next(one for one in roles if one["metadata"]["name"] == name)
        rules: list[Any] = []
        for selector in role["aggregationRule"]["clusterRoleSelectors"]:
            for one in roles:
                labels = one["metadata"].get("labels", {})
                if selector["matchLabels"].items() <= labels.items():
                    rules += [rule for rule in one.get("rules", ()) if rule not in rules]
        role["rules"] = rules


if __name__ == "__main__":
    with ControlPlane() as control_plane:
        lines = ",\n".join(
            json.dumps(role, sort_keys=True) for role in describe(control_plane.admin)
        )
    ROLES_FILE.write_text(f"[\n{lines}\n]\n")
    print(f"wrote {ROLES_FILE}", file=sys.stderr)
