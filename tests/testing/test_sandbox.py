from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mooring.client.errors import NotFound, StatusError
from mooring.cluster.embedded import RunningScheduler
from mooring.testing import node, pod
from mooring.testing.sandbox import Sandbox, SeenEvent

MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata: {name: web, namespace: shop, labels: {app: web}}
    spec:
      containers: [{name: app, image: "app:1"}]
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings, namespace: shop}
    data: {since: 2024-01-01}
"""


def test_is_there_as_a_fixture(
    mooring_cluster: Sandbox, mooring_scheduler: Callable[..., RunningScheduler]
) -> None:
    mooring_cluster.add_nodes(2)
    mooring_scheduler()
    mooring_cluster.apply(pod("web"))
    mooring_cluster.wait_until_running("web")
    assert mooring_cluster.node_of("web") in ("node-0", "node-1")


def test_takes_manifests_files_dictionaries_and_builders(tmp_path: Path) -> None:
    file = tmp_path / "more.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-file}\n")
    with Sandbox() as box:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}}
        resident = node("n", cpu="2", pods=[pod("resident", cpu="1")])
        box.apply(MANIFEST, file, config_map, resident)
        assert box.pods(namespace="shop", labels="app=web") == ["web"]
        assert box.get("cm", "shop/settings")["data"] == {"since": "2024-01-01"}
        assert {value["metadata"]["name"] for value in box.all("ConfigMap")} >= {
            "from-file",
            "plain",
        }
        assert box.placements() == {"resident": "n"}
        assert config_map["metadata"] == {"name": "plain"}  # what was given is left as it was


def test_lays_what_is_applied_again_over_what_there_is() -> None:
    with Sandbox() as box:
        box.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
        more = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        box.apply({**more, "data": {"a": "1"}})
        box.apply({**more, "data": {"b": "2"}})
        assert box.get("configmap", "c")["data"] == {"a": "1", "b": "2"}


def test_takes_null_for_nothing_and_a_typing_error_for_one() -> None:
    value: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": None, "ownerReferences": None},
        "spec": {"containers": [{"name": "c", "image": "i", "ports": None}], "volumes": None},
    }
    with Sandbox() as box:
        box.add_nodes(1)
        box.start_scheduler()
        box.apply(value)
        box.wait_until_running()
        value["spec"]["nodeSelektor"] = {}
        with pytest.raises(StatusError, match="nodeSelektor"):
            box.apply(value)


def test_changes_what_a_node_offers() -> None:
    with Sandbox() as box:
        box.apply(node("n", cpu="1"))
        box.start_scheduler()
        box.apply(pod("p", cpu="2"))
        box.advance(2)
        assert box.node_of("p") == ""
        box.apply(node("n", cpu="4"))
        box.wait_until_running("p")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("a: [", "not valid YAML"),
        ("a: 1", "expected an object with apiVersion and kind"),
        (7, "expected a manifest or an object, got int"),
    ],
)
def test_says_what_is_no_object(given: Any, problem: str) -> None:
    with Sandbox() as box, pytest.raises(ValueError, match=problem):
        box.apply(given)


def test_says_what_it_waited_for_in_vain() -> None:
    with Sandbox() as box:
        box.add_nodes(1, cpu="1")
        box.start_scheduler()
        box.apply(pod("big", cpu="2"))
        with pytest.raises(AssertionError) as caught:
            box.wait_until_bound("big", seconds=10)
        assert str(caught.value).startswith("after 10 s: default/big is not bound: 0/1 nodes are")
        with pytest.raises(AssertionError, match="after 1 s: there are no such pods"):
            box.wait_until_running("nobody", seconds=1)
        with pytest.raises(AssertionError, match="after 1 s: the condition does not hold"):
            box.wait_until(lambda: False, seconds=1)


def test_waits_for_all_pods_if_none_is_named() -> None:
    with Sandbox() as box:
        box.add_nodes(1)
        box.start_scheduler()
        slow = {"mooring.dev/startup": "90s"}
        box.apply(pod("quick"), pod("slow", annotations=slow))
        box.wait_until_bound()
        assert box.loop.time() < 1
        box.wait_until_running()
        assert 90 <= box.loop.time() < 91


def test_deletes_gracefully() -> None:
    with Sandbox() as box:
        box.add_nodes(1)
        box.start_scheduler()
        box.apply(pod("p", annotations={"mooring.dev/stop": "5s"}))
        box.wait_until_running()
        box.delete("pod", "p")
        box.advance(4)
        assert box.pods() == ["p"]
        box.advance(2)
        assert box.pods() == []
        with pytest.raises(NotFound):
            box.get("pod", "p")
        with pytest.raises(KeyError, match="no pod p"):
            box.node_of("p")


def test_shows_events_as_they_happened() -> None:
    with Sandbox() as box:
        box.add_nodes(1)
        box.start_scheduler()
        box.apply(pod("p"))
        box.wait_until_running()
        assert box.events("p") == [
            SeenEvent(
                about="Pod default/p",
                type="Normal",
                reason="Scheduled",
                message="Successfully assigned default/p to node-0",
                source="default-scheduler",
            )
        ]


def test_knows_no_such_kind() -> None:
    with Sandbox() as box, pytest.raises(LookupError, match="expected the name of a resource"):
        box.all("spaceships")
