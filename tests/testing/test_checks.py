import json
import re

import pytest
from tests.testing import applies_to, declarations
from tests.testing import faulty_plugins as faulty
from tests.testing.headroom import Headroom

import mooring.framework as fw
from mooring.framework.plugin import Base
from mooring.testing import Check, Examples, check_plugin, node, plugin_checks, pod
from mooring.testing.checks import CHECKS

FEW = Examples(seeds=(0, 4, 6, 9))  # each fault shows in one of these, most in several

BROKEN: list[tuple[type[Base], str, str]] = [
    (faulty.Nameless, "check_contract", "needs a `name`"),
    (faulty.CannotBeBuilt, "check_contract", "shards must be positive"),
    (faulty.FailsToStart, "check_contract", "can't be built with args {}: OSError: no such"),
    (faulty.AcceptsAnything, "check_unknown_args_are_refused", "noSuchArgument was accepted"),
    (faulty.NeverWakes, "check_wakes_on_is_declared", "has no wakes_on"),
    (faulty.NeverWakesPreemptors, "check_wakes_on_is_declared", "has no wakes_on"),
    (faulty.WritesToColumn, "check_columns_untouched", "ValueError: output array is read-only"),
    (faulty.ForcesColumn, "check_columns_untouched", "it changed labels"),
    (faulty.ForcesColumnPerNode, "check_columns_untouched", "it changed labels"),
    (faulty.WritesToPod, "check_columns_untouched", "is read-only: cannot set 'priority'"),
    (faulty.FloatScores, "check_answers_are_accepted", "'float64 array', expected an int64 array"),
    (faulty.NotANumber, "check_answers_are_accepted", "returned nan, expected an int (node"),
    (faulty.ScoresNonePerNode, "check_answers_are_accepted", "returned None, expected an int"),
    (faulty.SaysNone, "check_answers_are_accepted", "returned None, expected a Status (node"),
    (faulty.WrongLength, "check_answers_are_accepted", "expected Verdicts for 1 nodes"),
    (faulty.Raises, "check_answers_are_accepted", "filter plugin: KeyError: 'topology"),
    (faulty.TooGood, "check_answers_are_accepted", "returns an invalid score 101"),
    (faulty.NormalizesTooFar, "check_answers_are_accepted", "returns an invalid score 200"),
    (faulty.SkipsAtFilter, "check_answers_are_accepted", "or with no meaning there"),
    (faulty.SkipsReserve, "check_answers_are_accepted", "returned Skip, which has no meaning"),
    (faulty.VectorDisagrees, "check_both_forms_agree", "Success by the per-node form"),
    (faulty.OtherReason, "check_both_forms_agree", "['too full'] by the per-node form"),
    (faulty.ScoreFormsDisagree, "check_both_forms_agree", "by the vectorised form, but"),
    (faulty.OrderMatters, "check_node_order_does_not_matter", "with the nodes in another order"),
    (faulty.SubsetMatters, "check_a_subset_gets_the_same_answers", "in a subset, but"),
    (faulty.NormalizesForAll, "check_a_subset_gets_the_same_answers", "array of 0 scores"),
    (faulty.Remembers, "check_same_seed_same_answer", "when asked a second time"),
    (faulty.Speechless, "check_refusals_say_why", "Unschedulable without a reason"),
    (faulty.SpeechlessGate, "check_refusals_say_why", "pre_enqueue() says"),
    (faulty.UnreserveTrusts, "check_unreserve_copes", "unreserve() raised KeyError"),
    (applies_to.FiltersOthers, "check_applies_to_is_true", "although applies_to() is False"),
    (faulty.ForgetsWhatIfs, "check_what_ifs_hold", "in a what-if with"),
    (faulty.LeaksWhatIfs, "check_what_ifs_hold", "in a what-if"),
    (faulty.AddsOnly, "check_what_ifs_hold", "and removed again, but Success"),
    (declarations.CountsPods, "check_declarations_are_true", "depends_on = fw.NODE says"),
    (faulty.NotStrict, "check_queue_order", "before itself"),
    (faulty.NotTransitive, "check_queue_order", "but not the first before the last"),
    (faulty.TiesDisagree, "check_queue_order", ", but the first before the last"),
    (faulty.NoOrder, "check_queue_order", "less() returned None, expected a bool"),
    (faulty.KeyDisagrees, "check_queue_order", "by sort_key()"),
    (faulty.HintTrusts, "check_hints_answer", "for NodeAdd, hint() raised AttributeError"),
    (faulty.HintMumbles, "check_hints_answer", "expected a bool"),
]
# The words are those of a cluster made as small as it can be.
SHOWN_SMALL: list[type[Base]] = [faulty.WrongLength, faulty.NormalizesForAll]


