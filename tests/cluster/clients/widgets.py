"""An operator for a custom resource, as kopf users write them: a ConfigMap for each Widget."""

from __future__ import annotations

from typing import Any

import kopf
import kubernetes.client


@kopf.on.create("example.com", "v1", "widgets")
@kopf.on.update("example.com", "v1", "widgets")
def write_settings(spec: Any, name: str, namespace: Any, patch: Any, **_: Any) -> None:
    """Write the settings of a widget, and how many there are into its status."""
    body: Any = {"metadata": {"name": name}, "data": {"color": spec.get("color", "")}}
    kopf.adopt(body)
    api = kubernetes.client.CoreV1Api()
    try:
        api.create_namespaced_config_map(namespace, body)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise
        api.patch_namespaced_config_map(name, namespace, {"data": body["data"]})
    patch.status["phase"] = f"is {spec.get('color', '')}"


@kopf.on.delete("example.com", "v1", "widgets")
def note(name: str, namespace: Any, **_: Any) -> None:
    """The finalizer holds the widget until this is done."""
    body: Any = {"metadata": {"name": f"{name}-was-here"}}
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, body)
