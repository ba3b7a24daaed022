"""Lists of the real API server say the same in protobuf as in JSON, and are read the same."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.controlplane.admin import STRATEGIC_PATCH
from tests.controlplane.objects import node, pod
from tests.controlplane.plane import Plane
from tests.integration.test_exotic_objects import exotic_node, exotic_pod

from mooring.api import codec, core, protobuf

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
