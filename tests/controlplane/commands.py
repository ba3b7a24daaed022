"""How the programs of the control plane are started: their flags and the files they read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.controlplane.admin import Object

# Without TaintNodesByCondition's absence every node made through the API is tainted as not ready;
# without a controller manager there are no service accounts for pods, and nobody takes the
# finalizers of volumes away again.
_NO_ADMISSION = ("TaintNodesByCondition", "ServiceAccount", "StorageObjectInUseProtection")

# Only what `invariants.py` reads, and the writes of one user that must not write. Binds with their
# body: the uid is in it.
AUDIT_POLICY: Object = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {
            "level": "Metadata",
            "users": ["shadow"],
            "verbs": ["create", "update", "patch", "delete", "deletecollection"],
        },
        {
            "level": "Request",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods/binding"]}],
        },
        {
            "level": "Metadata",
            "verbs": ["delete"],
            "resources": [{"group": "", "resources": ["pods"]}],
        },
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [{"group": "", "resources": ["pods/eviction"]}],
        },
        {"level": "None"},
    ],
}


def etcd(program: Path, data: Path, port: int, *, durable: bool) -> list[str]:
    """One member on loopback; without `durable` it forgets what a crash of the machine would."""
    url = f"http://127.0.0.1:{port}"
    return [
        str(program),
        f"--data-dir={data}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--socket-reuse-port=true",
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
        *([] if durable else ["--unsafe-no-fsync"]),
    ]


def apiserver(
    program: Path, folder: Path, port: int, etcd_port: int, extra: Sequence[str] = ()
) -> list[str]:
    """An API server on loopback that reads its files from `folder` (see `ControlPlane`)."""
    flags = {
        "etcd-servers": f"http://127.0.0.1:{etcd_port}",
        "bind-address": "127.0.0.1",
        "secure-port": port,
        "permit-port-sharing": "true",
        "tls-cert-file": folder / "serving.crt",
        "tls-private-key-file": folder / "serving.key",
        "client-ca-file": folder / "client-ca.crt",
        "requestheader-client-ca-file": folder / "front-proxy-ca.crt",
        "requestheader-allowed-names": "front-proxy",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "token-auth-file": folder / "tokens.csv",
        "service-account-issuer": "https://rig.example",
        "service-account-key-file": folder / "service-accounts.pub",
        "service-account-signing-key-file": folder / "service-accounts.key",
        "service-cluster-ip-range": "10.96.0.0/16",
        "authorization-mode": "RBAC",
        "disable-admission-plugins": ",".join(_NO_ADMISSION),
        # A loopback address can't be an endpoint of the kubernetes service.
        "endpoint-reconciler-type": "none",
        "default-watch-cache-size": 20000,
        "delete-collection-workers": 16,
        "audit-policy-file": folder / "audit-policy.json",
        "audit-log-path": folder / "audit.log",
        # A line is in the file before the client has its answer.
        "audit-log-mode": "blocking",
        "audit-log-maxsize": 100_000,
    }
    return [str(program), *(f"--{key}={value}" for key, value in flags.items()), *extra]


def scheduler_configuration(kubeconfig: Path, own: Mapping[str, Any] | None = None) -> Object:
    """A configuration for kube-scheduler whose client is not the bottleneck; `own` comes on top."""
    own = dict(own or {})
    connection = {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **own,
        "clientConnection": {**connection, **own.get("clientConnection", {})},
        "leaderElection": {"leaderElect": False, **own.get("leaderElection", {})},
    }
