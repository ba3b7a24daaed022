"""Twelve questions that people ask about one pod, and the answers they should get."""

from __future__ import annotations

from typing import Any

from tests.lens.clusters import explained, remedy, texts

from mooring.api import codec
from mooring.api.policy import PodDisruptionBudget
from mooring.cache.pods import Pod
from mooring.lens.explanation import Explanation, NodeGroup
from mooring.testing import node, pod

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def group_with(found: Explanation, name: str) -> NodeGroup:
    return next(group for group in found.groups if name in group.examples)


def test_1_shortage() -> None:
    nodes = [node("a", cpu=4), node("b", cpu=4), node("c", cpu=8)]
    used = [pod("ua", cpu=3, on="a"), pod("ub", cpu="3500m", on="b"), pod("uc", cpu=8, on="c")]
    found = explained(pod("web", cpu=2), nodes, used, ask=["a", "b", "c"])
    (group,) = found.groups
    assert (found.kind, group.nodes, group.also) == ("waits for room", 3, ())
    assert group.said is not None
    assert (group.said.plugin, group.said.reasons) == ("NodeResourcesFit", ("Insufficient cpu",))
    (fact,) = group.said.facts
    assert fact.missing is not None
    assert (fact.missing.least, fact.missing.most, fact.offers) == ("1", "2", "1")
    assert fact.text == "asks 2 cpu, none of these offers more than 1; short by 1 to 2"
    short = [answer.refusals[0].facts[0].missing for answer in found.asked]
    assert [span.least for span in short if span is not None] == ["1", "1500m", "2"]
    on_b = found.asked[1].refusals[0].facts[0].text
    assert on_b == "asks 2 cpu, offers 0.5: short by 1.5"
    assert texts(found) == [
        "ask for 1 cpu or less",
        "free 1 cpu on a, e.g. move default/ua",
        "add a node like a",
    ]
    assert remedy(found, "ask for").examples == ("a",)
    assert found.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")


def test_2_a_taint_hides_more() -> None:
    nodes = [node("a", cpu=4, taints=["team=ml:NoSchedule"]), node("b", cpu=2)]
    used = [pod("ua", cpu=3, on="a"), pod("ub", cpu="1500m", on="b")]
    found = explained(pod("web", cpu=2), nodes, used)
    group = group_with(found, "a")
    assert group.said is not None
    assert group.said.plugin == "TaintToleration"
    (also,) = group.also
    assert also.plugin == "NodeResourcesFit"
    assert also.facts[0].missing is not None
    assert also.facts[0].missing.least == "1"
    assert found.remedies is not None
    alone = [one.text for one in found.remedies if len(one.edits) == 1]
    assert not any("team=ml" in text for text in alone)
    assert any(text.startswith("free 1500m cpu on b") for text in alone)
    both = [
        {edit.text.partition(",")[0] for edit in one.edits}
        for one in found.remedies
        if len(one.edits) == 2
    ]
    assert {"remove team=ml:NoSchedule from a", "free 1 cpu on a"} in both


def test_3_skew_or_room() -> None:
    labels = {"app": "s"}
    nodes = [node("a1", zone="a"), node("b1", zone="b")]
    pods = [pod(f"s{i}", cpu="100m", labels=labels, on="a1") for i in (1, 2)]
    pods += [pod("s3", cpu="100m", labels=labels, on="b1"), pod("other", cpu="3400m", on="b1")]
    found = explained(pod("s4", cpu=1, labels=labels, spread={"zone": 1}), nodes, pods)
    spread = group_with(found, "a1").said
    assert spread is not None
    assert spread.plugin == "PodTopologySpread"
    assert dict(spread.facts[0].counts) == {"a": 2, "b": 1}
    short = group_with(found, "b1").said
    assert short is not None
    assert short.facts[0].missing is not None
    assert short.facts[0].missing.least == "500m"
    assert remedy(found, f"raise maxSkew of {ZONE} to 2").examples == ("a1",)
    assert remedy(found, "ask for 500m cpu or less").examples == ("b1",)
    assert remedy(found, "free 500m cpu on b1").examples == ("b1",)


def test_4_repelled_both_ways() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOST}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    options: dict[str, Any] = {
        "labels": {"app": "db"},
        "affinity": {"podAntiAffinity": {required: [term]}},
    }
    pods = [pod(f"db-{i}", on=f"n{i}", **options) for i in (1, 2, 3)]
    found = explained(pod("db-4", **options), [node(f"n{i}") for i in (1, 2, 3)], pods)
    (group,) = found.groups
    assert group.said is not None
    for fact in group.said.facts:  # its own term, and theirs
        assert fact.pods == ("default/db-1", "default/db-2", "default/db-3")
    assert texts(found) == ["default/db-1 ends or moves away", "add a node like n1"]


def test_5_why_a() -> None:
    nodes = [node("a", memory="8Gi"), node("b", memory="8Gi")]
    used = [pod("ua", cpu=2, memory="1Gi", on="a"), pod("ub", cpu=1, memory="4Gi", on="b")]
    choice = explained(pod("web", cpu=1, memory="1Gi"), nodes, used).choice
    assert choice is not None
    assert (choice.node, choice.total, choice.runner_up, choice.margin) == ("a", 422, "b", 1)
    assert [score.total for score in choice.nodes] == [422, 421]
    points = {one.plugin: (one.best, one.runner_up) for one in choice.difference}
    assert points["NodeResourcesFit"] == (50, 43)
    assert points["NodeResourcesBalancedAllocation"] == (72, 78)
    assert points["TaintToleration"] == (300, 300)
    assert choice.flip is not None
    assert (choice.flip.plugin, choice.flip.to, choice.flip.node) == (
        "NodeResourcesBalancedAllocation",
        2,
        "b",
    )


