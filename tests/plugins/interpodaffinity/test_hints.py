"""Which events are worth another try for a pod that was refused."""

import pytest
from tests.plugins.interpodaffinity.affinity import Json, affinity, anti_affinity, term

from mooring.framework import Event, Pod
from mooring.plugins.interpodaffinity.plugin import InterPodAffinity
from mooring.testing.build import build
from mooring.testing.builders import ZONE, node, pod

WEB = {"app": "web"}
LONELY = pod("lonely", affinity=affinity(term("zone", app="web")))
SHY = pod("shy", affinity=anti_affinity(term("zone", app="web")))
PLUGIN = build(InterPodAffinity)


def there(labels: Json | None = None, *, on: str = "n", affinity: Json | None = None) -> Pod:
    return pod("other", uid="other", labels=labels, on=on, affinity=affinity)


def helped(waiting: Pod, old: object | None, new: object | None) -> bool:
    is_node = not isinstance(old, Pod) and not isinstance(new, Pod)
    kinds = (
        (Event.NODE_ADDED, Event.NODE_LABELS_CHANGED)
        if is_node
        else (Event.POD_ADDED, Event.POD_LABELS_CHANGED)
    )
    event = kinds[0] if old is None else kinds[1] if new is not None else Event.POD_DELETED
    return PLUGIN.hint(event, waiting, old, new)


def test_company_that_arrives_helps() -> None:
    assert helped(LONELY, None, there(WEB))
    assert not helped(LONELY, None, there())
    assert not helped(LONELY, None, there(WEB, on=""))
    assert not helped(SHY, None, there(WEB))


def test_labels_that_begin_or_cease_to_match_help() -> None:
    assert helped(LONELY, there(), there(WEB))
    assert not helped(LONELY, there(WEB), there(WEB))
    assert not helped(LONELY, there(WEB), there())
    assert helped(SHY, there(WEB), there())
    assert not helped(SHY, there(), there(WEB))
    assert not helped(LONELY, there(on=""), there(WEB, on=""))


def test_the_pods_own_new_labels_help() -> None:
    assert helped(LONELY, LONELY, LONELY)


def test_the_departure_of_a_pod_helps_whoever_kept_away() -> None:
    assert helped(SHY, there(WEB), None)
    assert not helped(SHY, there(), None)
    assert not helped(LONELY, there(WEB), None)
    guard = there(affinity=anti_affinity(term("zone", app="web")))
    assert helped(pod(labels=WEB), guard, None)
    assert not helped(pod(), guard, None)


def test_all_terms_have_to_match_at_once() -> None:
    both = pod(
        affinity=affinity(term("zone", app="web"), term("host", {"matchLabels": {"tier": "a"}}))
    )
    assert not helped(both, None, there(WEB))
    assert helped(both, None, there({**WEB, "tier": "a"}))


def test_selectors_of_namespaces_are_not_looked_up() -> None:
    rule = term("zone", app="web", namespaceSelector={"matchLabels": {"team": "x"}})
    assert not helped(pod(affinity=affinity(rule)), None, there(WEB))
    everywhere = term("zone", app="web", namespaceSelector={})
    elsewhere = pod("p", namespace="shop", labels=WEB, on="n")
    assert helped(pod(affinity=affinity(everywhere)), None, elsewhere)


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        pytest.param(LONELY, None, {ZONE: "a"}, True, id="a node in a domain"),
        pytest.param(LONELY, None, {}, False, id="a node in none"),
        pytest.param(LONELY, {}, {ZONE: "a"}, True, id="a node enters a domain"),
        pytest.param(LONELY, {ZONE: "a"}, {ZONE: "b"}, True, id="a node changes its domain"),
        pytest.param(LONELY, {ZONE: "a"}, {}, False, id="a node leaves its domain"),
        pytest.param(LONELY, {ZONE: "a"}, {ZONE: "a", "x": "y"}, False, id="another label"),
        pytest.param(SHY, None, {}, True, id="any node is one without those others"),
        pytest.param(SHY, {}, {ZONE: "a"}, False, id="it had not been in the way"),
        pytest.param(SHY, {ZONE: "a"}, {ZONE: "b"}, True, id="away from the others"),
        pytest.param(SHY, {ZONE: "a"}, {}, True, id="out of their domain"),
        pytest.param(SHY, {ZONE: "a"}, {ZONE: "a"}, False, id="nothing changed"),
        pytest.param(pod(), None, {ZONE: "a"}, False, id="no terms of its own"),
    ],
)
def test_nodes_that_come_or_change_their_domain_help(
    waiting: Pod, old: dict[str, str] | None, new: dict[str, str], expected: bool
) -> None:
    before = None if old is None else node("n", labels=old).api
    assert helped(waiting, before, node("n", labels=new).api) == expected


def test_anything_may_help_a_pod_that_cannot_be_understood() -> None:
    broken = {"matchExpressions": [{"key": "app", "operator": "Almost"}]}
    odd = pod(affinity=affinity(term("zone", broken)))
    assert helped(odd, None, there())
    assert helped(odd, None, node("n").api)
