"""The framework runtime: finds plugin classes, builds profiles and calls plugins.

A configuration flows in, a `Profile` of built plugins flows out; then pods and nodes flow in,
statuses and scores flow out. An exception of a plugin becomes a status here. This room owns the
words *registry*, *profile*, *guard* and *caller*.
"""

from mooring.errors import PluginError
from mooring.runtime.decision_caller import (
    DecisionCaller,
    PluginFault,
    extremes,
    is_in_range,
    out_of_range,
)
from mooring.runtime.guard import Guard
from mooring.runtime.plugin_caller import (
    as_error,
    is_vectorised,
    normalizes,
    overrides_normalize_score,
    picks_pods,
    running,
)
from mooring.runtime.profile import Profile

__all__ = [
    "DecisionCaller",
    "Guard",
    "PluginError",
    "PluginFault",
    "Profile",
    "as_error",
    "extremes",
    "is_in_range",
    "is_vectorised",
    "normalizes",
    "out_of_range",
    "overrides_normalize_score",
    "picks_pods",
    "running",
]
