"""Questions about a snapshot as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mooring.framework as fw
from mooring.api import core
from mooring.errors import ConfigError
from mooring.lens.explainer import Explainer, find_pod
from mooring.lens.explanation import ObjectPatch
from mooring.lens.reading import read_snapshot
from mooring.simulator.imagine import Run
from mooring.simulator.questions import Imagination, patched

CLUSTER = Path(__file__).parents[2] / "docs" / "howto" / "cluster.yaml"
SNAPSHOT = read_snapshot(CLUSTER)
IMAGINATION = Imagination(SNAPSHOT, "cluster.yaml")


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}


class Never(fw.Filter):
    name = "Never"
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.Status.unschedulable("never")


def asked(**question: Any) -> bytes:
    return json.dumps(question).encode()


def workload(kind: str, **spec: Any) -> str:
    """A manifest whose pods ask for one cpu."""
    template = {"metadata": {"labels": {"app": "new"}}, "spec": POD["spec"]}
    document: dict[str, Any] = {"kind": kind, "metadata": {"name": "new", "namespace": "shop"}}
    match kind:
        case "PodTemplate":
            document["template"] = template
        case "CronJob":
            document["spec"] = {"jobTemplate": {"spec": {"template": template}}, **spec}
        case _:
            document["spec"] = {"template": template, **spec}
    return json.dumps(document)


def test_every_remedy_can_be_tried_and_places_the_pod_where_it_said() -> None:
    pod = find_pod(SNAPSHOT, "shop/web")
    remedies = Explainer(SNAPSHOT).explain(pod).remedies or ()
    assert len(remedies) >= 5
    for remedy in remedies:
        patches = [
            {"kind": p.kind, "namespace": p.namespace, "name": p.name, "patch": p.patch}
            for edit in remedy.edits
            for p in edit.patches
        ]
        answer = IMAGINATION.what_if(asked(patches=patches))
        assert {one.pod: one.to for one in answer.placed}.get("shop/web") == remedy.node


def test_drains_by_pattern_and_says_what_was_done() -> None:
    answer = IMAGINATION.what_if(asked(drain=["small-*"]))
    assert answer.changes == ("drain small-1 and small-2",)
    assert {one.pod for one in answer.pending} == {"shop/api", "shop/cache", "shop/db"}


def test_adds_nodes_and_scales() -> None:
    answer = IMAGINATION.what_if(asked(addNodes=2, like="small-1"))
    assert answer.changes == ("add 2 nodes like small-1",)
    assert answer.after is not None
    assert answer.after.nodes == len(SNAPSHOT.cluster.nodes) + 2


@pytest.mark.parametrize(
    ("manifest", "pods"),
    [
        (workload("Deployment", replicas=2), {"shop/new-0", "shop/new-1"}),
        (workload("StatefulSet"), {"shop/new-0"}),
        (workload("Job", parallelism=3), {"shop/new-0", "shop/new-1", "shop/new-2"}),
        (workload("CronJob"), {"shop/new-0"}),
        (workload("Deployment", replicas=0), set()),
        (json.dumps(POD), {"default/p"}),
    ],
)
def test_applies_manifests_as_their_controllers_would(manifest: str, pods: set[str]) -> None:
    answer = IMAGINATION.what_if(asked(apply=manifest))
    assert answer.changes == ("apply manifests",)
    assert {one.pod for one in answer.placed} == pods
    assert all(one.to for one in answer.placed)


def test_places_all_pods_anew_if_it_is_asked_to() -> None:
    answer = IMAGINATION.what_if(asked(reschedule=True))
    assert answer.changes == ("all pods placed anew",)


def test_the_outcome_without_changes_is_no_difference() -> None:
    answer = IMAGINATION.what_if(b"")
    assert [answer.moved, answer.placed, answer.pending, answer.gone] == [()] * 4


def test_asks_the_plugins_of_its_base() -> None:
    plugin = "tests.simulator.test_questions:Never"
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {filter: {enabled: [{name: Never}]}}}]
"""
    alone = Imagination(SNAPSHOT, base=Run(plugins=(plugin,), config=config))
    answer = alone.what_if(asked(drain=["small-1"], addNodes=1, like="small-1"))
    assert {one.pod for one in answer.pending} == {"shop/db"}
    assert "never" in answer.pending[0].message
    assert alone.capacity(asked(pods=json.dumps(POD))).total == 0


