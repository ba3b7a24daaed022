"""Who is next.

Pods without a node flow in from the event handlers, the next one to try flows out to the cycle, and
a pod that found no place flows back in with the plugins that refused it. Cluster events then decide
when it is worth another try. This room owns the words *active*, *backoff*, *unschedulable*,
*gated*, *in flight*, *nominated* and *hint*. It is plain and synchronous: time is handed in.
"""

from mooring.queue.hints import Registration, with_taint_fallback
from mooring.queue.nominator import NominatedPods
from mooring.queue.options import QueueOptions
from mooring.queue.places import Where
from mooring.queue.queue import SchedulingQueue
from mooring.queue.updates import pod_update_events

__all__ = [
    "NominatedPods",
    "QueueOptions",
    "Registration",
    "SchedulingQueue",
    "Where",
    "pod_update_events",
    "with_taint_fallback",
]
