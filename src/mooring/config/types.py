"""The shape of a KubeSchedulerConfiguration, version kubescheduler.config.k8s.io/v1.

Field names and defaults are kube-scheduler's. A default here is the value of an absent field;
defaults that depend on another field, or that also replace an explicit zero, are set by
`defaults.apply_defaults`. Nothing is checked here beyond the types: see `validate`.
"""

from typing import Any

import msgspec

from mooring.config.duration import Duration

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"


class Section(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A mapping of the file: frozen, camelCase outside, and closed to unknown fields."""


class LeaderElectionConfiguration(Section, frozen=True, kw_only=True):
    """Leader election among replicas.

    An unset `resource_name` becomes the first profile's schedulerName, because kube-scheduler's
    default is the name of its own lease.
    """

    leader_elect: bool = True
    lease_duration: Duration = Duration.of(15)
    renew_deadline: Duration = Duration.of(10)
    retry_period: Duration = Duration.of(2)
    resource_lock: str = "leases"
    resource_name: str = ""
    resource_namespace: str = "kube-system"


class ClientConnection(Section, frozen=True, kw_only=True):
    """How to reach the API server, and the rate limit of requests to it."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


class PluginRef(Section, frozen=True):
    """A plugin by name; a weight of 0 means that none was given."""

    name: str
    weight: int = 0


class PluginSet(Section, frozen=True, kw_only=True):
    """The plugins to enable and to disable at one extension point; `*` disables all."""

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


NOTHING = PluginSet()


class Plugins(Section, frozen=True, kw_only=True):
    """One plugin set per extension point, and `multi_point` for all points at once."""

    multi_point: PluginSet = NOTHING
    pre_enqueue: PluginSet = NOTHING
    queue_sort: PluginSet = NOTHING
    pre_filter: PluginSet = NOTHING
    filter: PluginSet = NOTHING
    post_filter: PluginSet = NOTHING
    pre_score: PluginSet = NOTHING
    score: PluginSet = NOTHING
    reserve: PluginSet = NOTHING
    permit: PluginSet = NOTHING
    pre_bind: PluginSet = NOTHING
    bind: PluginSet = NOTHING
    post_bind: PluginSet = NOTHING
    placement_generate: PluginSet = NOTHING
    placement_score: PluginSet = NOTHING

    def at(self, point: str) -> PluginSet:
        """Give the set of a point by its name in the file, such as `preFilter`."""
        found = getattr(self, _ATTRIBUTES[point])
        assert isinstance(found, PluginSet)
        return found

    def by_point(self) -> dict[str, PluginSet]:
        """All fifteen sets under their names in the file, `multiPoint` first."""
        return {point: self.at(point) for point in _ATTRIBUTES}

    @classmethod
    def of_points(cls, sets: dict[str, PluginSet]) -> "Plugins":
        """Build from the names in the file; the inverse of `by_point`."""
        return cls(**{_ATTRIBUTES[point]: value for point, value in sets.items()})


_ATTRIBUTES = {field.encode_name: field.name for field in msgspec.structs.fields(Plugins)}

POINTS: tuple[str, ...] = tuple(point for point in _ATTRIBUTES if point != "multiPoint")
"""Every extension point that has a plugin set of its own, by its name in the file."""


class PluginConfig(Section, frozen=True, kw_only=True):
    """Arguments for one plugin, kept raw until the plugin's own type decodes them."""

    name: str
    args: dict[str, Any] = {}


class KubeSchedulerProfile(Section, frozen=True, kw_only=True):
    """One schedulerName, and the plugins that decide about its pods."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderTLS(Section, frozen=True, kw_only=True):
    """Certificates for calling an extender; the `data` fields are base64 in the file."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ManagedResource(Section, frozen=True, kw_only=True):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(Section, frozen=True, kw_only=True):
    """A web hook that takes part in filtering, scoring, preemption or binding."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: Duration = Duration.of(5)
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(Section, frozen=True, kw_only=True):
    """The whole file, without its apiVersion and kind.

    An unset `percentage_of_nodes_to_score` stays None and means every node; kube-scheduler would
    adapt the share to the size of the cluster.
    """

    parallelism: int = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
