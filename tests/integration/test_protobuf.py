"""The real API server says the same in protobuf as in JSON, and both are read the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from tests.controlplane.admin import STRATEGIC_PATCH
from tests.controlplane.objects import node, pod
from tests.controlplane.plane import Plane
from tests.integration.test_exotic_objects import exotic_node, exotic_pod

from mooring.api import codec, core, protobuf
from mooring.client._decoding import Reader
from mooring.client._events import BOOKMARK, Events, JsonEvents, ProtobufEvents

NOW = "2026-11-17T10:11:12Z"


def kubelet_status() -> dict[str, Any]:
    """What a kubelet reports of a running pod."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    granted = {"requests": {"cpu": "250m", "memory": "100M"}, "limits": {"cpu": "1"}}
    return {
        "phase": "Running",
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "podIPs": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}],
        "startTime": NOW,
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
            for kind in kinds
        ],
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "started": True,
                "restartCount": 3,
                "image": "registry.example/pause:3",
                "imageID": "sha256:1",
                "containerID": "containerd://1",
                "state": {"running": {"startedAt": NOW}},
                "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                "resources": granted,
                "allocatedResources": granted["requests"],
            }
        ],
    }


def test_the_real_server_s_pods_and_nodes_are_read_the_same(
    control_plane: Plane, namespace: str
) -> None:
    admin = control_plane.admin
    in_protobuf = control_plane.api_for()
    in_protobuf._headers["Accept"] = protobuf.MEDIA_TYPE
    admin.create_many([exotic_node(), node("plain", cpu="8"), {**node("bare"), "status": {}}])
    running = [pod(f"running-{i}", namespace=namespace) for i in range(4)]
    for number, value in enumerate(running):
        value["spec"]["nodeName"] = ("plain", "bare", "exotic", "gone")[number]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "1"}
    running[0]["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    admin.create_many([exotic_pod(namespace), pod("pending", namespace=namespace), *running])
    for value in running:
        admin.patch(
            "Pod",
            value["metadata"]["name"],
            {"status": kubelet_status()},
            namespace,
            subresource="status",
            content_type=STRATEGIC_PATCH,
        )
    admin.delete("Pod", "running-3", namespace, grace=600)  # terminating: no kubelet ends it
    query = "/api/v1/pods"
    expected = msgspec.json.decode(admin.text("GET", query))
    found = protobuf.read_list(in_protobuf.text("GET", query))
    assert len(found.items) == len(expected["items"]) > 2
    for item, value in zip(found.items, expected["items"], strict=True):
        assert protobuf.decode(item, core.Pod) == codec.convert(value, core.Pod)
    page = protobuf.read_list(in_protobuf.text("GET", f"{query}?limit=1"))
    assert page.continue_
    assert page.resource_version == found.resource_version


def test_the_real_server_s_events_are_read_the_same(control_plane: Plane, namespace: str) -> None:
    admin = control_plane.admin
    query = f"/api/v1/namespaces/{namespace}/pods"
    version = json.loads(admin.text("GET", query))["metadata"]["resourceVersion"]
    admin.create_many([exotic_pod(namespace), pod("plain", namespace=namespace)])
    admin.bind(namespace, "plain", "n")
    admin.patch("Pod", "plain", {"status": kubelet_status()}, namespace, subresource="status")
    admin.delete("Pod", "plain", namespace)
    query += "?watch=true&timeoutSeconds=1&resourceVersion="
    as_json, as_protobuf = both_forms(control_plane, query + version)
    types = [type_ for type_, _ in as_json]
    assert types[:2] == ["ADDED", "ADDED"]
    assert types.count("MODIFIED") >= 2
    assert types[-1] == "DELETED"
    assert as_protobuf == as_json


def test_the_real_server_s_bookmarks_are_read_the_same(
    control_plane: Plane, namespace: str
) -> None:
    control_plane.admin.create(pod("p", namespace=namespace))
    query = f"/api/v1/namespaces/{namespace}/pods?watch=true&timeoutSeconds=1"
    query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    for form in both_forms(control_plane, query):
        (_, known), (type_, version) = form
        assert type_ == BOOKMARK
        assert int(version) >= int(known.metadata.resource_version)


def both_forms(control_plane: Plane, query: str) -> list[list[tuple[str, Any]]]:
    """The events of a watch that the server ends, as they are read in JSON and in protobuf."""
    in_protobuf = control_plane.api_for()
    in_protobuf._headers["Accept"] = f"{protobuf.MEDIA_TYPE}, application/json"
    return [
        list(told(JsonEvents(Reader(core.Pod)), control_plane.admin.text("GET", query))),
        list(told(ProtobufEvents(Reader(core.Pod)), in_protobuf.text("GET", query))),
    ]


def told(events: Events[core.Pod], body: bytes) -> Iterator[tuple[str, Any]]:
    for event in events.feed(body):
        type_, encoded = events.read(event)
        if type_ == BOOKMARK:
            yield type_, events.version(encoded)
        else:
            value, is_whole = events.decode(encoded)
            assert is_whole
            yield type_, value
