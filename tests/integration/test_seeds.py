"""The schedulers that people write first, run from outside the cluster as they run theirs."""

from __future__ import annotations

import re
import time
from collections import Counter

import pytest
from tests.controlplane.fixtures import on_both
from tests.controlplane.invariants import binds
from tests.controlplane.objects import node, pod
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import (
    seconds,
    wait_for_condition,
    wait_for_event,
    wait_until_bound,
)
from tests.integration.mooring_process import ROOT, scheduler_user, start_mooring

EXAMPLES = ROOT / "examples"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane:NoSchedule"

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: test-scheduler
spec:
  replicas: 10
  selector:
    matchLabels:
      app: test-scheduler
  template:
    metadata:
      labels:
        app: test-scheduler
    spec:
      schedulerName: sample-scheduler
      containers:
        - image: registry.example/busybox
          name: busybox-try
          command: ["sleep"]
          args: ["infinity"]
"""
BY_NAME = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: sample-scheduler
  plugins:
    score:
      enabled:
        - name: "tonodename-scoring-plugin"
"""
BUSYBOX = """
apiVersion: v1
kind: Pod
metadata:
  name: busybox-test-scheduler
  namespace: default
spec:
  schedulerName: namescore-scheduler
  containers:
  - name: busybox
    image: registry.example/busybox:1.35.0
    command:
      - sleep
      - "3600"
    imagePullPolicy: IfNotPresent
  restartPolicy: Always
"""


@pytest.mark.parametrize(
    ("control_plane", "known_by"),
    [("real", "path"), ("real", "flag"), ("embedded", "flag")],
    indirect=["control_plane"],
)
def test_ten_replicas_prefer_the_node_that_the_plugin_names(
    control_plane: Plane, known_by: str
) -> None:
    folder = EXAMPLES / "tonodename_scoring"
    if known_by == "path":
        start_mooring(control_plane, config=folder / "config.yaml")
    else:
        config = control_plane.folder / "by-name.yaml"
        config.write_text(BY_NAME)
        flags = ("--plugin", "tonodename_scoring:ToNodeName", "--v=3")
        start_mooring(control_plane, config=config, flags=flags, env={"PYTHONPATH": str(folder)})
    control_plane.admin.create(node("master", taints=[CONTROL_PLANE]))
    control_plane.admin.create_many(node(f"piworknode00{number}") for number in (1, 2, 3))
    replicas = create_deployment(control_plane)

    placed = wait_until_bound(control_plane, "default")
    assert set(placed) == set(replicas)
    assert placed[replicas[0]] == "piworknode001"
    assert set(placed.values()) <= {"piworknode001", "piworknode002", "piworknode003"}
    assert Counter(placed.values()).most_common(1)[0][0] == "piworknode001"
    assert shown_by_get(control_plane) == placed
    assert {bind.user for bind in binds(control_plane, "default")} == {"scheduler"}
    for name, where in placed.items():
        said = wait_for_event(control_plane, "default", name, "Scheduled")["note"]
        assert said == f"Successfully assigned default/{name} to {where}"
    first = replicas[0]
    described = control_plane.kubectl("describe", "pod", first)
    assert re.search(rf"Successfully assigned default/{first} to piworknode001", described)
    assert re.search(r"Scheduled\s+\S+\s+sample-scheduler\s+Successfully", described)


@on_both
def test_pod_goes_to_the_node_whose_name_scores_highest(control_plane: Plane) -> None:
    user = scheduler_user(control_plane, lease="namescore-scheduler")
    started = start_mooring(control_plane, user=user, config=EXAMPLES / "namescore" / "config.yaml")
    names = ("k8s-master", "k8s-node01", "k8s-node02")
    control_plane.admin.create_many(node(name) for name in names)
    control_plane.apply(BUSYBOX)

    placed = wait_until_bound(control_plane, "default")
    assert placed == {"busybox-test-scheduler": "k8s-node02"}
    assert shown_by_get(control_plane) == placed
    wait_for_event(control_plane, "default", "busybox-test-scheduler", "Scheduled")
    described = control_plane.kubectl("describe", "pod", "busybox-test-scheduler")
    wanted = "Successfully assigned default/busybox-test-scheduler to k8s-node02"
    assert wanted in described
    counted = 'node="k8s-node02" evaluatedNodes=3 feasibleNodes=3'
    assert f'pod="default/busybox-test-scheduler" {counted}' in started.log
    lease = control_plane.admin.get(
        "coordination.k8s.io/v1/Lease", "namescore-scheduler", "kube-system"
    )
    assert lease["spec"]["holderIdentity"]


@on_both
def test_impossible_pod_says_why_and_is_bound_as_soon_as_a_node_fits(
    control_plane: Plane, namespace: str
) -> None:
    control_plane.admin.create(node("master", taints=[CONTROL_PLANE]))
    control_plane.admin.create_many(node(f"piworknode00{number}") for number in (1, 2, 3))
    start_mooring(control_plane, config=EXAMPLES / "tonodename_scoring" / "config.yaml")
    control_plane.admin.create(
        pod("huge", namespace=namespace, scheduler="sample-scheduler", cpu="64")
    )
    why = "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu."
    told = wait_for_event(control_plane, namespace, "huge", "FailedScheduling")
    assert told["note"].startswith(why)
    assert (told["type"], told["reportingController"]) == ("Warning", "sample-scheduler")
    known = wait_for_condition(control_plane, namespace, "huge", "PodScheduled", "Unschedulable")
    assert known["status"] == "False"
    assert known["message"].startswith(why)
    described = control_plane.kubectl("describe", "pod", "huge", "-n", namespace)
    assert why in described

    # Its backoff of a second is over: what is measured is how fast the news of the node is.
    refused = seconds(told["eventTime"])
    wait_until(lambda: time.time() > refused + 1.5, what="the pod may be tried again")
    added = time.time()
    control_plane.admin.create(node("big", cpu="128"))
    wait_until_bound(control_plane, namespace, "huge")
    event = wait_for_event(control_plane, namespace, "huge", "Scheduled")
    assert event["note"] == f"Successfully assigned {namespace}/huge to big"
    took = seconds(event["eventTime"]) - added
    print(f"bound {took * 1000:.0f} ms after a node that fits was added")
    assert took < 10
    pod_now = control_plane.admin.get("Pod", "huge", namespace)
    scheduled = next(c for c in pod_now["status"]["conditions"] if c["type"] == "PodScheduled")
    assert scheduled["status"] == "True"


def create_deployment(control_plane: Plane) -> list[str]:
    """Apply the Deployment, and make its pods: no controller runs here. Their names, in order."""
    control_plane.apply(DEPLOYMENT)
    admin = control_plane.admin
    made = admin.get("apps/v1/Deployment", "test-scheduler", "default")
    template = made["spec"]["template"]
    names = [
        f"test-scheduler-66454d887c-{number:05d}" for number in range(made["spec"]["replicas"])
    ]
    for name in names:
        metadata = {**template["metadata"], "name": name, "namespace": "default"}
        admin.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        )
    admin.delete("apps/v1/Deployment", "test-scheduler", "default")
    return names


def shown_by_get(control_plane: Plane) -> dict[str, str]:
    """The nodes of pods as `kubectl get pods -o wide` shows them."""
    head, *lines = control_plane.kubectl("get", "pods", "-o", "wide").splitlines()
    place = head.split(None).index("NODE")  # no column before it has a space in its name
    return {line.split()[0]: line.split()[place] for line in lines}
