"""The story of a pod: popped, decided, assumed, bound; or refused, explained and queued again.

Events of the cluster flow in through `handlers`, decisions flow out as bindings, conditions and
Events. This room wires the others together and owns the words *attempt*, *cycle*, *decision*,
*diagnosis* and *binding*.
"""

from mooring.scheduler.cycle import Decision
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.scheduler import Attempt, Scheduler

__all__ = ["Attempt", "Decision", "Diagnosis", "Scheduler"]
