"""Every metric of a scheduler, in one place.

Names, labels and buckets are kube-scheduler's, because dashboards already read them; what it has no
name for is called `mooring_…`. Left out are the families of features we do not have: batching by
signature, asynchronous API calls, pod groups, devices with binding conditions, the volume binder.
"""

from __future__ import annotations

from mooring.observe.component import ComponentMetrics
from mooring.observe.family import Histogram, MetricFamily, MetricValue, exponential

_ATTEMPT = exponential(0.001, 2, 15)  # seconds
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_LONG = exponential(0.01, 2, 20)


class Metrics(ComponentMetrics):
    """Every metric of one scheduler; made by the scheduler and handed down, never global."""

    def __init__(self) -> None:
        super().__init__()
        self._add_attempts()
        self._add_queue()
        self._add_framework()
        self._add_preemption()

    def _add_attempts(self) -> None:
        self.schedule_attempts: MetricFamily[MetricValue] = self.counter(
            "scheduler_schedule_attempts_total",
            "Attempts to place a pod. 'unschedulable' means that no node would do, 'error' that"
            " something broke.",
            ("result", "profile"),
            stability="STABLE",
        )
        self.attempt_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long an attempt took, from taking the pod out of the queue to the end of binding.",
            _ATTEMPT,
            ("result", "profile"),
            stability="STABLE",
        )
        self.algorithm_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "How long the decision about a pod took, binding not counted.",
            _ATTEMPT,
        )
        self.pod_attempts: MetricFamily[Histogram] = self.histogram(
            "scheduler_pod_scheduling_attempts",
            "How many attempts the pods needed that are bound now.",
            exponential(1, 2, 5),
            stability="STABLE",
        )
        self.pod_sli_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the first moment a pod was ready to be tried until it was bound, over all its"
            " attempts; time spent behind a scheduling gate is not counted.",
            _LONG,
            ("attempts",),
            stability="BETA",
        )
        self.pod_scheduled_after_flush: MetricFamily[MetricValue] = self.counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods that were bound after they had waited so long that they were retried without an"
            " event. Many of them mean that a plugin waits for the wrong events.",
        )
        self.goroutines: MetricFamily[MetricValue] = self.gauge(
            "scheduler_goroutines",
            "Tasks at work, by what they do, such as binding.",
            ("operation",),
            stability="BETA",
        )
        self.cache_size: MetricFamily[MetricValue] = self.gauge(
            "scheduler_cache_size",
            "Nodes, pods and assumed pods in the scheduler's picture of the cluster.",
            ("type",),
        )
        self.event_handling_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_event_handling_duration_seconds",
            "How long it took to take notice of a change in the cluster.",
            _POINT,
            ("event",),
        )
        self.conflicts: MetricFamily[MetricValue] = self.counter(
            "mooring_scheduling_conflicts_total",
            "Decisions that somebody else was faster than: 'recheck' was noticed before binding,"
            " 'already_bound' by the API server, 'overcommitted' only afterwards.",
            ("kind",),
        )

        self.decisions: MetricFamily[MetricValue] = self.counter(
            "mooring_decisions_total",
            "Decisions about pods. 'class' were made from what was known of pods alike, 'full' by"
            " asking every plugin about every node.",
            ("way",),
        )
        self.class_checks: MetricFamily[MetricValue] = self.counter(
            "mooring_class_checks_total",
            "Decisions by class that were made again in full, as --check-decisions asks.",
            ("result",),
        )

    def _add_queue(self) -> None:
        self.pending_pods: MetricFamily[MetricValue] = self.gauge(
            "scheduler_pending_pods",
            "Pods without a node. 'active' are ready to be tried, 'backoff' wait for some seconds,"
            " 'unschedulable' for something to happen, and 'gated' were never tried.",
            ("queue",),
            stability="STABLE",
        )
        self.queue_incoming: MetricFamily[MetricValue] = self.counter(
            "scheduler_queue_incoming_pods_total",
            "Pods that entered a queue, and what brought them there.",
            ("queue", "event"),
            stability="STABLE",
        )
        self.unschedulable_pods: MetricFamily[MetricValue] = self.gauge(
            "scheduler_unschedulable_pods",
            "Waiting pods by the plugins that refused them; a pod counts once for each.",
            ("plugin", "profile"),
            stability="BETA",
        )
        self.inflight_events: MetricFamily[MetricValue] = self.gauge(
            "scheduler_inflight_events",
            "Pods being tried ('PodPopped'), and the events remembered on their behalf.",
            ("event",),
        )
        self.hint_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "How long a plugin took to say whether an event may help a pod it had refused.",
            _PLUGIN,
            ("plugin", "event", "hint"),
        )

    def _add_framework(self) -> None:
        self.point_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "How long all plugins of an extension point took together.",
            _POINT,
            ("extension_point", "status", "profile"),
            stability="STABLE",
        )
        self.plugin_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_plugin_execution_duration_seconds",
            "How long one plugin took at an extension point; one attempt in ten is measured.",
            _PLUGIN,
            ("plugin", "extension_point", "status"),
        )
        self.plugin_evaluations: MetricFamily[MetricValue] = self.counter(
            "scheduler_plugin_evaluation_total",
            "How often a plugin was asked, at PreFilter and PreScore once per pod, at Filter and"
            " Score once per pod and node. A plugin that skips a pod does not count.",
            ("plugin", "extension_point", "profile"),
            stability="BETA",
        )
        self.permit_wait: MetricFamily[Histogram] = self.histogram(
            "scheduler_permit_wait_duration_seconds",
            "How long pods were held at Permit.",
            _ATTEMPT,
            ("result",),
            stability="BETA",
        )

    def _add_preemption(self) -> None:
        self.preemption_attempts: MetricFamily[MetricValue] = self.counter(
            "scheduler_preemption_attempts_total",
            "How often it was looked for pods to evict in favour of another one.",
            stability="STABLE",
        )
        self.preemption_victims: MetricFamily[Histogram] = self.histogram(
            "scheduler_preemption_victims",
            "How many pods were chosen to be evicted for one.",
            exponential(1, 2, 7),
            stability="STABLE",
        )
        self.preemption_tasks: MetricFamily[MetricValue] = self.counter(
            "scheduler_preemption_goroutines_execution_total",
            "Preemptions that were carried out in the background.",
            ("result",),
        )
        self.preemption_task_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "How long it took to carry a preemption out in the background.",
            _LONG,
            ("result",),
        )
        self.preemption_loops: MetricFamily[MetricValue] = self.counter(
            "mooring_preemption_loops_total",
            "Preemptions that were held back because they repeated themselves.",
        )
