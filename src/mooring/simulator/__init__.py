"""Clusters that exist only in this process, and time that only moves when told to.

Pods and nodes flow in, a real `Scheduler` decides about them, bindings and Events flow back into
the cluster's memory. `simulation` has the smallest such cluster: pods, nodes and a scheduler.
`embedded` has a whole one, with API server, controllers and kubelets; it is imported by name, being
larger. This room owns the words *virtual clock*, *settle* and *advance*, *machine* and *kubelet*.
"""

from mooring.simulator.clock import VirtualClock, VirtualLoop
from mooring.simulator.cluster import LocalCluster, RecordedEvent
from mooring.simulator.simulation import Simulation

__all__ = ["LocalCluster", "RecordedEvent", "Simulation", "VirtualClock", "VirtualLoop"]
