"""The configuration of a process: its file, overridden by flags."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring import config as cfg
from mooring.cli.run.options import ComponentOptions
from mooring.client.lease import Election


def with_flags(
    config: cfg.KubeSchedulerConfiguration, options: ComponentOptions
) -> cfg.KubeSchedulerConfiguration:
    """The configuration, overridden by the flags for leader election and connection."""
    election: dict[str, object] = {
        "leader_elect": options.leader_elect,
        "lease_duration": options.leader_elect_lease_duration,
        "renew_deadline": options.leader_elect_renew_deadline,
        "retry_period": options.leader_elect_retry_period,
        "resource_name": options.leader_elect_resource_name,
        "resource_namespace": options.leader_elect_resource_namespace,
    }
    connection: dict[str, object] = {
        "kubeconfig": options.kubeconfig or None,
        "qps": options.kube_api_qps,
        "burst": options.kube_api_burst,
    }
    replace = msgspec.structs.replace
    return replace(
        config,
        leader_election=replace(config.leader_election, **_given(election)),
        client_connection=replace(config.client_connection, **_given(connection)),
    )


def _given(values: dict[str, object]) -> dict[str, Any]:
    return {field: value for field, value in values.items() if value is not None}


def election_of(config: cfg.KubeSchedulerConfiguration) -> Election | None:
    """How replicas elect a leader, if they do."""
    lease = config.leader_election
    if not lease.leader_elect:
        return None
    return Election(
        name=lease.resource_name,
        namespace=lease.resource_namespace,
        lease_duration=lease.lease_duration.seconds,
        renew_deadline=lease.renew_deadline.seconds,
        retry_period=lease.retry_period.seconds,
    )
