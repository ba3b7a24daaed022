"""The metadata of all objects of one scheduler; labels are under the recommended names."""

from __future__ import annotations

from typing import Any


def selector(name: str) -> dict[str, str]:
    """Selects the pods of one scheduler; can't be changed once deployed."""
    return {"app.kubernetes.io/name": "mooring", "app.kubernetes.io/instance": name}


def labels(name: str) -> dict[str, str]:
    """For every object."""
    return {**selector(name), "app.kubernetes.io/component": "scheduler"}


def metadata(scheduler: str, namespace: str, name: str = "") -> dict[str, Any]:
    """Of an object that is named after its scheduler, if it has no name of its own."""
    where = {"namespace": namespace} if namespace else {}
    return {"name": name or scheduler, **where, "labels": labels(scheduler)}
