import json
import re

import pytest
from tests.testing import by_domain, gallery, left_out, overclaims
from tests.testing.headroom import Headroom

import mooring.framework as fw
from mooring.testing import Check, Examples, check_plugin, node, plugin_checks, pod
from mooring.testing.checks import CHECKS

FEW = Examples(seeds=range(12))

BROKEN: list[tuple[type[fw.Base], str, str]] = [
    (gallery.Nameless, "check_contract", "needs a `name`"),
    (gallery.CannotBeBuilt, "check_contract", "shards must be positive"),
    (gallery.AcceptsAnything, "check_unknown_args_are_refused", "noSuchArgument was accepted"),
    (gallery.NeverWakes, "check_wakes_on_is_declared", "has no wakes_on"),
    (gallery.WritesToColumn, "check_columns_untouched", "score_all() raised ValueError: output"),
    (gallery.ForcesColumn, "check_columns_untouched", "it changed labels"),
    (gallery.WritesToPod, "check_columns_untouched", "is read-only: cannot set 'priority'"),
    (gallery.FloatScores, "check_answers_have_the_right_type", "dtype float64, expected int64"),
    (gallery.NotANumber, "check_answers_have_the_right_type", "returned nan, expected an int"),
    (gallery.SaysNone, "check_answers_have_the_right_type", "returned None, expected a Status"),
    (gallery.WrongLength, "check_answers_have_the_right_type", "0 verdicts for 1 nodes"),
    (gallery.Raises, "check_answers_have_the_right_type", "raised KeyError"),
    (gallery.VectorDisagrees, "check_both_forms_agree", "Success by filter()"),
    (gallery.OtherReason, "check_both_forms_agree", "['too full'] by filter()"),
    (gallery.ScoreFormsDisagree, "check_both_forms_agree", "by score_all(), but"),
    (gallery.OrderMatters, "check_node_order_does_not_matter", "with the nodes in another order"),
    (gallery.SubsetMatters, "check_a_subset_gets_the_same_answers", "in a subset, but"),
    (gallery.NormalizesForAll, "check_a_subset_gets_the_same_answers", "shape (1,), expected (0,)"),
    (gallery.TooGood, "check_scores_are_within_bounds", "scores 101, expected 0 to 100"),
    (gallery.Remembers, "check_same_seed_same_answer", "when asked a second time"),
    (gallery.Speechless, "check_refusals_say_why", "Unschedulable without a reason"),
    (gallery.SpeechlessGate, "check_refusals_say_why", "pre_enqueue() says"),
    (gallery.UnreserveTrusts, "check_unreserve_copes", "unreserve() raised KeyError"),
    (left_out.FiltersOthers, "check_applies_to_is_true", "although applies_to() is False"),
    (gallery.ForgetsWhatIfs, "check_what_ifs_hold", "in thought with"),
    (gallery.LeaksWhatIfs, "check_what_ifs_hold", "in thought"),
    (overclaims.ByName, "check_pods_of_a_class_are_alike", "with another name and uid"),
    (overclaims.CountsPods, "check_scope_is_all_that_matters", "scope OBJECT says"),
    (overclaims.ForgetsMemory, "check_cache_key_is_all_that_matters", "cache_key() says"),
    (overclaims.BreaksTies, "check_equal_points_stay_equal", "by_extremes says"),
    (by_domain.ByMean, "check_extremes_are_all_that_matters", "by_extremes says"),
    (by_domain.RefusesAll, "check_domains_refuse_alike", "but filter_all() says Success"),
    (by_domain.OtherPoints, "check_domains_score_alike", "by score_by_domain(), but"),
    (by_domain.RoomiestOfAll, "check_labels_score_alike", "by final_by_label(), but 100"),
    (by_domain.NotLocal, "check_local_tables_are_local", "of other domains"),
    (by_domain.StaysWithIt, "check_earlier_pods_leave_no_trace", "of an earlier pod, but"),
    (gallery.NotStrict, "check_queue_order", "before itself"),
    (gallery.NotTransitive, "check_queue_order", "but not the first before the last"),
    (gallery.KeyDisagrees, "check_queue_order", "by sort_key()"),
    (gallery.HintTrusts, "check_hints_answer", "for NodeAdd, hint() raised AttributeError"),
    (gallery.HintMumbles, "check_hints_answer", "expected a bool"),
]


@pytest.mark.parametrize(
    ("plugin", "check", "words"), BROKEN, ids=[plugin.__name__ for plugin, _, _ in BROKEN]
)
def test_names_the_check_that_a_broken_plugin_fails(
    plugin: type[fw.Base], check: str, words: str
) -> None:
    name = getattr(plugin, "name", plugin.__name__)
    expected = rf"^plugin {name} fails {check}: .*{re.escape(words)}"
    with pytest.raises(AssertionError, match=expected):
        check_plugin(plugin, examples=FEW)


def test_has_a_broken_plugin_for_every_check() -> None:
    assert {check for _, check, _ in BROKEN} == {check.name for check in CHECKS}


@pytest.mark.parametrize(("name", "check"), plugin_checks(Headroom))
def test_finds_nothing_wrong_with_a_good_plugin(name: str, check: Check) -> None:
    check(Headroom)


def test_tries_every_set_of_arguments_and_shows_the_one_that_fails() -> None:
    check_plugin(Headroom, args=[{}, {"resource": "memory", "reserve": 0.5}], examples=FEW)
    with pytest.raises(AssertionError, match=r"with args \{'reserve': 1.5\} fails check_contract"):
        check_plugin(Headroom, args=[{}, {"reserve": 1.5}], examples=FEW)


def test_yields_only_the_checks_that_concern_the_plugin() -> None:
    names = dict(plugin_checks(gallery.NotStrict))
    assert "check_queue_order" in names
    assert "check_both_forms_agree" not in names
    assert [name for name, _ in plugin_checks()] == [check.name for check in CHECKS]


def test_passes_over_a_check_that_does_not_concern_the_plugin() -> None:
    checks = dict(plugin_checks())
    checks["check_queue_order"](Headroom)


def test_shows_a_counter_example_as_small_as_it_can_be() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(gallery.VectorDisagrees)
    lines = str(failure.value).splitlines()
    shown = [line.split(maxsplit=1)[0] for line in lines[1:-1]]
    assert shown == ["pod", "node"]
    assert set(json.loads(lines[2].split(maxsplit=1)[1])) == {"apiVersion", "kind", "metadata"}


def test_shows_where_the_plugin_raised() -> None:
    with pytest.raises(AssertionError) as failure:
        check_plugin(gallery.Raises)
    assert isinstance(failure.value.__cause__, KeyError)


class Licence(fw.Filter):
    name = "Licence"
    wakes_on = ()

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        wanted = pod.annotations.get("licence")
        if wanted is None or node.annotations.get("licence") == wanted:
            return fw.OK
        return fw.Status.unschedulable()


def test_tries_the_examples_it_is_given() -> None:
    check_plugin(Licence)
    licensed = Examples(pods=[pod("p", annotations={"licence": "x"})], nodes=[node("n")])
    with pytest.raises(AssertionError, match="check_refusals_say_why"):
        check_plugin(Licence, examples=licensed)
