"""What plugins that look at labels and features of nodes tell in `mooring explain`."""

from __future__ import annotations

from typing import Any

import pytest
from tests.lens.clusters import explained, remedy, texts
from tests.plugins.test_nodedeclaredfeatures import BOTH, RESTART, RULE, USERS, cluster, declaring

from mooring.lens.explanation import Explanation
from mooring.testing import node, pod


def facts(found: Explanation) -> list[str]:
    return [fact.text for group in found.groups for one in group.refusals for fact in one.facts]


def patch_of(found: Explanation, text: str) -> dict[str, Any]:
    """The change of the one object of a remedy."""
    (edit,) = remedy(found, text).edits
    (one,) = edit.patches
    assert one.patch is not None
    return one.patch


# --- NodeDeclaredFeatures -------------------------------------------------------------------------


def test_features_that_are_not_declared_are_named_with_the_number_of_nodes() -> None:
    nodes = cluster(declaring("a"), declaring("b", RESTART), declaring("c", RESTART))
    found = explained(pod("p", spec=BOTH), list(nodes))
    (group,) = found.groups
    assert group.said is not None
    told = [(fact.text, fact.nodes, fact.node) for fact in group.said.facts]
    assert told == [
        (f"they do not declare {RESTART}", 1, "a"),
        (f"they do not declare {USERS}", 3, "a"),
    ]
    assert found.kind == "misconfigured"


def test_a_pod_can_do_without_a_user_namespace() -> None:
    found = explained(pod("p", spec=BOTH), list(cluster(declaring("a", RESTART))))
    assert texts(found) == ["do without a user namespace (hostUsers: true)"]
    assert patch_of(found, "user namespace") == {"spec": {"hostUsers": True}}


def test_a_pod_can_do_without_rules_that_restart_all_of_it_and_keeps_the_others() -> None:
    other = {"action": "Restart"}
    rules = [*RULE["restartPolicyRules"], other]
    spec = {"containers": [{**RULE, "restartPolicyRules": rules}], "initContainers": [RULE]}
    found = explained(pod("p", spec=spec), list(cluster(declaring("a"))))
    assert texts(found) == ["do without rules that restart all containers"]
    changed = patch_of(found, "restart all")["spec"]
    assert [one["restartPolicyRules"] for one in changed["containers"]] == [[other]]
    assert [one.get("restartPolicyRules", []) for one in changed["initContainers"]] == [[]]


def test_a_node_that_declares_nothing_needs_both_changes() -> None:
    found = explained(pod("p", spec=BOTH), list(cluster(declaring("a"))))
    assert texts(found) == [
        "do without rules that restart all containers and"
        " do without a user namespace (hostUsers: true)"
    ]


# --- NodeAffinity ---------------------------------------------------------------------------------


def affinity(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_a_key_that_is_misspelt_is_changed_to_the_one_that_has_the_value() -> None:
    found = explained(
        pod("p", node_selector={"disk-type": "ssd"}), [node("a", labels={"disktype": "ssd"})]
    )
    assert facts(found) == ["nodeSelector disk-type=ssd: none of these has the label disk-type"]
    assert texts(found) == [
        "change nodeSelector disk-type=ssd to disktype=ssd",
        "label a disk-type=ssd",
    ]
    change = patch_of(found, "change nodeSelector")
    assert change == {"spec": {"nodeSelector": {"disk-type": None, "disktype": "ssd"}}}


def test_a_value_of_an_expression_that_is_misspelt_is_changed_and_the_others_stay() -> None:
    wanted = affinity(
        {"key": "zone", "operator": "In", "values": ["north", "wset-2"]},
        {"key": "disk", "operator": "Exists"},
    )
    nodes = [node("a", labels={"zone": "west-2", "disk": "ssd"})]
    found = explained(pod("p", affinity=wanted), nodes)
    assert facts(found) == ["node affinity zone in (north,wset-2): these have west-2"]
    text = "change wset-2 to west-2 in its node affinity zone in (north,wset-2)"
    assert texts(found)[0] == text
    changed = patch_of(found, text)["spec"]["affinity"]["nodeAffinity"]
    (term,) = changed["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [one.get("values") for one in term["matchExpressions"]] == [["north", "west-2"], None]


@pytest.mark.parametrize(
    ("operator", "values", "has", "label"),
    [
        ("In", ["b", "a"], "z", "gen=a"),
        ("NotIn", ["z"], "z", "gen-"),
        ("Exists", [], None, "gen=true"),
        ("DoesNotExist", [], "z", "gen-"),
        ("Gt", ["9"], "5", "gen=10"),
        ("Lt", ["3"], "5", "gen=2"),
    ],
)
def test_a_node_can_get_the_label_that_an_expression_wants(
    operator: str, values: list[str], has: str | None, label: str
) -> None:
    wanted = affinity({"key": "gen", "operator": operator, "values": values})
    nodes = [node("a", labels={} if has is None else {"gen": has})]
    found = explained(pod("p", affinity=wanted), nodes)
    assert remedy(found, f"label a {label}").examples == ("a",)
