"""Client libraries for Python, with a custom resource, against `mooring cluster up`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.process import Running
from tests.controlplane.waiting import wait_until

client: Any = pytest.importorskip("kubernetes.client")
config: Any = pytest.importorskip("kubernetes.config")
watch: Any = pytest.importorskip("kubernetes.watch")

GROUP = "example.com"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wi]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                color: {type: string, enum: [red, blue]}
                size: {type: integer, default: 1, minimum: 0}
            status:
              type: object
              x-kubernetes-preserve-unknown-fields: true
"""


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"color": "red", **spec},
    }


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("clients") / "kubeconfig"
    words = ("cluster", "up", "--nodes", "1", "--kubeconfig", str(path))
    with Running(*words, forked=True) as running:
        running.until("Ctrl-C ends it")
        yield path


@pytest.fixture(scope="module")
def api(kubeconfig: Path) -> Iterator[Any]:
    """The generic API of the official client; the definition is there."""
    with config.new_client_from_config(str(kubeconfig)) as connection:
        extensions = client.ApiextensionsV1Api(connection)
        extensions.create_custom_resource_definition(yaml.safe_load(DEFINITION))
        yield connection


def test_official_client(api: Any) -> None:
    custom = client.CustomObjectsApi(api)
    place = (GROUP, "v1", "default", "widgets")
    made = custom.create_namespaced_custom_object(*place, widget("a"))
    assert made["spec"] == {"color": "red", "size": 1}
    with pytest.raises(client.ApiException, match="supported values"):
        custom.create_namespaced_custom_object(*place, widget("bad", color="green"))
    custom.patch_namespaced_custom_object(*place, "a", {"spec": {"color": "blue"}})
    custom.patch_namespaced_custom_object_status(*place, "a", {"status": {"phase": "x"}})
    custom.patch_namespaced_custom_object_scale(*place, "a", {"spec": {"replicas": 4}})
    found = custom.get_namespaced_custom_object(*place, "a")
    assert (found["spec"], found["status"]) == ({"color": "blue", "size": 4}, {"phase": "x"})
    events = watch.Watch().stream(custom.list_namespaced_custom_object, *place, timeout_seconds=1)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("ADDED", "a")
    ]
    custom.delete_namespaced_custom_object(*place, "a")
    assert custom.list_namespaced_custom_object(*place)["items"] == []


@pytest.mark.parametrize("library", ["kr8s", "kubernetes_asyncio", "lightkube"])
def test_other_clients(library: str, api: Any, kubeconfig: Path) -> None:
    """In a process of their own: they leave connections open and warn about new servers."""
    pytest.importorskip(library)
    script = Path(__file__).with_name(f"with_{library}.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(kubeconfig)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    name, size = {"kr8s": ("k", 3), "kubernetes_asyncio": ("y", 2), "lightkube": ("l", 1)}[library]
    assert (done.stdout, done.returncode) == (f"{name} blue {size}\ndeleted\n", 0), done.stderr


def test_kopf_operator(api: Any, kubeconfig: Path) -> None:
    pytest.importorskip("kopf")
    custom, core = client.CustomObjectsApi(api), client.CoreV1Api(api)
    place = (GROUP, "v1", "default", "widgets")

    def maps() -> dict[str, Any]:
        found = core.list_namespaced_config_map("default").items
        return {one.metadata.name: one.data for one in found}

    def phase() -> str:
        found = custom.get_namespaced_custom_object(*place, "o").get("status") or {}
        return str(found.get("phase", ""))

    operator = Path(__file__).with_name("widgets.py")
    words = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace=default"]
    with subprocess.Popen(
        [*words, str(operator)],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        try:
            custom.create_namespaced_custom_object(*place, widget("o"))
            # It takes seconds of CPU to start, on a busy machine far longer.
            wait_until(lambda: phase() == "is red", 120, what="the operator writes the status")
            assert maps()["o"] == {"color": "red"}
            custom.patch_namespaced_custom_object(*place, "o", {"spec": {"color": "blue"}})
            wait_until(lambda: phase() == "is blue", what="the operator sees the change")
            assert maps()["o"] == {"color": "blue"}
            custom.delete_namespaced_custom_object(*place, "o")
            wait_until(lambda: "o-was-here" in maps(), what="the operator sees the deletion")
            # The finalizer goes, the widget goes, and garbage collection takes what it owned.
            wait_until(lambda: "o" not in maps(), what="the settings go with the widget")
            assert custom.list_namespaced_custom_object(*place)["items"] == []
        finally:
            running.terminate()