@pytest.mark.parametrize(
    ("plugin", "check", "words"), BROKEN, ids=[plugin.__name__ for plugin, _, _ in BROKEN]
)
def test_names_the_check_that_a_broken_plugin_fails(
    plugin: type[Base], check: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if plugin not in SHOWN_SMALL:
        monkeypatch.setattr("mooring.testing._shrink.MAX_QUESTIONS", 0)
    name = getattr(plugin, "name", plugin.__name__)
    expected = rf"(^plugin {name} fails |^1\. ){check}: .*{re.escape(words)}"
    with pytest.raises(AssertionError) as failure:
        check_plugin(plugin, examples=FEW)
    assert re.search(expected, str(failure.value), re.MULTILINE)


def test_shows_no_check_what_the_plugin_changed_in_another() -> None:
    alone = r"^plugin SpoilsForOthers fails check_columns_untouched: it changed labels disk"
    with pytest.raises(AssertionError, match=alone):
        check_plugin(faulty.SpoilsForOthers, examples=FEW)


def test_has_a_broken_plugin_for_every_check() -> None:
    assert {check for _, check, _ in BROKEN} == {check.name for check in CHECKS}


@pytest.mark.parametrize(("name", "check"), plugin_checks(Headroom))
def test_finds_nothing_wrong_with_a_good_plugin(name: str, check: Check) -> None:
    check(Headroom, examples=FEW)


def test_tries_every_set_of_arguments_and_shows_the_one_that_fails() -> None:
    check_plugin(Headroom, args=[{}, {"resource": "memory", "reserve": 0.5}], examples=FEW)
    with pytest.raises(AssertionError, match=r"check_contract with args \{'reserve': 1.5\}: "):
        check_plugin(Headroom, args=[{}, {"reserve": 1.5}], examples=FEW)


def test_yields_only_the_checks_that_concern_the_plugin() -> None:
    names = dict(plugin_checks(faulty.NotStrict))
    assert "check_queue_order" in names
    assert "check_both_forms_agree" not in names
    assert [name for name, _ in plugin_checks()] == [check.name for check in CHECKS]


def test_passes_over_a_check_that_does_not_concern_the_plugin() -> None:
    checks = dict(plugin_checks())
    checks["check_queue_order"](Headroom)


def test_shows_a_counter_example_as_small_as_it_can_be() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(faulty.VectorDisagrees)
    lines = str(failure.value).splitlines()
    shown = [line.split(maxsplit=1)[0] for line in lines[1:-1]]
    assert shown == ["pod", "node"]
    assert set(json.loads(lines[2].split(maxsplit=1)[1])) == {"apiVersion", "kind", "metadata"}


def test_shows_where_the_plugin_raised() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(faulty.Raises)
    assert isinstance(failure.value.__cause__, KeyError)


def test_lists_all_findings_at_once_each_as_small_as_it_can_be() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(faulty.FullOfFaults, examples=FEW)
    first, *findings = str(failure.value).split("\n\n")
    assert first == "plugin FullOfFaults fails 4 checks:"
    assert [finding.partition(":")[0] for finding in findings] == [
        "1. check_wakes_on_is_declared",
        "2. check_both_forms_agree",
        "3. check_refusals_say_why",
        "4. check_declarations_are_true",
    ]
    assert "are asked about in the per-node form, which says otherwise" in findings[3]
    for finding in findings[1:]:
        shown = [line.split(maxsplit=1)[0] for line in finding.splitlines()[1:-1]]
        assert shown == ["pod", "node"]


def test_shows_a_finding_once_if_other_arguments_change_nothing() -> None:
    args = [{}, {"reserve": 0.2}, {"reserve": 2.0}]
    with pytest.raises(AssertionError) as failure:
        check_plugin(faulty.HintMumbles, args=args, examples=FEW)
    numbered = [line for line in str(failure.value).splitlines() if line[:1].isdigit()]
    assert [line.partition(":")[0] for line in numbered] == [
        "1. check_hints_answer",
        "2. check_contract with args {'reserve'",
    ]


def test_shows_a_plugin_that_raises_by_one_finding() -> None:
    with pytest.raises(AssertionError, match=r"^plugin Raises fails check_answers_are_accepted"):
        check_plugin(faulty.Raises, examples=FEW)


def test_says_more_about_a_plugin_that_raises_for_some_pods_only() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(faulty.RaisesAndCounts, examples=FEW)
    assert "1. check_answers_are_accepted" in str(failure.value)
    assert "2. check_declarations_are_true" in str(failure.value)


class Licence(fw.Filter):
    name = "Licence"
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        wanted = pod.annotations.get("licence")
        if wanted is None or node.annotations.get("licence") == wanted:
            return fw.OK
        return fw.Status.unschedulable()


def test_tries_the_examples_it_is_given() -> None:
    check_plugin(Licence, examples=FEW)
    licensed = Examples(FEW.seeds, pods=[pod("p", annotations={"licence": "x"})], nodes=[node("n")])
    with pytest.raises(AssertionError, match="check_refusals_say_why"):
        check_plugin(Licence, examples=licensed)


def test_finds_words_of_an_earlier_version() -> None:
    class Outdated(fw.Score):
        name = "Outdated"
        scope = "node"
        by_extremes = True

        def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
            return 0

    with pytest.raises(AssertionError, match=r"has `scope`: .*Outdated has `by_extremes`: "):
        check_plugin(Outdated)
