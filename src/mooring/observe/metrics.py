"""Every metric of a scheduler.

Names, labels and buckets are kube-scheduler's, because dashboards already read them; metrics that
it does not have are called `mooring_…`. Left out are the families of features that mooring does not
have: batching by signature, asynchronous API calls, pod groups, devices with binding conditions,
the volume binder.
"""

from __future__ import annotations

from mooring.observe.component import ComponentMetrics
from mooring.observe.family import Histogram, MetricFamily, MetricValue, exponential

_ATTEMPT = exponential(0.001, 2, 15)  # seconds
_POINT = exponential(0.0001, 2, 12)
_PLUGIN = exponential(0.00001, 1.5, 20)
_LONG = exponential(0.01, 2, 20)


class Metrics(ComponentMetrics):
    """Every metric of one scheduler; created with the scheduler and passed on, never global."""

    def __init__(self) -> None:
        super().__init__()
        self._add_attempts()
        self._add_queue()
        self._add_framework()
        self._add_preemption()

    def _add_attempts(self) -> None:
        self.schedule_attempts: MetricFamily[MetricValue] = self.counter(
            "scheduler_schedule_attempts_total",
            "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could"
            " not be scheduled, while 'error' means an internal scheduler problem.",
            ("result", "profile"),
            stability="STABLE",
        )
        self.attempt_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
            _ATTEMPT,
            ("result", "profile"),
            stability="STABLE",
        )
        self.algorithm_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds",
            _ATTEMPT,
        )
        self.pod_attempts: MetricFamily[Histogram] = self.histogram(
            "scheduler_pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            exponential(1, 2, 5),
            stability="STABLE",
        )
        self.pod_sli_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from when a pod first entered the scheduling queue until it was bound, over all"
            " attempts; time behind a scheduling gate is not counted.",
            _LONG,
            ("attempts",),
            stability="BETA",
        )
        self.pod_scheduled_after_flush: MetricFamily[MetricValue] = self.counter(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods bound after the periodic flush of unschedulable pods, which retries without an"
            " event. A high number means that a plugin registers the wrong events.",
        )
        self.goroutines: MetricFamily[MetricValue] = self.gauge(
            "scheduler_goroutines",
            "Running tasks, by the work they do, such as binding.",
            ("operation",),
            stability="BETA",
        )
        self.cache_size: MetricFamily[MetricValue] = self.gauge(
            "scheduler_cache_size",
            "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
            ("type",),
        )
        self.event_handling_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_event_handling_duration_seconds",
            "Event handling latency in seconds.",
            _POINT,
            ("event",),
        )
        self.conflicts: MetricFamily[MetricValue] = self.counter(
            "mooring_scheduling_conflicts_total",
            "Scheduling conflicts with other schedulers, by how they were detected: 'recheck'"
            " before binding, 'already_bound' by the API server, 'overcommitted' afterwards.",
            ("kind",),
        )

        self.decisions: MetricFamily[MetricValue] = self.counter(
            "mooring_decisions_total",
            "Scheduling decisions. 'class' reused results of equal pods, 'full' evaluated every"
            " plugin on every node.",
            ("way",),
        )
        self.class_checks: MetricFamily[MetricValue] = self.counter(
            "mooring_class_checks_total",
            "Decisions by class that --check-decisions repeated in full, by the result.",
            ("result",),
        )
        self.shadow_comparisons: MetricFamily[MetricValue] = self.counter(
            "mooring_shadow_comparisons_total",
            "Decisions of another scheduler that --shadow compared with its own, by the result:"
            " 'equal', 'tie' and 'sampling' follow the same rules.",
            ("result",),
        )

        self.records: MetricFamily[MetricValue] = self.counter(
            "mooring_records_total", "Attempts that were recorded (--record-size)."
        )
        self.records_lost: MetricFamily[MetricValue] = self.counter(
            "mooring_records_lost_total",
            "Attempts that were not written to --record-file or sent to --record-otlp: it could not"
            " keep up, or has ended.",
        )

        self.pending_kinds: MetricFamily[MetricValue] = self.gauge(
            "mooring_pending_pods",
            "Pods that were tried and have no node, or are gated, by the kind that mooring explain"
            " tells: 'gated', 'misconfigured', 'waits for room', 'waits for others', 'error' and"
            " others; counted every 30 s.",
            ("kind",),
        )

    def _add_queue(self) -> None:
        self.pending_pods: MetricFamily[MetricValue] = self.gauge(
            "scheduler_pending_pods",
            "Number of pending pods, by the queue: 'active' are ready to be tried, 'backoff' wait"
            " for some seconds, 'unschedulable' for an event, 'gated' for their scheduling gates.",
            ("queue",),
            stability="STABLE",
        )
        self.queue_incoming: MetricFamily[MetricValue] = self.counter(
            "scheduler_queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            ("queue", "event"),
            stability="STABLE",
        )
        self.unschedulable_pods: MetricFamily[MetricValue] = self.gauge(
            "scheduler_unschedulable_pods",
            "Number of unschedulable pods, by plugin; a pod counts for each that refused it.",
            ("plugin", "profile"),
            stability="BETA",
        )
        self.inflight_events: MetricFamily[MetricValue] = self.gauge(
            "scheduler_inflight_events",
            "Number of events currently tracked in the scheduling queue; 'PodPopped' are pods in"
            " flight.",
            ("event",),
        )
        self.hint_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Latency for running a queueing hint function of a plugin.",
            _PLUGIN,
            ("plugin", "event", "hint"),
        )

    def _add_framework(self) -> None:
        self.point_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            _POINT,
            ("extension_point", "status", "profile"),
            stability="STABLE",
        )
        self.plugin_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point, in one of ten attempts.",
            _PLUGIN,
            ("plugin", "extension_point", "status"),
        )
        self.plugin_evaluations: MetricFamily[MetricValue] = self.counter(
            "scheduler_plugin_evaluation_total",
            "Number of calls of a plugin: PreFilter and PreScore once per pod, Filter and Score"
            " once per pod and node. A plugin that skips a pod does not count.",
            ("plugin", "extension_point", "profile"),
            stability="BETA",
        )
        self.plugin_overruns: MetricFamily[MetricValue] = self.counter(
            "mooring_plugin_overruns_total",
            "Calls of a plugin that exceeded the limit of time or memory.",
            ("plugin", "point"),
        )
        self.plugins_on_probation: MetricFamily[MetricValue] = self.gauge(
            "mooring_plugins_on_probation",
            "Plugins that overran lately; pods of a new kind have a trial first.",
        )
        self.permit_wait: MetricFamily[Histogram] = self.histogram(
            "scheduler_permit_wait_duration_seconds",
            "Duration of waiting on permit.",
            _ATTEMPT,
            ("result",),
            stability="BETA",
        )

    def _add_preemption(self) -> None:
        self.preemption_attempts: MetricFamily[MetricValue] = self.counter(
            "scheduler_preemption_attempts_total",
            "Total preemption attempts in the cluster till now",
            stability="STABLE",
        )
        self.preemption_victims: MetricFamily[Histogram] = self.histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            exponential(1, 2, 7),
            stability="STABLE",
        )
        self.preemption_tasks: MetricFamily[MetricValue] = self.counter(
            "scheduler_preemption_goroutines_execution_total",
            "Preemptions carried out in the background.",
            ("result",),
        )
        self.preemption_task_duration: MetricFamily[Histogram] = self.histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Duration of preemptions in the background.",
            _LONG,
            ("result",),
        )
        self.preemption_loops: MetricFamily[MetricValue] = self.counter(
            "mooring_preemption_loops_total",
            "Preemptions delayed because the same preemption had happened before.",
        )
