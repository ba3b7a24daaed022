"""What tests need of a cluster, be it the real one (`cluster.py`) or the embedded one.

An API server with an address and an authority, users who log in to it, and programs that run
beside it and end with it.
"""

from __future__ import annotations

import json
import secrets
import ssl
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.certificates import replace
from tests.controlplane import commands, users
from tests.controlplane.admin import AdminApi
from tests.controlplane.build import ControlPlaneError, binaries
from tests.controlplane.processes import Process
from tests.controlplane.users import Rules, User


class Plane(ABC):
    """One API server; nothing else runs unless a test starts it: no controllers, no kubelets.

    The audit log in `folder` tells who bound and who deleted pods (see `invariants.py`).
    """

    def __init__(self) -> None:
        self.folder: Path = Path(tempfile.mkdtemp(prefix="mooring-rig-"))
        self.trusted: Path = self.folder / "trusted.crt"  # the authorities of serving certificates
        self.token: str = secrets.token_hex(16)  # of an administrator
        self.server: str  # its address
        self.admin: AdminApi
        self.admin_user: User
        self._guests = ExitStack()  # ends what tests started
        self._started: list[Process] = []  # the programs among them
        self._counted = 0

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def close(self) -> None:
        """End everything that was started here and remove the folder."""

    @abstractmethod
    def add_user(self, name: str, groups: Sequence[str] = ()) -> User:
        """Somebody with a client certificate; may do nothing until `grant`, unless by a group."""

    # --- users ---------------------------------------------------------------------------------

    def kubeconfig_for(self, user: User, server: str = "", *, embedded: bool = False) -> Path:
        """A kubeconfig to log in as `user`; `server` is a proxy's address, if not ours."""
        path = self.folder / f"kubeconfig-{user.file_name}-{self._count()}.json"
        content = users.kubeconfig(user, server or self.server, self.trusted, embedded=embedded)
        replace(path, json.dumps(content).encode())  # JSON is YAML
        return path

    def api_for(self, user: User | None = None, server: str = "") -> AdminApi:
        """A client for tests that logs in as `user` (by default an administrator)."""
        user = user or self.admin_user
        token = user.token_file.read_text() if user.token_file is not None else ""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        api = AdminApi(server or self.server, lambda: self._trust(user), headers)
        self._guests.callback(api.close)
        return api

    def grant(self, user: User, rules: Rules, namespace: str = "") -> str:
        """Let a user do something, everywhere or in one namespace; the name of the role."""
        name = f"rig-{user.file_name}-{self._count()}"
        for value in users.role_and_binding(name, user, rules, namespace):
            self.admin.create(value)
        return name

    def revoke(self, role: str, namespace: str = "") -> None:
        """Take back what `grant` gave."""
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        self.admin.delete(f"rbac.authorization.k8s.io/v1/{kind}", role, namespace)

    # --- programs ------------------------------------------------------------------------------

    def kubectl(self, *arguments: str, user: User | None = None, stdin: str = "") -> str:
        """Run kubectl, by default as an administrator; what it printed."""
        config = self.kubeconfig_for(user or self.admin_user)
        command = [str(binaries() / "kubectl"), f"--kubeconfig={config}"]
        cache = f"--cache-dir={self.folder / 'kubectl-cache'}"
        done = subprocess.run(
            [*command, cache, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode != 0:
            said = done.stderr.strip() or done.stdout.strip()
            raise ControlPlaneError(f"kubectl {' '.join(arguments)}: {said}")
        return done.stdout

    def apply(self, manifests: str | Path) -> str:
        """Apply YAML: a text, or the path of a file or a folder."""
        apply = ("apply", "--server-side", "--force-conflicts", "--filename")
        if isinstance(manifests, Path):
            return self.kubectl(*apply, str(manifests))
        return self.kubectl(*apply, "-", stdin=manifests)

    def kube_scheduler(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        server: str = "",
        user: User | None = None,
        arguments: Sequence[str] = ("--secure-port=0",),
    ) -> Process:
        """Start the real kube-scheduler, by default without a port of its own.

        `config` is a KubeSchedulerConfiguration; without one the defaults, with a client that is
        hardly limited and without leader election.
        """
        scheduler = user or self.add_user("system:kube-scheduler")  # the server has a role for it
        kubeconfig = self.kubeconfig_for(scheduler, server)
        name = f"kube-scheduler-{self._count()}"
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(commands.scheduler_configuration(kubeconfig, config)))
        program = str(binaries() / "kube-scheduler")
        return self.run(name, [program, f"--config={path}", *arguments])

    def run(
        self,
        name: str,
        command: Sequence[str],
        *,
        ready: Callable[[], bool] | None = None,
        env: Mapping[str, str] | None = None,
        forked: bool = False,
        killed: bool = False,
    ) -> Process:
        """Start any program beside the control plane; it ends with it, or with `reset`.

        If it is to be `killed`, it is not asked to go first.
        """
        log = self.folder / f"{name}.log"
        process = Process(name, command, log, ready=ready, env=env, forked=forked)
        self._started.append(process)
        self._guests.callback(process.kill if killed else process.stop)
        return process.start()

    def logs(self, lines: int = 40) -> list[tuple[str, str]]:
        """The ends of the logs of all programs, with their names."""
        return [(program.name, program.tail(lines)) for program in self._started]

    # --- inside --------------------------------------------------------------------------------

    def _trust(self, user: User | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.trusted))
        if user is not None and user.certificate is not None:
            context.load_cert_chain(user.certificate, user.key)
        return context

    def _count(self) -> int:
        self._counted += 1
        return self._counted
