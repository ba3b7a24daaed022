import pytest
from tests.queue.builders import pod

from mooring.framework.handle import Nominator
from mooring.queue.nominator import MOST_CHANGES, NominatedPods


@pytest.mark.parametrize(
    ("in_status", "asked", "claims"),
    [
        ("n1", None, "n1"),
        ("", None, None),
        ("n1", "n2", "n2"),
        ("n1", "", None),
        ("", "n2", "n2"),
    ],
)
def test_takes_the_given_node_or_else_the_one_in_the_status(
    in_status: str, asked: str | None, claims: str | None
) -> None:
    nominated = NominatedPods()
    nominated.nominate(pod("a", nominated=in_status), asked)
    assert nominated.node_of("uid-a") == claims


def test_moves_a_claim_instead_of_making_two() -> None:
    nominator: Nominator
    nominator = nominated = NominatedPods()
    a = pod("a")
    nominated.nominate(a, "n1")
    nominated.nominate(a, "n2")
    assert list(nominator.nominated_nodes()) == ["n2"]
    assert nominator.nominated_on("n1") == ()
    assert nominator.nominated_on("n2") == (a,)
    assert len(nominated) == 1


def test_forgets_the_old_claim_even_when_there_is_no_new_one() -> None:
    nominated = NominatedPods()
    nominated.nominate(pod("a"), "n1")
    nominated.nominate(pod("a"), None)
    assert len(nominated) == 0


def test_refuses_a_pod_that_has_a_node() -> None:
    nominated = NominatedPods()
    nominated.nominate(pod("a", node="n1"), "n2")
    assert len(nominated) == 0


@pytest.mark.parametrize(
    ("before", "after", "claims"),
    [
        ("", "", "mem"),  # the status has not caught up yet
        ("", "n1", "n1"),
        ("n1", "n2", "n2"),
        ("n1", "", None),
    ],
)
def test_follows_the_status_of_a_changed_pod(before: str, after: str, claims: str | None) -> None:
    nominated = NominatedPods()
    nominated.nominate(pod("a"), "mem")
    new = pod("a", nominated=after, labels={"new": "yes"})
    nominated.update(pod("a", nominated=before), new)
    assert nominated.node_of("uid-a") == claims
    assert nominated.nominated_on(claims or "mem") == ((new,) if claims else ())


def test_keeps_pods_of_a_node_in_the_order_they_claimed_it() -> None:
    nominated = NominatedPods()
    b, a = pod("b"), pod("a")
    nominated.nominate(b, "n1")
    nominated.nominate(a, "n1")
    assert nominated.nominated_on("n1") == (b, a)
    nominated.delete(b)
    assert nominated.nominated_on("n1") == (a,)


def test_says_which_nodes_have_other_nominations_since_a_moment() -> None:
    nominator = NominatedPods()
    nominator.nominate(pod("a"), "n1")
    moment = nominator.position
    assert nominator.changed_since(moment) == []
    nominator.nominate(pod("b"), "n2")
    nominator.delete(pod("a"))
    assert nominator.changed_since(moment) == ["n2", "n1"]
    for _ in range(MOST_CHANGES):
        nominator.nominate(pod("b"), "n2")
    assert nominator.changed_since(moment) is None
    assert nominator.changed_since(nominator.position) == []
