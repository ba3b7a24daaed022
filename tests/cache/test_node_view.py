"""One node of the snapshot, and the same node with pods added or taken away in thought."""

import pytest

from mooring.api.requests import HostPort
from mooring.cache.node import Node
from mooring.testing import node, pod

PORT = HostPort("0.0.0.0", "TCP", 80)


def names_on(subject: Node) -> list[str]:
    return sorted(resident.name for resident in subject.pods)


def test_speaks_the_words_of_its_object() -> None:
    subject = node(
        "n", labels={"size": "big"}, annotations={"note": "x"}, taints=["gpu:NoSchedule"], cpu="2"
    )
    assert subject.labels["size"] == "big"
    assert subject.annotations == {"note": "x"}
    assert [taint.key for taint in subject.taints] == ["gpu"]
    assert not subject.unschedulable
    assert subject.allocatable("cpu") == 2000
    assert subject.allocatable("example.com/unheard-of") == 0
    assert repr(subject) == "Node('n')"


def test_counts_a_pod_that_is_only_thought_of() -> None:
    subject = node("n", cpu="2", pods=[pod("p", cpu="1")])
    imagined = subject.with_pod(pod("q", cpu="500m", ports=[80]))
    assert names_on(imagined) == ["p", "q"]
    assert imagined.pod_count == 2
    assert imagined.requested("cpu") == 1500
    assert imagined.spare("cpu") == 500
    assert imagined.nonzero_requested("memory") == 2 * 200 * 2**20
    assert imagined.port_taken(PORT)


def test_stays_as_it_is_whatever_is_thought_of_it() -> None:
    resident = pod("p", cpu="1", ports=[80])
    subject = node("n", cpu="2", pods=[resident])
    subject.with_pod(pod("q", cpu="500m"))
    subject.without_pod(resident)
    assert names_on(subject) == ["p"]
    assert subject.requested("cpu") == 1000
    assert subject.port_taken(PORT)


def test_leaves_out_a_pod_that_is_thought_away() -> None:
    resident = pod("p", cpu="1", ports=[80])
    subject = node("n", cpu="2", pods=[resident, pod("q", cpu="250m")])
    imagined = subject.without_pod(resident)
    assert names_on(imagined) == ["q"]
    assert imagined.pod_count == 1
    assert imagined.requested("cpu") == 250
    assert imagined.nonzero_requested("cpu") == 250
    assert not imagined.port_taken(PORT)


def test_thinking_a_pod_away_twice_is_thinking_it_away_once() -> None:
    resident = pod("p", cpu="1")
    subject = node("n", cpu="2", pods=[resident]).without_pod(resident).without_pod(resident)
    assert subject.pod_count == 0
    assert subject.requested("cpu") == 0


def test_thinking_a_stranger_away_changes_nothing() -> None:
    subject = node("n", pods=[pod("p")])
    assert subject.without_pod(pod("q")) is subject


def test_a_pod_thought_away_can_come_back() -> None:
    subject = node("n", pods=[pod("p", cpu="1")])
    (resident,) = subject.pods
    back = subject.without_pod(resident).with_pod(resident)
    assert names_on(back) == ["p"]
    assert back.requested("cpu") == 1000


def test_a_pod_thought_away_can_come_back_changed() -> None:
    resident = pod("p", uid="u", cpu="1")
    changed = pod("p", uid="u", cpu="3", ports=[80])
    subject = node("n", pods=[resident]).without_pod(resident).with_pod(changed)
    assert subject.pods == (changed,)
    assert subject.requested("cpu") == 3000
    assert subject.port_taken(PORT)
    assert subject.without_pod(changed).pod_count == 0


def test_a_pod_that_was_only_thought_of_can_go_again() -> None:
    guest = pod("q", cpu="1")
    subject = node("n").with_pod(guest).without_pod(guest)
    assert subject.pod_count == 0
    assert subject.requested("cpu") == 0


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_wraps_as_the_columns_do(resource: str) -> None:
    huge = [pod(f"p{i}", requests={resource: 2**62}) for i in range(3)]
    subject = node("n", pods=huge[:2])
    assert -(2**63) <= subject.spare(resource) < 2**63
    imagined = node("n", pods=huge[:1]).with_pod(huge[1])
    assert imagined.requested(resource) == subject.requested(resource)
    assert imagined.spare(resource) == subject.spare(resource)
    assert imagined.nonzero_requested(resource) == subject.nonzero_requested(resource)
