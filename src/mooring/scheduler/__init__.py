"""The scheduler: a pod is popped, decided, assumed and bound, or refused and queued again.

Changes of the cluster flow in through `handlers`, decisions flow out as bindings, conditions and
Events. This room connects the others and owns the words *attempt*, *cycle*, *decision*,
*diagnosis* and *binding*.
"""

from mooring.scheduler.attempts import Attempt
from mooring.scheduler.cycle import Decision
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.scheduler import Scheduler

__all__ = ["Attempt", "Decision", "Diagnosis", "Scheduler"]