def test_capacity_of_a_manifest() -> None:
    answer = IMAGINATION.capacity(asked(pods=json.dumps(POD)))
    assert answer.total == sum(answer.nodes.values()) == 3
    assert IMAGINATION.capacity(asked(pods=json.dumps(POD), max=2)).limited


@pytest.mark.parametrize("kind", ["Deployment", "PodTemplate", "CronJob", "DaemonSet"])
def test_capacity_of_the_template_of_a_workload(kind: str) -> None:
    answer = IMAGINATION.capacity(asked(pods=workload(kind)))
    assert answer.total == 3


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (b"[]", "the question: Expected `object`"),
        (b"{", "the question: "),
        (asked(drian=["a"]), "unknown field `drian`"),
        (asked(drain="a"), "Expected `array`"),
        (asked(drain=["nowhere"]), "nowhere"),
        (asked(addNodes=1), "like: expected the node"),
        (asked(addNodes=1, like="nowhere"), "like: there is no node nowhere"),
        (asked(scale=["web"]), "--scale: expected"),
        (asked(apply="kind: Secret\napiVersion: v1\nmetadata: {name: s}"), "kind Secret"),
        (asked(apply=workload("DaemonSet")), "a DaemonSet has pods on the nodes it chooses"),
        (asked(apply="{kind: Job, metadata: {name: j}}"), "apply: Job j: expected a template"),
        (
            asked(apply="{kind: Job, metadata: {name: j}, spec: {template: {spec: 3}}}"),
            "apply: Pod j: spec: expected object, got int",
        ),
        (asked(patches=[{"kind": "Secret", "name": "s", "patch": {}}]), "no scheduler reads"),
        (asked(patches=[{"kind": "Pod", "name": "s", "patch": None}]), "there is no Pod s"),
        (
            asked(patches=[{"kind": "Node", "name": "small-1", "patch": {"spec": 3}}]),
            "patches: Node small-1",
        ),
    ],
)
def test_a_question_that_cannot_be_is_refused(question: bytes, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        IMAGINATION.what_if(question)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (b"{}", "missing required field `pods`"),
        (asked(pods="{}"), "pods"),
        (asked(pods=""), "pods"),
        (asked(pods=workload("Secret")), "pods: expected a Pod, or a workload with a template"),
        (asked(pods=json.dumps(POD), mix=[1, 2]), "mix: expected 1 numbers above 0"),
        (asked(pods=json.dumps(POD), mix=[0]), "mix: expected 1 numbers above 0"),
    ],
)
def test_a_demand_without_pods_is_refused(question: bytes, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        IMAGINATION.capacity(question)
    assert words in str(caught.value)


def test_a_patch_leaves_the_order_and_the_others_alone() -> None:
    patch = ObjectPatch(kind="Node", name="gpu-1", patch={"spec": {"taints": None}})
    after = patched(SNAPSHOT.cluster, [patch])
    names = [one.metadata.name for one in SNAPSHOT.cluster.nodes]
    assert [one.metadata.name for one in after.nodes] == names
    changed = [
        (one, other)
        for one, other in zip(SNAPSHOT.cluster.nodes, after.nodes, strict=True)
        if one != other
    ]
    assert [one.metadata.name for one, _ in changed] == ["gpu-1"]
    assert isinstance(changed[0][1], core.Node)
    assert changed[0][1].spec.taints == ()
    assert after.pods == SNAPSHOT.cluster.pods
