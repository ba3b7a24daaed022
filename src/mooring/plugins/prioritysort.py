"""The order of the scheduling queue: higher priority first, then longest in the queue."""

import mooring.framework as fw


class PrioritySort(fw.QueueSort):
    """Sort by `spec.priority`; among equals, by the time a pod entered the queue."""

    name = "PrioritySort"

    def less(self, a: fw.QueuedPod, b: fw.QueuedPod) -> bool:
        if a.pod.priority != b.pod.priority:
            return a.pod.priority > b.pod.priority
        return a.timestamp < b.timestamp

    def sort_key(self, queued: fw.QueuedPod) -> tuple[int, float]:
        return -queued.pod.priority, queued.timestamp
