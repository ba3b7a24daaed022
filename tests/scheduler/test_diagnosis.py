from mooring.framework import OK, Status, Verdicts
from mooring.scheduler import diagnosis as diagnoses

FULL = Status.unschedulable("Insufficient cpu").by("Fit")
BOTH = Status.unschedulable("Insufficient cpu", "Insufficient memory").by("Fit")
TAINTED = Status.unresolvable("node(s) had untolerated taint(s)").by("Taints")
BUSY = Status.pending("still copying").by("Volumes")


def test_sorts_the_counted_reasons_as_strings() -> None:
    found = diagnoses.of_verdicts(Verdicts.of([TAINTED] * 2 + [FULL] * 10))
    assert found.message == (
        "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) had untolerated taint(s)."
    )
    assert found.unschedulable_plugins == {"Fit", "Taints"}


def test_counts_a_node_under_each_of_its_reasons() -> None:
    found = diagnoses.of_verdicts(Verdicts.of([BOTH, FULL]))
    assert found.message == ("0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu.")
    assert found.reasons == {"Insufficient cpu": 2, "Insufficient memory": 1}


def test_adds_equal_reasons_of_different_plugins_up() -> None:
    found = diagnoses.of_verdicts(Verdicts.of([FULL, FULL.by("Other")]))
    assert found.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert found.unschedulable_plugins == {"Fit", "Other"}


def test_a_plugin_that_waits_for_something_is_in_both_sets() -> None:
    found = diagnoses.of_verdicts(Verdicts.of([FULL, BUSY]))
    assert found.unschedulable_plugins == {"Fit", "Volumes"}
    assert found.pending_plugins == {"Volumes"}


def test_blames_nobody_whose_answer_was_replaced() -> None:
    verdicts = Verdicts.of([FULL, TAINTED])
    verdicts.set(0, TAINTED)
    found = diagnoses.of_verdicts(verdicts)
    assert found.message == "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    assert found.unschedulable_plugins == {"Taints"}


def test_blames_those_who_narrowed_the_nodes() -> None:
    found = diagnoses.of_verdicts(Verdicts.of([FULL]), ["NodeAffinity"])
    assert found.unschedulable_plugins == {"Fit", "NodeAffinity"}


def test_says_what_pre_filter_said_instead_of_counting() -> None:
    found = diagnoses.of_pre_filter(Status.unresolvable("no such claim").by("Volumes"), 3)
    assert found.message == "0/3 nodes are available: no such claim."
    assert found.unschedulable_plugins == {"Volumes"}


def test_ends_with_what_post_filter_said() -> None:
    found = diagnoses.of_verdicts(Verdicts.of([FULL]))
    assert found.followed_by("preemption: no candidates").message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: no candidates"
    )
    assert found.followed_by("").message == found.message


def test_names_the_plugin_that_gave_no_reason() -> None:
    silent = Status.unschedulable().by("Shy")
    found = diagnoses.of_verdicts(Verdicts.of([silent, silent, FULL]))
    assert found.message == (
        '0/3 nodes are available: 1 Insufficient cpu, 2 refused by plugin "Shy" without a reason.'
    )
    assert found.unschedulable_plugins == {"Shy", FULL.plugin}
    said = 'refused by plugin "Shy" without a reason.'
    assert diagnoses.of_pre_filter(silent, 3).message == f"0/3 nodes are available: {said}"
    assert diagnoses.of_refusal(silent).message == f"0/1 nodes are available: 1 {said}"


def test_says_nothing_of_an_extender_that_gave_no_reason() -> None:
    silent = Status.unresolvable().by("Extender")
    assert diagnoses.of_verdicts(Verdicts.of([silent])).message == "0/1 nodes are available:"


def test_a_refusal_of_the_chosen_node_is_about_one_node() -> None:
    found = diagnoses.of_refusal(Status.unschedulable("quota", "quota", "late").by("Quota"))
    assert found.message == "0/1 nodes are available: 1 late, 2 quota."
    assert found.unschedulable_plugins == {"Quota"}
    assert diagnoses.of_refusal(BUSY).pending_plugins == {"Volumes"}
    assert diagnoses.of_refusal(Status.unschedulable("removed")).unschedulable_plugins == set()


def test_everybody_passing_is_no_reason() -> None:
    found = diagnoses.of_verdicts(Verdicts.of([OK, OK]))
    assert found.reasons == {}
    assert found.unschedulable_plugins == set()
