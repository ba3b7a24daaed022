"""Starts `mooring extender` as a process of its own, and schedulers that ask it."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.certificates import Authority
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.processes import Process, free_port
from tests.integration.mooring_process import ROOT, believing, start_mooring

EXAMPLES = ROOT / "examples"
SCHEDULER = "my-scheduler-with-extender"
USER = "extender"

RULES: list[dict[str, Any]] = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
]
"""All that an extender needs which watches and binds."""


class Extending:
    """A running extender."""

    def __init__(self, process: Process, port: int, is_secure: bool) -> None:
        self.process: Process = process
        self.port: int = port
        self.is_secure: bool = is_secure
        self._context = believing()  # who it is does not matter here

    @property
    def url(self) -> str:
        return f"{'https' if self.is_secure else 'http'}://127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        """Code and text of an answer; 0 if nobody answers."""
        try:
            address = f"{self.url}{path}"
            with urllib.request.urlopen(address, timeout=10, context=self._context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    @property
    def is_ready(self) -> bool:
        return self.get("/readyz")[0] == 200


def start_extender(
    control_plane: ControlPlane,
    *arguments: str,
    folder: Path,
    connected: bool = True,
) -> Extending:
    """Serve what is in a folder, and wait until it is ready."""
    port = free_port()
    where: Sequence[str] = ("--no-cluster",)
    if connected:
        user = control_plane.add_user(USER)
        control_plane.grant(user, RULES)
        where = ("--kubeconfig", str(control_plane.kubeconfig_for(user)))
    command = [
        *(sys.executable, "-m", "mooring", "extender", *arguments),
        *("--port", str(port), "--v", "2", *where),
    ]
    holder: list[Extending] = []
    process = control_plane.run(
        f"extender-{port}",
        command,
        ready=lambda: holder[0].is_ready,
        env={"PYTHONPATH": str(folder)},
        forked=True,
    )
    holder.append(Extending(process, port, "--tls-cert-file" in arguments))
    process.wait_ready()
    return holder[0]


def certified(control_plane: ControlPlane) -> tuple[list[str], dict[str, Any]]:
    """Flags for an extender that knows kube-scheduler by its certificate; its `tlsConfig`."""
    authority = Authority("extenders")
    cert, key = authority.server("127.0.0.1").write(control_plane.folder, "extender")
    ca = control_plane.folder / "extender-ca.crt"
    ca.write_bytes(authority.pem)
    user = control_plane.add_user("system:kube-scheduler")
    flags = [
        *("--tls-cert-file", str(cert), "--tls-private-key-file", str(key)),
        *("--client-ca-file", str(control_plane.folder / "client-ca.crt")),
        *("--client-names", user.name),
    ]
    shown = {"caFile": str(ca), "certFile": str(user.certificate), "keyFile": str(user.key)}
    return flags, {"enableHTTPS": True, "tlsConfig": shown}


def scheduler_with(*extenders: Mapping[str, Any], scores: bool = False) -> dict[str, Any]:
    """A configuration for kube-scheduler; without `scores` only extenders give points."""
    plugins = {} if scores else {"plugins": {"score": {"disabled": [{"name": "*"}]}}}
    return {
        "profiles": [{"schedulerName": SCHEDULER, **plugins}],
        "extenders": [{"enableHTTPS": False, "weight": 1, **one} for one in extenders],
    }


Start = Callable[[ControlPlane, dict[str, Any]], object]
"""Runs a scheduler with a configuration."""


def start_kube_scheduler(control_plane: ControlPlane, config: dict[str, Any]) -> None:
    control_plane.kube_scheduler(config)


def start_ours(control_plane: ControlPlane, config: dict[str, Any]) -> None:
    start_mooring(control_plane, config=config)


SCHEDULERS: dict[str, Start] = {"kube-scheduler": start_kube_scheduler, "ours": start_ours}


def start_from_policy(control_plane: ControlPlane, folder: Path, extender: Extending) -> None:
    """Our scheduler with the v1alpha1 file of an example and the Policy beside it."""
    config, policy = "scheduler-config.yaml", "scheduler-policy.yaml"
    written = (folder / policy).read_text().replace("http://127.0.0.1:8888", extender.url)
    (control_plane.folder / policy).write_text(written)
    own = f"schedulerName: {SCHEDULER}\nleaderElection: {{leaderElect: false}}\n"
    file = control_plane.folder / config
    file.write_text((folder / config).read_text() + own)
    start_mooring(control_plane, config=file)
