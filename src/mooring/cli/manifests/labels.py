"""The labels that all objects of one scheduler carry, under the names that people look for."""

from __future__ import annotations


def selector(name: str) -> dict[str, str]:
    """What tells the pods of one scheduler from all others; can't be changed once deployed."""
    return {"app.kubernetes.io/name": "mooring", "app.kubernetes.io/instance": name}


def labels(name: str) -> dict[str, str]:
    """For every object."""
    return {**selector(name), "app.kubernetes.io/component": "scheduler"}
