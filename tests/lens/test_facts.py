"""What plugins say beyond a refusal: ours all do, others may, and a failure ends nothing."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import structs
from rich.console import Console
from tests.lens.clusters import cluster_of, explained, texts

import mooring.framework as fw
from mooring import config as cfg
from mooring.api import codec, core
from mooring.api.volumes import PersistentVolumeClaim
from mooring.framework.plugin import Base
from mooring.lens.explainer import Explainer
from mooring.lens.explanation import Explanation
from mooring.lens.rendering import show
from mooring.lens.snapshot import MissingKind, QueuedState, Snapshot
from mooring.queue.hints import DeclinedHint
from mooring.runtime.registry import Registry
from mooring.testing import node, pod

# Of those that can refuse a pod this one has nothing to add: it refuses none.
SAY_NO_MORE = {"DefaultPreemption"}


def test_all_of_our_plugins_that_refuse_pods_can_say_more() -> None:
    registry = Registry.discover()
    silent = set()
    for name in registry.names:
        plugin = registry.get(name)
        if not plugin.__module__.startswith("mooring.plugins"):
            continue
        if issubclass(plugin, fw.Filter | fw.PreFilter | fw.PreEnqueue) and (
            plugin.facts is Base.facts or plugin.remedies is Base.remedies
        ):
            silent.add(name)
    assert silent == SAY_NO_MORE


class Rack(fw.Filter):
    """Only nodes of the pod's rack."""

    name = "Rack"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if node.labels.get("rack") == pod.labels.get("rack"):
            return fw.OK
        return fw.Status.unresolvable("node(s) were in another rack")

    def facts(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes, status: fw.Status
    ) -> Iterable[fw.Fact]:
        yield fw.Fact(text=f"rack {pod.labels.get('rack')} is not theirs", node=nodes.names[-1])

    def remedies(
        self, state: fw.CycleState, pod: fw.Pod, node: fw.Node | None, status: fw.Status
    ) -> Iterable[fw.Edit]:
        assert node is not None
        rack = node.labels["rack"]

        def to(pod: core.Pod) -> core.Pod:
            labels = type(pod.metadata.labels)({**pod.metadata.labels, "rack": rack})
            return structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))

        yield fw.Edit.of_pod(f"label the pod rack={rack}", to, family="rack")


class Broken(Rack):
    name = "Broken"

    def facts(self, *args: Any) -> Iterable[fw.Fact]:
        raise KeyError("rack")

    def remedies(self, *args: Any) -> Iterable[fw.Edit]:
        return ["relabel it"]  # type: ignore[list-item]  # as authors may


def explained_with(plugin: type[Base], wanted: fw.Pod, nodes: list[fw.Node]) -> Explanation:
    text = f"""
apiVersion: {cfg.API_VERSION}
kind: {cfg.KIND}
profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: {plugin.name}}}]}}}}}}]
"""
    snapshot = Snapshot(cluster=cluster_of(nodes, [wanted]))
    registry = Registry.discover([plugin])
    return Explainer(snapshot, cfg.load_text(text), registry).explain(wanted.api)


def test_a_plugin_of_a_user_explains_itself() -> None:
    nodes = [node("a", labels={"rack": "1"}), node("b", labels={"rack": "2"})]
    found = explained_with(Rack, pod("p", labels={"rack": "3"}), nodes)
    assert found.kind == "misconfigured"
    (group,) = found.groups
    assert group.said is not None
    assert [fact.text for fact in group.said.facts] == ["rack 3 is not theirs"]
    assert texts(found)[0] == "label the pod rack=2"


def test_a_plugin_that_fails_to_explain_itself_ends_nothing() -> None:
    found = explained_with(Broken, pod("p", labels={"rack": "3"}), [node("a")])
    (group,) = found.groups
    assert group.said is not None
    assert (group.said.reasons, group.said.facts) == (("node(s) were in another rack",), ())
    assert found.remedies == ()
    assert any("Broken could not say more" in note and "rack" in note for note in found.notes)
    assert any("Broken said 'relabel it', expected a Edit" in note for note in found.notes)


