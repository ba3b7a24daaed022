"""Health checks and authentication, for all processes with endpoints."""

from __future__ import annotations

from collections.abc import Callable

from mooring.cli.run.options import ComponentOptions
from mooring.client.client import ApiClient
from mooring.client.endpoint import Endpoint
from mooring.client.incluster import find_endpoint
from mooring.client.informer import Informers
from mooring.client.lease import LeaderElection
from mooring.client.permissions import PermissionCheck
from mooring.client.transport import Transport
from mooring.ui.health import Health
from mooring.ui.reviewer import ApiReviewer


def component_health(
    *,
    election: LeaderElection | None,
    informers: Informers,
    permissions: PermissionCheck,
    is_stopping: Callable[[], bool],
) -> Health:
    """Healthy while the lease is renewed; ready while all informers are synced."""

    def say_if_stopping() -> str:
        return "process is shutting down" if is_stopping() else ""

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
    health.add("permissions", lambda: permissions.problem, on=("readyz",))
    return health


def reviewer_for(
    options: ComponentOptions, reader: ApiClient, connect: Callable[[Endpoint], Transport]
) -> ApiReviewer:
    """TokenReview and SubjectAccessReview may go to another server than the scheduler's."""

    def asking(kubeconfig: str) -> ApiClient:
        return ApiClient(connect(find_endpoint(kubeconfig))) if kubeconfig else reader

    return ApiReviewer(
        asking(options.authentication_kubeconfig), asking(options.authorization_kubeconfig)
    )
