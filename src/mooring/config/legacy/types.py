"""The types of older versions, as far as they differ from v1.

A field of type Any is passed on unchanged and checked as v1. None means "not given": a given value
is written to the converted file even if it is the default.
"""

from typing import Any

from mooring.config.types import PluginConfig, PluginSet, Section

PluginSets = dict[str, PluginSet | None]

_V1BETA1_POINTS = (
    *("queueSort", "preFilter", "filter", "postFilter", "preScore", "score"),
    *("reserve", "permit", "preBind", "bind", "postBind"),
)
POINTS = {
    "v1beta3": (*_V1BETA1_POINTS, "preEnqueue", "multiPoint"),
    "v1beta2": (*_V1BETA1_POINTS, "preEnqueue", "multiPoint"),
    "v1beta1": _V1BETA1_POINTS,
    "v1alpha2": (*(p for p in _V1BETA1_POINTS if p != "postFilter"), "unreserve"),
    "v1alpha1": (
        *(p for p in _V1BETA1_POINTS if p != "preScore"),
        *("unreserve", "normalizeScore"),
    ),
}
"""The plugin sets that a version knows."""


class OldProfile(Section, frozen=True, kw_only=True):
    """A profile without percentageOfNodesToScore."""

    scheduler_name: str | None = None
    plugins: PluginSets = {}
    plugin_config: tuple[PluginConfig, ...] = ()


class CommonFields(Section, frozen=True, kw_only=True):
    """Fields of every version."""

    leader_election: dict[str, Any] | None = None
    client_connection: dict[str, Any] | None = None
    enable_profiling: Any = None
    enable_contention_profiling: Any = None
    percentage_of_nodes_to_score: Any = None
    pod_initial_backoff_seconds: Any = None
    pod_max_backoff_seconds: Any = None


class V1Beta3(CommonFields, frozen=True, kw_only=True):
    """Kubernetes 1.23 to 1.28."""

    parallelism: Any = None
    profiles: tuple[OldProfile, ...] = ()
    extenders: tuple[dict[str, Any], ...] = ()


class V1Beta(V1Beta3, frozen=True, kw_only=True):
    """v1beta2 and v1beta1: Kubernetes 1.19 to 1.27."""

    healthz_bind_address: str | None = None
    metrics_bind_address: str | None = None


class Alpha(CommonFields, frozen=True, kw_only=True):
    """Fields of v1alpha1 and v1alpha2."""

    healthz_bind_address: str | None = None
    metrics_bind_address: str | None = None
    disable_preemption: bool = False
    bind_timeout_seconds: int | None = None


class V1Alpha2(Alpha, frozen=True, kw_only=True):
    """Kubernetes 1.18."""

    profiles: tuple[OldProfile, ...] = ()
    extenders: tuple[dict[str, Any], ...] = ()


class PolicyFile(Section, frozen=True, kw_only=True):
    """A Policy on disk."""

    path: str


class PolicyConfigMap(Section, frozen=True, kw_only=True):
    """A Policy in the cluster, under the key policy.cfg."""

    name: str
    namespace: str = ""


class PolicySource(Section, frozen=True, kw_only=True):
    """Where the Policy is."""

    file: PolicyFile | None = None
    config_map: PolicyConfigMap | None = None


class AlgorithmSource(Section, frozen=True, kw_only=True):
    """A built-in set of plugins by name, or a Policy."""

    provider: str | None = None
    policy: PolicySource | None = None


class V1Alpha1(Alpha, frozen=True, kw_only=True):
    """Kubernetes 1.10 to 1.18."""

    scheduler_name: str | None = None
    algorithm_source: AlgorithmSource = AlgorithmSource()
    hard_pod_affinity_symmetric_weight: int | None = None
    plugins: PluginSets = {}
    plugin_config: tuple[PluginConfig, ...] = ()


class ServiceAffinity(Section, frozen=True, kw_only=True):
    """Keep the pods of a service on nodes with equal values of these labels."""

    labels: tuple[str, ...] = ()


class LabelsPresence(Section, frozen=True, kw_only=True):
    """Only nodes that have, or have not, these labels."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(Section, frozen=True, kw_only=True):
    """The argument of a custom predicate."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(Section, frozen=True, kw_only=True):
    """A condition that nodes must meet."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Section, frozen=True, kw_only=True):
    """Spread the pods of a service over the values of this label."""

    label: str = ""


class LabelPreference(Section, frozen=True, kw_only=True):
    """Prefer nodes that have, or have not, this label."""

    label: str = ""
    presence: bool = False


class RatioArguments(Section, frozen=True, kw_only=True):
    """Score by how full a node is; the shape is checked by the plugin."""

    shape: tuple[dict[str, Any], ...] = ()
    resources: tuple[dict[str, Any], ...] = ()


class PriorityArgument(Section, frozen=True, kw_only=True):
    """The argument of a custom priority."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RatioArguments | None = None


class PriorityPolicy(Section, frozen=True, kw_only=True):
    """A score, and how much it counts."""

    name: str = ""
    weight: int = 0
    argument: PriorityArgument | None = None


class Policy(Section, frozen=True, kw_only=True):
    """The configuration before there were plugins; a list of None means the default one."""

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[dict[str, Any], ...] = ()
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False
