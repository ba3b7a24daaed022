"""The scheduling queue: which pod is tried next, and when a refused pod is tried again.

Unbound pods flow in from the event handlers, the next pod to try flows out to the cycle, and a pod
that was refused flows back in with the plugins that refused it. Cluster events then decide when it
is tried again. This room owns the words *active*, *backoff*, *unschedulable*, *gated*, *in flight*,
*nominated* and *hint*. It is synchronous; the clock is an argument.
"""

from mooring.queue.hints import Registration as Registration
from mooring.queue.hints import with_taint_fallback as with_taint_fallback
from mooring.queue.nominator import NominatedPods as NominatedPods
from mooring.queue.options import QueueOptions as QueueOptions
from mooring.queue.queue import SchedulingQueue as SchedulingQueue
from mooring.queue.sub_queues import QueueName as QueueName
from mooring.queue.updates import pod_update_events as pod_update_events
