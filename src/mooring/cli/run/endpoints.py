"""The HTTPS endpoints of a process: health with reasons, metrics, configuration."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mooring import __version__
from mooring.api.core import ConfigMap
from mooring.cli.run.options import USER_AGENT, ComponentOptions
from mooring.client.client import ApiClient
from mooring.client.component import Component, connector
from mooring.client.incluster import find_endpoint
from mooring.errors import ApiError, ConfigError
from mooring.observe.component import ComponentMetrics
from mooring.ui.access import OPEN_PATHS, Access
from mooring.ui.endpoints import Endpoints
from mooring.ui.health import Health
from mooring.ui.health_stand_in import HealthStandIn
from mooring.ui.lens import Lens, LensPages
from mooring.ui.pages import HttpPage, config_page, metrics_page, version_page
from mooring.ui.reviewer import ApiReviewer
from mooring.ui.serving_tls import ServingTls

log = logging.getLogger(__name__)

_CLIENT_CA: Final = ("kube-system", "extension-apiserver-authentication", "client-ca-file")
_LOOK_AGAIN: Final = 60.0  # seconds; the authority may be replaced


class ComponentEndpoints:
    """The endpoints of one process.

    `document` is the configuration in force, as plain data, for a process that has one; `lens`
    explains its decisions.
    """

    def __init__(
        self,
        options: ComponentOptions,
        component: Component,
        metrics: ComponentMetrics,
        document: Any = None,
        notes: Mapping[str, Callable[[], str]] = MappingProxyType({}),
        lens: Lens | None = None,
    ) -> None:
        self._reader = component.reader
        self._looks_up = not options.authentication_skip_lookup
        self._must_find = not options.authentication_tolerate_lookup_failure
        self._known_ca = b""
        self._tls = ServingTls(
            cert_file=options.tls_cert_file,
            key_file=options.tls_private_key_file,
            cert_dir=options.cert_dir,
            min_version=options.tls_min_version,
            cipher_suites=_listed(options.tls_cipher_suites),
            client_ca_file=options.client_ca_file,
        )
        reviewer = _reviewer(options, component, metrics)
        open_paths = _open_paths(options.authorization_always_allow_paths)
        deadline = component.renew_deadline
        self._stand_in = HealthStandIn(options.bind_address, self._tls, open_paths, deadline)
        self._endpoints = Endpoints(
            address=options.bind_address,
            port=options.secure_port,
            tls=self._tls,
            health=_health(component, notes),
            pages=_pages(metrics, document),
            lens=LensPages(lens) if lens is not None else None,
            access=Access(
                reviewer,
                resources=reviewer,
                open_paths=open_paths,
                token_ttl=options.authentication_token_webhook_cache_ttl.seconds,
                allowed_ttl=options.authorization_webhook_cache_authorized_ttl.seconds,
                denied_ttl=options.authorization_webhook_cache_unauthorized_ttl.seconds,
            ),
        )

    async def start(self) -> int:
        """Start serving; the port."""
        if self._looks_up and self._must_find:
            await self._look_up()
        return await self._endpoints.start()

    @property
    def listening(self) -> socket.socket:
        return self._endpoints.listener.listening

    async def stand_in(self, silence: Callable[[], float]) -> None:
        """Answer health checks in a copy of this process while this one stands still."""
        await self._stand_in.serve(self.listening, silence)

    async def run(self) -> None:
        """Follow the client CA that the cluster publishes."""
        while self._looks_up:
            try:
                await self._look_up()
            except (ApiError, ConfigError) as error:
                log.warning("could not look up the client CA", extra={"error": str(error)})
            await asyncio.sleep(_LOOK_AGAIN)

    async def close(self) -> None:
        await self._endpoints.close()

    async def _look_up(self) -> None:
        namespace, name, key = _CLIENT_CA
        found = await self._reader.get(ConfigMap, name, namespace)
        authority = found.data.get(key, "").encode()
        if authority != self._known_ca:
            self._tls.trust_clients(authority)
            self._known_ca = authority


def _health(component: Component, notes: Mapping[str, Callable[[], str]]) -> Health:
    """Healthy while the lease is renewed; ready while all informers are synced."""
    election, informers = component.election, component.informers

    def say_if_stopping() -> str:
        return "process is shutting down" if component.is_stopping else ""

    def say_if_syncing() -> str:
        unsynced = informers.unsynced()
        found = f"handlers are not fully synchronized: {', '.join(unsynced)}"
        return found if unsynced else ""

    health = Health()
    if election is not None:
        health.add("leaderElection", election.check, on=("healthz", "readyz"))
    health.add("shutdown", say_if_stopping, on=("readyz",))
    health.add("sched-handler-sync", say_if_syncing, on=("readyz",))
    health.add("informers", lambda: "; ".join(informers.problems()), on=("readyz",))
    health.add("permissions", lambda: component.permissions.problem, on=("readyz",))
    for name, note in notes.items():
        health.add_note(name, note, on=("readyz",))
    return health


def _reviewer(
    options: ComponentOptions, component: Component, metrics: ComponentMetrics
) -> ApiReviewer:
    """TokenReview and SubjectAccessReview may go to another server than the component's."""

    def asking(kubeconfig: str) -> ApiClient:
        if not kubeconfig:
            return component.reader
        connect = connector(find_endpoint(kubeconfig), metrics, USER_AGENT)
        return ApiClient(component.close_at_end(connect()))

    return ApiReviewer(
        asking(options.authentication_kubeconfig), asking(options.authorization_kubeconfig)
    )


def _pages(metrics: ComponentMetrics, document: Any) -> dict[str, Callable[[], HttpPage]]:
    pages = {
        "/metrics": metrics_page(metrics, __version__),
        "/version": version_page(__version__),
    }
    if document is not None:
        pages["/configz"] = config_page(lambda: document)
    return pages


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _open_paths(text: str) -> list[str]:
    """An open health path opens the paths below it, too."""
    paths = _listed(text)
    below = [path for path in OPEN_PATHS if path.endswith("/*") and path[:-2] in paths]
    return [*paths, *below]
