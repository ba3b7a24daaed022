"""The recorder of plugins: Events about pods, for the sink that writes them."""

from __future__ import annotations

from mooring.cache.pods import Pod
from mooring.client.events import EventSink


class EventRecorder:
    """Fulfils `framework.Recorder`, for a scheduler and for an extender."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink

    def event(
        self, pod: Pod, type_: str, reason: str, action: str, note: str, related: Pod | None = None
    ) -> None:
        regarding = pod.api.reference
        other = related.api.reference if related is not None else None
        self._sink.emit(
            regarding, type_, reason, action, note, other, controller=pod.scheduler_name
        )
