"""Pods, nodes and a real scheduler in this process, on virtual time.

Input: pods and nodes. A real `Scheduler` decides; its bindings and Events are kept in memory. There
is no API server here; `mooring.cluster` has one. This room owns the words *virtual clock*, *settle*
and *advance*.
"""

from mooring.simulator.clock import VirtualClock, VirtualLoop
from mooring.simulator.cluster import LocalCluster, RecordedEvent
from mooring.simulator.simulation import Simulation

__all__ = ["LocalCluster", "RecordedEvent", "Simulation", "VirtualClock", "VirtualLoop"]
