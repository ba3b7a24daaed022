"""The metrics of an extender."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.observe.family import AnyFamily, Histogram, MetricFamily, MetricValue, exponential
from mooring.observe.metrics import Metrics

_REQUEST = exponential(0.0005, 2, 14)  # seconds, up to 4 s; schedulers time out after 5 s
_OWN = "mooring_extender_"


class ExtenderMetrics(Metrics):
    """The families of a scheduler, because plugins run as in a scheduler, and those of requests.

    Families without a value are not shown, because many apply only to a scheduler.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: MetricFamily[Histogram] = self.histogram(
            f"{_OWN}request_duration_seconds",
            "Duration of requests, from the first byte of the body to the last byte of the answer.",
            _REQUEST,
            ("verb", "code"),
        )
        self.in_flight: MetricFamily[MetricValue] = self.gauge(
            f"{_OWN}requests_in_flight", "Requests in progress.", ("verb",)
        )
        self.errors: MetricFamily[MetricValue] = self.counter(
            f"{_OWN}errors_total",
            "Requests that failed, by the plugin that failed; an empty plugin means the request"
            " or the API server. Most of them have the HTTP code 200.",
            ("verb", "plugin"),
        )
        self.unknown_nodes: MetricFamily[MetricValue] = self.counter(
            f"{_OWN}unknown_nodes_total",
            "Nodes of requests that the extender's own watch does not know.",
        )
        self.connections: MetricFamily[MetricValue] = self.gauge(
            f"{_OWN}connections", "Open connections."
        )

    def __iter__(self) -> Iterator[AnyFamily]:
        return (
            family for family in super().__iter__() if len(family) or family.name.startswith(_OWN)
        )
