"""Starts `mooring run` as a process of its own, as a user with the rights that we ship."""

from __future__ import annotations

import json
import ssl
import sys
import urllib.error
import urllib.request
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests.controlplane import users
from tests.controlplane.admin import ApiFailure
from tests.controlplane.plane import Plane
from tests.controlplane.processes import Process, free_port
from tests.controlplane.users import User
from tests.observe.parse_exposition import Seen, read

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "deploy" / "rbac.yaml"
NAME = "mooring"  # the schedulerName of tests, and so of the lease


def shipped_rules(kind: str) -> list[dict[str, Any]]:
    """The rules of our ClusterRole, or of the Role for the lease."""
    for document in _shipped():
        if document["kind"] == kind:
            rules: list[dict[str, Any]] = deepcopy(document["rules"])
            return rules
    raise AssertionError(f"{SHIPPED} has no {kind}")


@cache
def _shipped() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(SHIPPED.read_text()))


def scheduler_user(control_plane: Plane, name: str = "scheduler", lease: str = NAME) -> User:
    """Somebody who may do what we ship, and nothing else; `lease` if it has another name."""
    user = control_plane.add_user(name)
    grant_shipped(control_plane, user, lease)
    return user


def grant_shipped(control_plane: Plane, user: User, lease: str = NAME) -> None:
    """Let somebody do what we ship, as our bindings do for the service account."""
    control_plane.grant(user, shipped_rules("ClusterRole"))
    control_plane.grant(user, lease_rules(lease), "kube-system")
    binding = users.role_and_binding(f"{user.file_name}-client-ca", user, [], "kube-system")[1]
    binding["roleRef"]["name"] = "extension-apiserver-authentication-reader"
    with suppress(ApiFailure):  # from an earlier test
        control_plane.admin.create(binding)


def lease_rules(lease: str = NAME) -> list[dict[str, Any]]:
    """The rules of our Role, for a lease of this name."""
    rules = shipped_rules("Role")
    named = {"resourceNames": [lease]}
    return [{**rule, **(named if "resourceNames" in rule else {})} for rule in rules]


class Answer(msgspec.Struct, frozen=True):
    """What an endpoint of the scheduler said."""

    code: int
    text: str


class Mooring:
    """A running scheduler: its process and its endpoints."""

    def __init__(self, process: Process, port: int, log_begins: int = 0) -> None:
        self.process: Process = process
        self.port: int = port
        self._log_begins = log_begins
        self._tls = believing()

    def get(
        self, path: str, token: str = "", user: User | None = None, timeout: float = 10.0
    ) -> Answer:
        """Ask one of its endpoints, as nobody, with a token, or with a user's certificate.

        Code 0 if nobody answers.
        """
        address = f"https://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(address)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        context = self._tls if user is None else self._as(user)
        with warnings.catch_warnings():
            # If the process is killed between connect and handshake, Python's ssl leaves its own
            # socket open.
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                with urllib.request.urlopen(request, context=context, timeout=timeout) as answer:
                    return Answer(answer.status, answer.read().decode())
            except urllib.error.HTTPError as error:
                with error:
                    return Answer(error.code, error.read().decode())
            except OSError as error:
                return Answer(0, str(error))

    @property
    def is_ready(self) -> bool:
        return self.get("/readyz").code == 200

    @property
    def log(self) -> str:
        """All that it has written; the file may begin with what namesakes before it wrote."""
        with self.process.log.open(encoding="utf-8") as file:
            file.seek(self._log_begins)
            return file.read()

    def metrics(self, token: str) -> dict[str, Seen]:
        """A scrape, with the token of somebody who may."""
        answer = self.get("/metrics", token)
        assert answer.code == 200, answer
        return read(answer.text)

    def _as(self, user: User) -> ssl.SSLContext:
        assert user.certificate is not None
        context = believing()
        context.load_cert_chain(user.certificate, user.key)
        return context


def believing() -> ssl.SSLContext:
    """For a server whose certificate is self-signed; reads no authorities, which takes its time."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def configuration(own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A KubeSchedulerConfiguration for tests; `own` replaces whole sections."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"qps": 5000, "burst": 5000},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": NAME}],
        **(own or {}),
    }


def start_mooring(
    control_plane: Plane,
    *,
    user: User | None = None,
    config: Mapping[str, Any] | Path | None = None,
    flags: Sequence[str] = (),
    server: str = "",
    name: str = "mooring",
    wait: bool = True,
    env: Mapping[str, str] | None = None,
    forked: bool = True,
) -> Mooring:
    """Run it and wait until it is ready; `server` is a proxy's address, if not the real one's.

    `config` is a file, or sections as for `configuration`. Without `forked`, Python starts anew.
    """
    user = user or scheduler_user(control_plane)
    port = free_port()
    if isinstance(config, Path):
        file = config
    else:
        file = control_plane.folder / f"{name}-{port}.yaml"
        file.write_text(json.dumps(configuration(config)))
    kubeconfig = control_plane.kubeconfig_for(user, server)
    command = [
        *(sys.executable, "-m", "mooring", "run"),
        *("--config", str(file), "--kubeconfig", str(kubeconfig)),
        *("--bind-address", "127.0.0.1", "--secure-port", str(port)),
        *("--v", "2", "--check-decisions", "0.2", *flags),
    ]
    holder: list[Mooring] = []
    ready = (lambda: holder[0].is_ready) if wait else None
    log = control_plane.folder / f"{name}.log"
    log_begins = log.stat().st_size if log.exists() else 0
    process = control_plane.run(name, command, ready=ready, env=env, forked=forked)
    holder.append(Mooring(process, port, log_begins))
    if wait:
        process.wait_ready()
    return holder[0]
