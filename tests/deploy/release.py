"""A scheduler from our manifests on a real API server: its objects applied, its process beside it.

The process has the token of the ServiceAccount, the text of the ConfigMap and the flags of the
Deployment, so what it may do is what the manifests say.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.processes import listens
from tests.controlplane.users import User
from tests.deploy.rendering import Object, one
from tests.integration.mooring_process import Answer, Mooring

from mooring.cli.manifests.command import objects
from mooring.cli.manifests.options import ManifestOptions, plan_release

# Processes of a rig are told where they are and how to get in; a pod knows.
_OF_THE_DEPLOYMENT = ("run", "--config=/etc/mooring/config.yaml")

# Below those that the kernel gives to whoever connects to something: many do, before all serve.
_PORTS = (port for port in itertools.cycle(range(21_000, 31_000)) if not listens(port))


class Release:
    """One scheduler, with a namespace for itself and its pods.

    `made` are its objects, by default those of a scheduler with the default plugins.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        name: str,
        namespace: str,
        made: list[Object] | None = None,
    ) -> None:
        self.control_plane: ControlPlane = control_plane
        self.name: str = name
        self.namespace: str = namespace
        self.objects: list[Object] = made or objects(
            plan_release(ManifestOptions(name=name, namespace=namespace))
        )
        self.port: int = next(_PORTS)
        self.mooring: Mooring | None = None
        # Somebody who may read metrics by a right; administrators may without being asked for any.
        self.reader: User = control_plane.add_service_account("reader", namespace)
        control_plane.grant(self.reader, [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])

    @property
    def rights(self) -> list[Object]:
        """The account, and the objects that say what it may do."""
        return [
            value
            for value in self.objects
            if value["kind"] == "ServiceAccount" or value["apiVersion"].startswith("rbac.")
        ]

    @property
    def log(self) -> Path:
        return self.control_plane.folder / f"{self.name}.log"

    @property
    def user(self) -> User:
        token = self.control_plane.folder / f"token-{self.namespace}-{self.name}"
        return User(f"system:serviceaccount:{self.namespace}:{self.name}", token_file=token)

    def arguments(self) -> list[str]:
        """The command line of a replica."""
        control_plane = self.control_plane
        control_plane.renew_token(self.user)
        config = control_plane.folder / f"{self.name}.yaml"
        config.write_text(one(self.objects, "ConfigMap")["data"]["config.yaml"])
        (container,) = one(self.objects, "Deployment")["spec"]["template"]["spec"]["containers"]
        given = tuple(container["args"])
        assert given[:2] == _OF_THE_DEPLOYMENT
        return [
            *("run", f"--config={config}", *given[2:]),
            f"--kubeconfig={control_plane.kubeconfig_for(self.user)}",
            *("--bind-address=127.0.0.1", f"--secure-port={self.port}"),
        ]

    def scrape(self) -> Answer:
        """What somebody gets who may read metrics."""
        assert self.mooring is not None
        assert self.reader.token_file is not None
        return self.mooring.get("/metrics", self.reader.token_file.read_text())

    def rule_of(self, resource: str, verb: str) -> tuple[Object, dict[str, Any]]:
        """The role that grants a verb on a resource, and its rule."""
        for value in self.objects:
            for rule in value.get("rules", ()):
                if resource in rule["resources"] and verb in rule["verbs"]:
                    return value, rule
        raise LookupError(f"no rule lets {self.name} {verb} {resource}")


def start(
    control_plane: ControlPlane, releases: Sequence[Release], env: Mapping[str, str] | None = None
) -> None:
    """Run all of them; the rig kills them, as some wait for volumes that are never made."""
    for release in releases:
        command = [sys.executable, "-m", "mooring", *release.arguments()]
        process = control_plane.run(release.name, command, env=env, forked=True, killed=True)
        release.mooring = Mooring(process, release.port)
