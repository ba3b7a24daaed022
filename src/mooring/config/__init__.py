"""KubeSchedulerConfiguration: from a file to typed, defaulted, checked values, and back.

Flows in: a YAML or JSON text in version kubescheduler.config.k8s.io/v1, or in an older one, which
`legacy` converts. Flows out: a frozen `KubeSchedulerConfiguration` and notes on what changed since,
or a `ConfigError` with every problem and its YAML path. The words owned here are *profile*, *plugin
set*, *multiPoint*, *note* and *effective configuration*. This room knows plugins by name only: the
caller says which names exist and what they implement.
"""

from mooring.config.convert import to_v1_yaml
from mooring.config.decode import decode, decode_args
from mooring.config.defaults import (
    DEFAULT_MULTIPOINT,
    apply_defaults,
    default_plugins,
    effective_plugins,
    merge_plugins,
    resolve_names,
)
from mooring.config.duration import Duration, format_duration, format_nanoseconds
from mooring.config.expand import enabled_names, expand_point, interface_name
from mooring.config.load import (
    Loaded,
    default_configuration,
    load_file,
    load_text,
    read_file,
    read_text,
)
from mooring.config.notes import Note
from mooring.config.policy_source import ReadConfigMap
from mooring.config.show import to_yaml
from mooring.config.types import (
    API_VERSION,
    DEFAULT_SCHEDULER_NAME,
    KIND,
    POINTS,
    ClientConnection,
    Extender,
    ExtenderTLS,
    KubeSchedulerConfiguration,
    LeaderElection,
    ManagedResource,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
)
from mooring.config.validate import validate

__all__ = [
    "API_VERSION",
    "DEFAULT_MULTIPOINT",
    "DEFAULT_SCHEDULER_NAME",
    "KIND",
    "POINTS",
    "ClientConnection",
    "Duration",
    "Extender",
    "ExtenderTLS",
    "KubeSchedulerConfiguration",
    "LeaderElection",
    "Loaded",
    "ManagedResource",
    "Note",
    "PluginConfig",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "Profile",
    "ReadConfigMap",
    "apply_defaults",
    "decode",
    "decode_args",
    "default_configuration",
    "default_plugins",
    "effective_plugins",
    "enabled_names",
    "expand_point",
    "format_duration",
    "format_nanoseconds",
    "interface_name",
    "load_file",
    "load_text",
    "merge_plugins",
    "read_file",
    "read_text",
    "resolve_names",
    "to_v1_yaml",
    "to_yaml",
    "validate",
]
