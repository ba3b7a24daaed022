"""Metrics of every process that talks to an API server: requests, lease, Events."""

from __future__ import annotations

from mooring.observe.family import Histogram, MetricFamily, MetricsRegistry, MetricValue

_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)  # seconds


class ComponentMetrics(MetricsRegistry):
    """The metrics of a process that talks to an API server; kinds of processes add their own."""

    def __init__(self) -> None:
        super().__init__()
        self.client_requests: MetricFamily[MetricValue] = self.counter(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        self.client_duration: MetricFamily[Histogram] = self.histogram(
            "rest_client_request_duration_seconds",
            "Request latency in seconds. Broken down by verb, and host.",
            _REQUEST,
            ("verb", "host"),
        )
        self.leader: MetricFamily[MetricValue] = self.gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup,"
            " 1 indicates master. 'name' is the string used to identify the lease. Please make"
            " sure to group by name.",
            ("name",),
        )
        self.dropped_events: MetricFamily[MetricValue] = self.counter(
            "mooring_event_sink_dropped_total",
            "Kubernetes Events dropped because the queue was full.",
        )
        self.undecodable_objects: MetricFamily[MetricValue] = self.counter(
            "mooring_undecodable_objects_total",
            "Objects from the API server that could not be decoded and were skipped.",
            ("resource",),
        )
        self.build_info: MetricFamily[MetricValue] = self.gauge(
            "mooring_build_info",
            "Always 1; the labels hold the versions.",
            ("version", "python"),
        )

    def count_request(self, method: str, host: str, status: int, seconds: float) -> None:
        """For `HttpTransport(on_answer=…)`; status 0 means that there was no answer."""
        code = str(status) if status else "<error>"
        self.client_requests.labels(code, method, host).add()
        self.client_duration.labels(method, host).observe(seconds)
