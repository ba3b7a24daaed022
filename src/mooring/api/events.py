"""The events.k8s.io group: what the scheduler reports about pods."""

from typing import ClassVar

from mooring.api.meta import Object, ObjectReference, Value


class EventSeries(Value, frozen=True, kw_only=True):
    """How often the same event was seen, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class Event(Object, frozen=True, kw_only=True):
    """Something that happened to `regarding`, once or as a series."""

    API_VERSION: ClassVar[str] = "events.k8s.io/v1"

    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
