"""KubeSchedulerConfiguration: from a file to typed, defaulted, checked values, and back.

Flows in: a YAML or JSON text in version kubescheduler.config.k8s.io/v1, or in an older one, which
`legacy` converts. Flows out: a frozen `KubeSchedulerConfiguration` and notes on what changed since,
or a `ConfigError` with every problem and its YAML path. The words owned here are *profile*, *plugin
set*, *multiPoint*, *note* and *effective configuration*. This room knows plugins by name only: the
caller says which names exist and what they implement.
"""

from mooring.config.convert import to_v1_yaml as to_v1_yaml
from mooring.config.decode import decode_args as decode_args
from mooring.config.defaults import apply_defaults as apply_defaults
from mooring.config.defaults import effective_plugins as effective_plugins
from mooring.config.defaults import resolve_names as resolve_names
from mooring.config.duration import format_duration as format_duration
from mooring.config.expand import enabled_names as enabled_names
from mooring.config.expand import expand_point as expand_point
from mooring.config.load import Check as Check
from mooring.config.load import Loaded as Loaded
from mooring.config.load import default_configuration as default_configuration
from mooring.config.load import load_file as load_file
from mooring.config.load import load_text as load_text
from mooring.config.load import read_file as read_file
from mooring.config.load import read_text as read_text
from mooring.config.notes import Note as Note
from mooring.config.policy_source import ReadConfigMap as ReadConfigMap
from mooring.config.show import to_document as to_document
from mooring.config.show import to_yaml as to_yaml
from mooring.config.types import API_VERSION as API_VERSION
from mooring.config.types import DEFAULT_SCHEDULER_NAME as DEFAULT_SCHEDULER_NAME
from mooring.config.types import KIND as KIND
from mooring.config.types import POINTS as POINTS
from mooring.config.types import ClientConnection as ClientConnection
from mooring.config.types import Extender as Extender
from mooring.config.types import ExtenderTLS as ExtenderTLS
from mooring.config.types import KubeSchedulerConfiguration as KubeSchedulerConfiguration
from mooring.config.types import KubeSchedulerProfile as KubeSchedulerProfile
from mooring.config.types import PluginRef as PluginRef
from mooring.config.types import Plugins as Plugins
from mooring.config.types import PluginSet as PluginSet
from mooring.config.validate import validate as validate
