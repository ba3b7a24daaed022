"""What users test their plugins with: builders, checks, an in-process cluster with its own clock.

Plugin classes flow in; plugins on a bench, small clusters and `AssertionError`s flow out. Nothing
here runs in a scheduler.
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
