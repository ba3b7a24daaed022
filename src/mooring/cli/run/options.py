"""The options of `mooring run`, and those it shares with `mooring controller`; see `flags`."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Final, Literal

from mooring import __version__
from mooring.cli.options import CommandOptions
from mooring.config.duration import Duration

USER_AGENT: Final = f"mooring/{__version__} ({platform.system().lower()}/{platform.machine()})"


class ComponentOptions(CommandOptions, frozen=True, kw_only=True):
    """What any process with a client, a lease and endpoints understands. None: not given."""

    kubeconfig: str
    context: str
    master: str
    kube_api_qps: float | None
    kube_api_burst: int | None

    node_selector: str
    shutdown_grace_period: Duration
    permission_check_interval: Duration

    leader_elect: bool | None
    leader_elect_lease_duration: Duration | None
    leader_elect_renew_deadline: Duration | None
    leader_elect_retry_period: Duration | None
    leader_elect_resource_name: str | None
    leader_elect_resource_namespace: str | None

    bind_address: str
    secure_port: int
    tls_cert_file: str
    tls_private_key_file: str
    cert_dir: str
    tls_min_version: str
    tls_cipher_suites: str

    authentication_kubeconfig: str
    authentication_skip_lookup: bool
    authentication_tolerate_lookup_failure: bool
    authentication_token_webhook_cache_ttl: Duration
    authorization_kubeconfig: str
    authorization_webhook_cache_authorized_ttl: Duration
    authorization_webhook_cache_unauthorized_ttl: Duration
    authorization_always_allow_paths: str
    client_ca_file: str

    v: int
    logging_format: Literal["text", "json"]


class RunOptions(ComponentOptions, frozen=True, kw_only=True):
    """What `mooring run` understands."""

    config: str
    plugin: Sequence[str]
    write_config_to: str
    feature_gates: Sequence[str]
    pod_max_in_unschedulable_pods_duration: Duration
    check_decisions: float
    reload: bool
    check_start: bool
    record_size: int
    record_margins: bool
    record_file: str
    record_file_limit: int
    record_journal: str
    record_otlp: str
    record_otlp_share: float
    lens_workers: int
    shadow: bool
    shadow_report: str
    on_overrun: Sequence[str]
    ignored: Sequence[str]  # flags that were given and have no effect
