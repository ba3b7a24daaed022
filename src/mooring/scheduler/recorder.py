"""Events about pods, handed to the sink that writes them."""

from __future__ import annotations

from mooring.api.core import Pod as ApiPod
from mooring.api.meta import ObjectReference
from mooring.cache.pods import Pod
from mooring.client.events import EventSink


class EventRecorder:
    """Fulfils `framework.Recorder`."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink

    def event(
        self,
        pod: Pod,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: Pod | None = None,
    ) -> None:
        self._sink.emit(
            reference_to(pod),
            type_,
            reason,
            action,
            note,
            reference_to(related) if related is not None else None,
            controller=pod.scheduler_name,
        )


def reference_to(pod: Pod) -> ObjectReference:
    meta = pod.api.metadata
    return ObjectReference(
        api_version=ApiPod.API_VERSION,
        kind=ApiPod.KIND,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )
