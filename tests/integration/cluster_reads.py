"""What a test wants to know of a cluster, as its API server tells it."""

from __future__ import annotations

from datetime import datetime

from tests.controlplane.admin import Object, Objects
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until


def node_of(control_plane: Plane, namespace: str, pod: str) -> str:
    """Where a pod is; empty if nowhere."""
    found = control_plane.admin.get("Pod", pod, namespace)
    return str(found["spec"].get("nodeName", ""))


def placements(control_plane: Plane, namespace: str) -> dict[str, str]:
    """The nodes of all pods by their names; empty for those that wait."""
    found = control_plane.admin.list("Pod", namespace)
    return {each["metadata"]["name"]: each["spec"].get("nodeName", "") for each in found}


def wait_until_bound(
    control_plane: Plane, namespace: str, *pods: str, timeout: float = 120.0
) -> dict[str, str]:
    """Wait for these pods, or for all there are; where they went."""

    def are_bound() -> bool:
        # Those that wait are few, and soon none; to ask for all pods each time costs much more.
        listed = control_plane.admin.list("Pod", namespace, fieldSelector="spec.nodeName=")
        waiting = {each["metadata"]["name"] for each in listed}
        if waiting.intersection(pods or waiting):
            return False
        found = placements(control_plane, namespace)
        return all(found.get(name) for name in pods or found)

    wait_until(are_bound, timeout, what=f"{' and '.join(pods) or 'all pods'} are bound")
    return placements(control_plane, namespace)


def events_about(control_plane: Plane, namespace: str, name: str, reason: str = "") -> Objects:
    """The Events about an object, of one reason or all, oldest first."""
    found = [
        event
        for event in control_plane.admin.list("events.k8s.io/v1/Event", namespace)
        if event["regarding"]["name"] == name and event["reason"] == (reason or event["reason"])
    ]
    return sorted(found, key=lambda event: str(event["eventTime"]))


def wait_for_event(
    control_plane: Plane, namespace: str, name: str, reason: str, note: str = ""
) -> Object:
    """The first Event of a reason about an object whose note contains a text, once it is there."""

    def found() -> Objects:
        told = events_about(control_plane, namespace, name, reason)
        return [event for event in told if note in event["note"]]

    return wait_until(found, what=f"there is an Event {reason} about {name}: {note!r}")[0]


def condition(value: Object, type_: str) -> Object:
    """A condition of an object; empty if it has none of this type."""
    known = value["status"].get("conditions", ())
    return next((each for each in known if each["type"] == type_), {})


def wait_for_condition(
    control_plane: Plane, namespace: str, pod: str, type_: str, reason: str
) -> Object:
    """A condition of a pod, once it is there for this reason."""

    def found() -> Object:
        known = condition(control_plane.admin.get("Pod", pod, namespace), type_)
        return known if known.get("reason") == reason else {}

    return wait_until(found, what=f"{pod} is {type_} because of {reason}")


def seconds(timestamp: str) -> float:
    """A time of the API as seconds since the epoch."""
    return datetime.fromisoformat(timestamp).timestamp()
