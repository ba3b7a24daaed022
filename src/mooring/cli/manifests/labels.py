"""The labels that all objects of one scheduler carry, under the recommended names."""

from __future__ import annotations


def selector(name: str) -> dict[str, str]:
    """Selects the pods of one scheduler; can't be changed once deployed."""
    return {"app.kubernetes.io/name": "mooring", "app.kubernetes.io/instance": name}


def labels(name: str) -> dict[str, str]:
    """For every object."""
    return {**selector(name), "app.kubernetes.io/component": "scheduler"}
