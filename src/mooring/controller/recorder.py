"""Events about any object, reported by one controller."""

from __future__ import annotations

from mooring.api.meta import Object
from mooring.client.events import EventSink


class Recorder:
    """Hands Events to the sink that writes them; never blocks, never raises."""

    def __init__(self, sink: EventSink, name: str) -> None:
        self._sink = sink
        self._name = name

    def event(
        self, about: Object, reason: str, note: str, *, action: str, is_warning: bool = False
    ) -> None:
        """`reason` and `action` are words such as FailedScheduling and Scheduling."""
        type_ = "Warning" if is_warning else "Normal"
        self._sink.emit(about.reference, type_, reason, action, note, controller=self._name)
