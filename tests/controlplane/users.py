"""Who talks to a test cluster: users, how they log in, and what they may do."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.admin import Object

Rules = Sequence[Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class User:
    """Logs in with a client certificate or with the token in a file, whichever is there."""

    name: str
    groups: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    token_file: Path | None = None

    @property
    def file_name(self) -> str:
        return self.name.replace(":", "-").replace("/", "-")


def kubeconfig(user: User, server: str, authority: Path, *, embedded: bool = False) -> Object:
    """What kubectl and schedulers read.

    It names files, which may be replaced while a client runs; `embedded` copies them instead.
    """
    login: Object = {}
    if user.certificate is not None and user.key is not None:
        login |= _file("client-certificate", user.certificate, embedded)
        login |= _file("client-key", user.key, embedded)
    elif user.token_file is not None:
        token = user.token_file
        login |= {"token": token.read_text()} if embedded else {"tokenFile": str(token)}
    cluster: Object = {"server": server, **_file("certificate-authority", authority, embedded)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "rig", "cluster": cluster}],
        "users": [{"name": user.name, "user": login}],
        "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": user.name}}],
        "current-context": "rig",
    }


def role_and_binding(name: str, user: User, rules: Rules, namespace: str = "") -> list[Object]:
    """RBAC objects that let a user do something, in one namespace or everywhere."""
    prefix = "" if namespace else "Cluster"
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    version = "rbac.authorization.k8s.io/v1"
    role = {
        "apiVersion": version,
        "kind": f"{prefix}Role",
        "metadata": metadata,
        "rules": [dict(rule) for rule in rules],
    }
    binding = {
        "apiVersion": version,
        "kind": f"{prefix}RoleBinding",
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": f"{prefix}Role",
            "name": name,
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user.name}],
    }
    return [role, binding]


def _file(key: str, path: Path, embedded: bool) -> Object:
    if embedded:
        return {f"{key}-data": base64.b64encode(path.read_bytes()).decode()}
    return {key: str(path)}