def claim(name: str, **spec: Any) -> PersistentVolumeClaim:
    raw = {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    return codec.convert(raw, PersistentVolumeClaim)


def with_claim(name: str) -> fw.Pod:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": name}}
    return pod("p", spec={"volumes": [volume]})


def test_a_claim_that_waits_for_its_volume() -> None:
    found = explained(with_claim("data"), [node("a")], objects=[claim("data")])
    assert found.kind == "waits for others"
    assert found.before is not None
    assert [fact.text for fact in found.before.facts] == ["claim default/data is not bound"]
    assert texts(found) == ["claim default/data is bound"]
    missing = explained(with_claim("data"), [node("a")])
    assert missing.kind == "misconfigured"
    assert texts(missing) == ["claim default/data is created and bound"]


@pytest.mark.parametrize(
    ("wanted", "is_told"), [(with_claim("data"), True), (pod("p", cpu=9), False)]
)
def test_a_kind_that_was_not_read_is_named_where_it_matters(wanted: fw.Pod, is_told: bool) -> None:
    snapshot = Snapshot(
        cluster=cluster_of([node("a")], [wanted]),
        missing=(MissingKind("persistentvolumeclaims", "forbidden"),),
    )
    found = Explainer(snapshot).explain(wanted.api)
    about = [note for note in found.notes if note.startswith("persistentvolumeclaims")]
    assert bool(about) == is_told
    assert found.exactness == ("partial" if is_told else "now")


def test_sampling_is_named_where_a_scheduler_may_not_have_seen_the_best() -> None:
    wanted = pod("p", cpu=1)
    nodes = [node(f"n{i:03}") for i in range(300)]
    found = Explainer(Snapshot(cluster=cluster_of(nodes, [wanted]))).explain(wanted.api)
    assert any("144 feasible nodes and no more" in note for note in found.notes)
    few = Explainer(Snapshot(cluster=cluster_of(nodes[:99], [wanted]))).explain(wanted.api)
    assert few.notes == ()


def test_what_the_queue_knew_is_told() -> None:
    wanted = pod("p", cpu=9, uid="u-1")
    queued = QueuedState(uid="u-1", queue="unschedulable", attempts=4, added_at=1_000.0)
    snapshot = Snapshot(cluster=cluster_of([node("a")], [wanted]), queue=(queued,))
    found = Explainer(snapshot).explain(wanted.api)
    assert found.queue == queued
    assert "a pod ends" in found.wakes_on


def test_pods_that_ask_for_several_things_are_told_each_shortage() -> None:
    wanted = pod("p", requests={"cpu": 2, "memory": "8Gi", "example.com/gpu": 2})
    nodes = [node("a", cpu=1, memory="4Gi", resources={"example.com/gpu": 1})]
    found = explained(wanted, nodes)
    (group,) = found.groups
    assert group.said is not None
    assert [fact.resource for fact in group.said.facts] == ["cpu", "memory", "example.com/gpu"]
    assert texts(found)[0] == (
        "ask for 1 cpu or less and ask for 4Gi memory or less and ask for 1 example.com/gpu or less"
    )


def test_lower_requests_are_taken_from_the_containers() -> None:
    wanted = pod("p", images=["x", "y"], cpu=3)
    found = explained(wanted, [node("a", cpu=2)])
    assert found.remedies is not None
    patch = found.remedies[0].edits[0].patches[0].patch
    assert patch is not None
    requests = [one["resources"] for one in patch["spec"]["containers"]]
    assert requests[0]["requests"]["cpu"] == "2"


def shown(found: Explanation, now: float) -> str:
    console = Console(width=80, file=io.StringIO())
    show(found, console, now)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_pod_that_is_held_at_permit_waits_for_others() -> None:
    wanted = pod("p", cpu=1, uid="u-1")
    queued = QueuedState(uid="u-1", queue="waiting at Permit", plugins=("Gang",), node="a")
    snapshot = Snapshot(cluster=cluster_of([node("a")], [wanted]), queue=(queued,))
    found = Explainer(snapshot).explain(wanted.api)
    assert found.kind == "waits for others"
    assert found.summary == "default/p waits at Permit for a: held by Gang"


def test_the_place_in_the_queue_is_printed() -> None:
    wanted = pod("p", cpu=9, uid="u-1")
    queued = QueuedState(
        uid="u-1",
        queue="unschedulable",
        attempts=4,
        added_at=1_000.0,
        retry_at=1_400.0,
        declined=(DeclinedHint("NodeResourcesFit", "PodDelete", 2, 1_300.0, "x/y"),),
    )
    snapshot = Snapshot(cluster=cluster_of([node("a")], [wanted]), queue=(queued,))
    text = shown(Explainer(snapshot).explain(wanted.api), 1_372.0)
    assert text.startswith("default/p is pending: no node of 1 (4 attempts, 6m12s) [misconfigured]")
    queue = " ".join(text[text.index("In the queue") :].split())
    assert queue.startswith(
        "In the queue: unschedulable, since 6m12s, tried again in 28s at the latest."
        " Events since that do not help it: PodDelete (NodeResourcesFit)."
    )
