"""What every process that works for a cluster counts: its requests, its lease, its Events."""

from __future__ import annotations

from mooring.observe.family import Histogram, MetricFamily, MetricsRegistry, MetricValue

_REQUEST = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)  # seconds


class ComponentMetrics(MetricsRegistry):
    """The metrics of a process that talks to an API server; kinds of processes add their own."""

    def __init__(self) -> None:
        super().__init__()
        self.client_requests: MetricFamily[MetricValue] = self.counter(
            "rest_client_requests_total",
            "Requests to the API server, by what came of them.",
            ("code", "method", "host"),
        )
        self.client_duration: MetricFamily[Histogram] = self.histogram(
            "rest_client_request_duration_seconds",
            "How long requests to the API server took.",
            _REQUEST,
            ("verb", "host"),
        )
        self.leader: MetricFamily[MetricValue] = self.gauge(
            "leader_election_master_status",
            "1 for who holds the lease of this name, 0 for who stands by.",
            ("name",),
        )
        self.dropped_events: MetricFamily[MetricValue] = self.counter(
            "mooring_event_sink_dropped_total",
            "Kubernetes Events that were given up because too many were waiting to be written.",
        )
        self.undecodable_objects: MetricFamily[MetricValue] = self.counter(
            "mooring_undecodable_objects_total",
            "Objects from the API server that could not be read and were left out.",
            ("resource",),
        )
        self.build_info: MetricFamily[MetricValue] = self.gauge(
            "mooring_build_info",
            "Always 1; the labels say what is running.",
            ("version", "python"),
        )

    def count_request(self, method: str, host: str, status: int, seconds: float) -> None:
        """For `HttpTransport(on_answer=…)`: a request came to its end; status 0 is no answer."""
        code = str(status) if status else "<error>"
        self.client_requests.labels(code, method, host).add()
        self.client_duration.labels(method, host).observe(seconds)
