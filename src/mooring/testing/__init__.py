"""The test kit for plugin authors: builders, checks, and in-process clusters on virtual time.

Plugin classes flow in; built plugins, small clusters and `AssertionError`s flow out. Nothing here
runs in a scheduler.
"""

from mooring.simulator.simulation import Simulation
from mooring.testing.build import StubHandle, build, prepare
from mooring.testing.builders import node, nodes, pod
from mooring.testing.checks import Check, Examples, check_plugin, plugin_checks

__all__ = [
    "Check",
    "Examples",
    "Simulation",
    "StubHandle",
    "build",
    "check_plugin",
    "node",
    "nodes",
    "plugin_checks",
    "pod",
    "prepare",
]
