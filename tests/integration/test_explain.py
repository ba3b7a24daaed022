"""`mooring explain` of pods that the real kube-scheduler has pending: ten stories.

It names the reasons of kube-scheduler's Event and offers a remedy; made with kubectl, that remedy
lets kube-scheduler bind the pod. The user may only read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.controlplane.admin import Object
from tests.controlplane.objects import node, pod, priority_class
from tests.controlplane.plane import Plane
from tests.controlplane.users import User
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import condition, wait_for_condition, wait_until_bound

import mooring.cli.sources as sources
from mooring.cli import main
from mooring.client.http import HttpTransport
from mooring.lens.explanation import Explanation, ObjectPatch, Remedy

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
READ_ALL = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]


class Story(NamedTuple):
    """A pending pod, what is in its way, and the remedy to make."""

    name: str
    nodes: list[Object]
    pods: list[Object]
    pending: Object
    remedy: str  # the text that it contains
    kind: str = "waits for room"


def ports(number: int, ip: str = "") -> dict[str, Any]:
    port = {"containerPort": 80, "hostPort": number, **({"hostIP": ip} if ip else {})}
    return {"containers": [{"name": "main", "image": "pause", "ports": [port]}]}


def stories(namespace: str) -> Iterable[Story]:
    def one(name: str, **options: Any) -> Object:
        return pod(name, namespace=namespace, **options)

    web = {"app": "web"}
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": web},
    }
    apart = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOST}
    db: dict[str, Any] = {
        "labels": {"app": "db"},
        "spec": {"affinity": {"podAntiAffinity": {REQUIRED: [apart]}}},
    }
    near = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": ZONE}
    yield Story(
        "shortage",
        [node("a")],
        [one("full", cpu="3", node="a")],
        one("p", cpu="2"),
        "ask for 1 cpu",
    )
    yield Story(
        "no room",
        [node("a")],
        [one("full", cpu="3", node="a")],
        one("p", cpu="2"),
        "free 1 cpu on a",
    )
    yield Story(
        "taint",
        [node("a", taints=["pool=gpu:NoSchedule"])],
        [],
        one("p"),
        "tolerate pool=gpu:NoSchedule",
        "misconfigured",
    )
    yield Story(
        "cordon", [node("a", unschedulable=True)], [], one("p"), "uncordon", "waits for others"
    )
    yield Story(
        "typo",
        [node("a", labels={"disk": "ssd"})],
        [],
        one("p", node_selector={"disk": "sdd"}),
        "change nodeSelector disk from sdd to ssd",
        "misconfigured",
    )
    yield Story(
        "label",
        [node("a", labels={"disk": "ssd"})],
        [],
        one("p", node_selector={"disk": "nvme"}),
        "label a disk=nvme",
        "misconfigured",
    )
    yield Story(
        "spread",
        [node("a", zone="a"), node("b", zone="b", cpu="1")],
        [
            one("w1", labels=web, node="a"),
            one("w2", labels=web, node="a"),
            one("w3", labels=web, cpu="1", node="b"),
        ],
        one("p", labels=web, cpu="1", spec={"topologySpreadConstraints": [spread]}),
        "raise maxSkew",
    )
    yield Story(
        "anti-affinity", [node("a")], [one("db-1", node="a", **db)], one("p", **db), "db-1 ends"
    )
    yield Story(
        "port",
        [node("a")],
        [one("ingress", node="a", spec=ports(8080, "10.0.0.1"))],
        one("p", spec=ports(8080)),
        "bind 8080 to another address",
    )
    yield Story(
        "affinity",
        [node("a", zone="a")],
        [],
        one("p", spec={"affinity": {"podAffinity": {REQUIRED: [near]}}}),
        "prefer its affinity to pods",
        "waits for others",
    )


def explain(capsys: pytest.CaptureFixture[str], config: str, name: str) -> Explanation:
    capsys.readouterr()
    code = main(["explain", name, "--kubeconfig", config, "-o", "json"])
    said = capsys.readouterr()
    assert code == 3, said.err
    return msgspec.json.decode(said.out, type=Explanation)


def merge(plane: Plane, patch: ObjectPatch, namespace: str, pending: Object) -> None:
    """Make one change with kubectl."""
    if patch.kind == "Node":
        plane.kubectl("patch", "node", patch.name, "--type=merge", "-p", json.dumps(patch.patch))
    elif patch.patch is None:
        plane.kubectl("delete", "pod", patch.name, "-n", namespace, "--grace-period=0", "--force")
    else:  # most of a pod's spec can't be changed: it is made anew
        plane.kubectl("delete", "pod", patch.name, "-n", namespace, "--grace-period=0", "--force")
        manifest = merged(pending, patch.patch)
        plane.kubectl("create", "-f", "-", stdin=json.dumps(manifest))


def merged(value: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    found = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        found[key] = merged(found.get(key), change)
    return {key: known for key, known in found.items() if known is not None}


def wait_until_told(plane: Plane, namespace: str, message: str) -> None:
    """Until kube-scheduler says it: at its first attempt it may not have seen the nodes yet."""
    wait_until(
        lambda: (
            condition(plane.admin.get("Pod", "p", namespace), "PodScheduled")["message"] == message
        ),
        what=f"kube-scheduler says: {message}",
    )


def reader(plane: Plane) -> User:
    user = plane.add_user("reader")
    plane.grant(user, READ_ALL)
    return user


def test_ten_stories(
    control_plane: Plane, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = control_plane.admin
    config = str(control_plane.kubeconfig_for(reader(control_plane)))
    control_plane.kube_scheduler()
    told = list(stories(namespace))
    assert len(told) == 10
    for story in told:
        admin.create_many(story.nodes)
        admin.create_many(story.pods)
        admin.create(story.pending)
        wait_for_condition(control_plane, namespace, "p", "PodScheduled", "Unschedulable")
        found = explain(capsys, config, f"{namespace}/p")
        wait_until_told(control_plane, namespace, found.message)
        assert found.kind == story.kind, story.name
        assert found.remedies is not None
        remedy: Remedy = next(one for one in found.remedies if story.remedy in one.text)
        # What the API server has stored has defaults that a manifest need not have.
        stored = admin.get("Pod", "p", namespace)
        clean = {
            key: stored["metadata"][key]
            for key in ("name", "namespace", "labels")
            if key in stored["metadata"]
        }
        pending = {**stored, "metadata": clean, "status": {}}
        for edit in remedy.edits:
            for patch in edit.patches:
                merge(control_plane, patch, namespace, pending)
        placed = wait_until_bound(control_plane, namespace, "p")["p"]
        assert placed in remedy.examples, story.name
        admin.delete_all("Pod", namespace, gracePeriodSeconds="0")
        admin.delete_all("Node")
        wait_until(lambda: not admin.list("Node"), what="the nodes are gone")
        wait_until(lambda: not admin.list("Pod", namespace), what="the pods are gone")


def test_only_reads(
    control_plane: Plane,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    methods: list[str] = []

    class Counted(HttpTransport):
        async def send(self, request: Any, *more: Any) -> Any:
            methods.append(request.method)
            return await super().send(request, *more)

    monkeypatch.setattr(sources, "HttpTransport", Counted)
    admin = control_plane.admin
    admin.create(priority_class("vip", 1000))
    admin.create(node("a"))
    admin.create(pod("low", namespace=namespace, cpu="3", node="a"))
    admin.create(pod("p", namespace=namespace, cpu="3", priority_class="vip"))
    config = str(control_plane.kubeconfig_for(control_plane.admin_user))
    found = explain(capsys, config, f"{namespace}/p")
    assert found.preemption is not None
    assert found.preemption.helps
    assert found.remedies
    assert set(methods) == {"GET"}
    assert len(methods) >= 10