def test_6_tie() -> None:
    choice = explained(pod("web", cpu=1), [node("a"), node("b"), node("c")]).choice
    assert choice is not None
    assert [(score.node, score.total) for score in choice.nodes] == [
        ("a", 454),
        ("b", 454),
        ("c", 454),
    ]
    assert (choice.node, choice.tied, choice.margin) == ("a", 3, 0)
    assert (choice.ties, choice.tie_break) == (("a", "b", "c"), "by listing order")
    assert choice.flip is None


def vip(**more: Any) -> Pod:
    return pod("vip", cpu=3, priority=100, **more)


def test_7_whom_to_evict() -> None:
    nodes = [node("a"), node("b")]
    low = [pod(name, cpu=2, priority=1, labels={"low": ""}, on="a") for name in ("low1", "low2")]
    mid, tiny = pod("mid", cpu=3, priority=5, on="b"), pod("tiny", cpu=1, priority=0, on="b")
    found = explained(vip(), nodes, [*low, mid, tiny]).preemption
    assert found is not None
    victims = {one.node: one.victims for one in found.candidates}
    assert victims == {"a": ("default/low1", "default/low2"), "b": ("default/mid",)}
    assert (found.node, found.decided_by) == ("a", "highest priority of a victim: 1 against 5")

    never = explained(vip(spec={"preemptionPolicy": "Never"}), nodes, [*low, mid, tiny]).preemption
    assert never is not None
    assert not never.helps
    assert "preemptionPolicy=Never" in never.message

    raw = {
        "metadata": {"name": "low", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"low": ""}}},
        "status": {"disruptionsAllowed": 0},
    }
    budget = codec.convert(raw, PodDisruptionBudget)
    mid = pod("mid", cpu=4, priority=5, on="b")
    spared = explained(vip(), nodes, [*low, mid], [budget]).preemption
    assert spared is not None
    violations = {one.node: one.pdb_violations for one in spared.candidates}
    assert (spared.node, violations) == ("b", {"b": 0, "a": 2})
    assert spared.decided_by == "violations of disruption budgets: 0 against 2"


def test_8_gated() -> None:
    gated = pod("web", cpu=1, gates=["example.com/quota"])
    found = explained(gated, [node("a"), node("b")])
    assert found.kind == "gated"
    assert "example.com/quota" in found.summary
    assert found.summary.endswith("would fit 2 of 2 nodes once open")
    assert texts(found) == ["remove the scheduling gate example.com/quota"]
    full = explained(gated, [node("a", cpu="500m")])
    assert (full.kind, full.feasible) == ("gated", 0)
    assert full.summary.endswith("would fit no node of 1 once open either")
    assert texts(full)[0] == (
        "remove the scheduling gate example.com/quota and ask for 500m cpu or less"
    )


def test_9_typo() -> None:
    nodes = [node(name, labels={"disktype": "ssd"}) for name in "ab"]
    nodes.append(node("c", labels={"disktype": "hdd"}))
    found = explained(pod("web", node_selector={"disktype": "sdd"}), nodes)
    assert found.kind == "misconfigured"
    assert texts(found) == ["change nodeSelector disktype from sdd to ssd", "label a disktype=sdd"]
    assert remedy(found, "change").examples == ("a", "b")


def test_10_no_node_offers_it() -> None:
    found = explained(
        pod("train", requests={"example.com/gpu": 1}),
        [node("a"), node("b")],
        [pod("busy", cpu=4, on="a")],
    )
    assert found.kind == "misconfigured"
    (group,) = found.groups
    assert group.said is not None
    assert group.said.facts[0].text == "no node offers example.com/gpu"
    assert found.preemption is not None
    assert not found.preemption.helps
    assert not any("free" in text or "move" in text for text in texts(found))


def test_11_port() -> None:
    holders = [pod("ing-a", ports=[8080], on="a"), pod("ing-b", ports=["10.0.0.1:8080"], on="b")]
    found = explained(pod("web", ports=[8080]), [node("a"), node("b")], holders)
    (group,) = found.groups
    assert group.said is not None
    assert group.said.facts[0].pods == ("default/ing-a", "default/ing-b")
    first = found.remedies[0] if found.remedies else None
    assert first is not None
    assert first.text.startswith("bind 8080 to another address than 10.0.0.1")
    assert (first.nodes, first.examples) == (1, ("b",))


def test_12_claim() -> None:
    waiting = pod("vip", cpu=3, priority=100, nominated="a")
    found = explained(pod("web", cpu=2, priority=0), [node("a")], [waiting])
    assert found.kind == "waits for others"
    (group,) = found.groups
    assert group.said is not None
    assert group.said.beside == ("default/vip",)
    assert group.said.facts[0].text == ("the claim of default/vip on a, 3 cpu, leaves 1; asks 2")
    assert texts(found)[:2] == ["ask for 1 cpu or less", "a priority above 100"]
