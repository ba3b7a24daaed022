"""The metrics of a controller; `workqueue_…` are named as in client-go."""

from __future__ import annotations

from mooring.observe.component import ComponentMetrics
from mooring.observe.family import Histogram, MetricFamily, MetricValue, exponential

_QUEUE = exponential(1e-8, 10, 10)  # seconds, as client-go's
_RECONCILE = exponential(0.001, 2, 15)


class ControllerMetrics(ComponentMetrics):
    """Made once for a process; work queues and controllers are told apart by name.

    The results of a reconciliation are `success`, `requeue` (with backoff), `requeue_after` and
    `error`; those of a bind `bound`, `conflict`, `gone`, `fenced` and `error`.
    """

    def __init__(self) -> None:
        super().__init__()
        name, controller, by_result = ("name",), ("controller",), ("controller", "result")
        self.queue_depth: MetricFamily[MetricValue] = self.gauge(
            "workqueue_depth", "Keys that are ready to be worked on.", name
        )
        self.queue_adds: MetricFamily[MetricValue] = self.counter(
            "workqueue_adds_total", "Keys added; one that is ready already is not counted.", name
        )
        self.queue_wait: MetricFamily[Histogram] = self.histogram(
            "workqueue_queue_duration_seconds",
            "How long keys were ready before they were worked on.",
            _QUEUE,
            name,
        )
        self.queue_work: MetricFamily[Histogram] = self.histogram(
            "workqueue_work_duration_seconds", "How long keys were worked on.", _QUEUE, name
        )
        self.queue_unfinished: MetricFamily[MetricValue] = self.gauge(
            "workqueue_unfinished_work_seconds",
            "Time that the keys being worked on have taken so far, in sum.",
            name,
        )
        self.queue_longest: MetricFamily[MetricValue] = self.gauge(
            "workqueue_longest_running_processor_seconds",
            "Time that the longest running key has taken so far.",
            name,
        )
        self.queue_retries: MetricFamily[MetricValue] = self.counter(
            "workqueue_retries_total", "Keys that were put off with backoff.", name
        )
        self.reconciles: MetricFamily[MetricValue] = self.counter(
            "mooring_controller_reconcile_total", "Reconciliations by result.", by_result
        )
        self.reconcile_duration: MetricFamily[Histogram] = self.histogram(
            "mooring_controller_reconcile_time_seconds",
            "How long reconciliations took.",
            _RECONCILE,
            controller,
        )
        self.workers: MetricFamily[MetricValue] = self.gauge(
            "mooring_controller_max_concurrent_reconciles",
            "How many reconciliations may run at once.",
            controller,
        )
        self.active_workers: MetricFamily[MetricValue] = self.gauge(
            "mooring_controller_active_workers", "Reconciliations running now.", controller
        )
        self.binds: MetricFamily[MetricValue] = self.counter(
            "mooring_controller_binds_total", "Attempts to bind a pod, by result.", by_result
        )
        self.choice_duration: MetricFamily[Histogram] = self.histogram(
            "mooring_controller_choice_time_seconds",
            "How long the controller's function took to choose a node.",
            _RECONCILE,
            controller,
        )
        self.pending_pods: MetricFamily[MetricValue] = self.gauge(
            "mooring_controller_pending_pods",
            "Pods of this controller without a node: 'ready' ones wait for their turn, 'refused'"
            " ones for another try, 'binding' ones for the API server.",
            ("controller", "state"),
        )
