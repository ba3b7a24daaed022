"""The test kit for plugin authors: builders, checks, and in-process clusters on virtual time.

Plugin classes flow in; built plugins, small clusters and `AssertionError`s flow out. Nothing here
runs in a scheduler.
"""

from mooring.simulator.simulation import Simulation
from mooring.testing.build import StubHandle, build, prepare
from mooring.testing.builders import node, nodes, pod
from mooring.testing.checks import Check, Examples, check_plugin, plugin_checks
from mooring.testing.devices import (
    device,
    device_class,
    device_request,
    resource_claim,
    resource_claim_template,
    resource_slice,
)

__all__ = [
    "Check",
    "Examples",
    "Simulation",
    "StubHandle",
    "build",
    "check_plugin",
    "device",
    "device_class",
    "device_request",
    "node",
    "nodes",
    "plugin_checks",
    "pod",
    "prepare",
    "resource_claim",
    "resource_claim_template",
    "resource_slice",
]
