"""Does a plugin keep the contract? The same questions for ours and for yours.

    def test_headroom_honours_the_contract() -> None:
        check_plugin(Headroom, args=[{}, {"resource": "memory", "reserve": 0.5}])

or, one test per question:

    @pytest.mark.parametrize(("name", "check"), plugin_checks(Headroom))
    def test_headroom(name: str, check: Check) -> None:
        check(Headroom)

A plugin is tried on small random clusters that are the same in every run. What fails is made as
small as possible before it is shown.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from mooring.cache.snapshot import Nodes
from mooring.config.decode import decode_args
from mooring.errors import ConfigError
from mooring.framework.events import ClusterEvent
from mooring.framework.plugin import (
    Args,
    Base,
    Filter,
    Permit,
    PreEnqueue,
    PreFilter,
    PreScore,
    Reserve,
    Score,
)
from mooring.framework.results import Wait
from mooring.framework.scores import MAX_SCORE, MIN_SCORE
from mooring.framework.state import CycleState
from mooring.framework.status import Code, Status
from mooring.runtime.registry import contract_faults
from mooring.testing._applies import check_applies_to_is_true
from mooring.testing._attempt import (
    Attempt,
    Bench,
    Fault,
    Raised,
    Trial,
    asking,
    describe,
    expect_status,
    show,
)
from mooring.testing._check import (
    DEFAULT_EXAMPLES,
    NO_ARGS,
    Check,
    Examples,
    on_every_case,
    on_the_class,
)
from mooring.testing._columns_digest import contradictions, differences, digest
from mooring.testing._compare import compare, compare_scores, compare_statuses
from mooring.testing._domains import (
    check_domains_refuse_alike,
    check_domains_score_alike,
    check_earlier_pods_leave_no_trace,
    check_extremes_are_all_that_matters,
    check_labels_score_alike,
    check_local_tables_are_local,
)
from mooring.testing._plausible_events import happenings
from mooring.testing._queue_order import check_queue_order
from mooring.testing._scope import (
    check_cache_key_is_all_that_matters,
    check_equal_points_stay_equal,
    check_pods_of_a_class_are_alike,
    check_scope_is_all_that_matters,
)
from mooring.testing._what_if import check_what_ifs_hold
from mooring.testing.build import StubHandle, arguments

__all__ = ["CHECKS", "Check", "Examples", "check_plugin", "plugin_checks"]

_CAN_REFUSE: Final = (PreEnqueue, PreFilter, Filter, Reserve, Permit)
_READ_ONLY: Final = ("read-only", "immutable")  # how numpy, msgspec and our own views refuse


def check_plugin(
    plugin_class: type[Base],
    args: Sequence[Mapping[str, Any]] = (NO_ARGS,),
    *,
    examples: Examples = DEFAULT_EXAMPLES,
) -> None:
    """Ask every question of a plugin, with each of these arguments; AssertionError says what fails.

    Arguments are spelt as in YAML or as the fields of the plugin's `Args`.
    """
    for given in args:
        for check in CHECKS:
            check(plugin_class, given, examples)


def plugin_checks(plugin_class: type[Base] | None = None) -> list[tuple[str, Check]]:
    """The checks by name: all of them, or those that concern a plugin."""
    return [
        (check.name, check)
        for check in CHECKS
        if plugin_class is None or check.applies_to(plugin_class)
    ]


# --- of the class -----------------------------------------------------------------------------


@on_the_class()
def check_contract(plugin_class: type[Base], args: Mapping[str, Any]) -> None:
    """A scheduler would accept the class, and build it with these arguments and with none."""
    faults = contract_faults(plugin_class)
    if faults:
        raise Fault("; ".join(faults))
    if not (isinstance(plugin_class.args_type, type) and issubclass(plugin_class.args_type, Args)):
        raise Fault(f"args_type is {plugin_class.args_type!r}, expected a subclass of Args")
    fields = msgspec.structs.fields(plugin_class.args_type)
    needs_some = any(field.required for field in fields)
    for given in (args,) if needs_some else (NO_ARGS, args):
        try:
            plugin_class(arguments(plugin_class, given), StubHandle())
        except ConfigError as error:
            raise Fault(f"args {dict(given)} are refused: {error}") from error
        except Exception as error:
            text = f"can't be built with args {dict(given)}: {type(error).__name__}: {error}"
            raise Fault(text) from error


@on_the_class()
def check_unknown_args_are_refused(plugin_class: type[Base], args: Mapping[str, Any]) -> None:
    """A misspelt argument stops the start-up instead of being ignored."""
    spelt = {f.name: f.encode_name for f in msgspec.structs.fields(plugin_class.args_type)}
    raw = {spelt.get(name, name): value for name, value in args.items()}
    strange = {**raw, "noSuchArgument": 1}
    value, _ = decode_args(strange, plugin_class.args_type, plugin_class.name, "args")
    if value is not None:
        raise Fault(f"the unknown argument noSuchArgument was accepted: {show(value)}")


@on_the_class(*_CAN_REFUSE)
def check_wakes_on_is_declared(plugin_class: type[Base], args: Mapping[str, Any]) -> None:
    """A plugin that can refuse a pod says which events may change its mind."""
    declared: object = plugin_class.wakes_on
    if declared is None:
        raise Fault("it can refuse pods but has no wakes_on; () means that nothing helps")
    if not isinstance(declared, tuple) or not all(isinstance(e, ClusterEvent) for e in declared):
        raise Fault(f"wakes_on is {show(declared)}, expected a tuple of events")


# --- of every answer --------------------------------------------------------------------------


@on_every_case()
def check_columns_untouched(trial: Trial) -> None:
    """Deciding changes nothing: neither columns nor objects."""
    bench = trial.bench()
    before = digest(bench.cache, trial.case.pod)
    for per_node in (False, True):
        try:
            list(_everything_said(bench, bench.attempt(per_node=per_node).run()))
        except Raised as raised:
            # Other exceptions are the business of the checks that follow.
            if any(word in str(raised.__cause__) for word in _READ_ONLY):
                raise
        except Fault:
            pass
        found = differences(before, digest(bench.cache, trial.case.pod))
        found += contradictions(bench.cache.table)
        if found:
            raise Fault("it changed " + "; ".join(found[:3]))


@on_every_case()
def check_answers_have_the_right_type(trial: Trial) -> None:
    """Statuses are `Status`, verdicts fit the nodes, scores are int64 of shape (n,), or int."""
    for per_node in (True, False):
        bench = trial.bench()
        list(_everything_said(bench, bench.attempt(per_node=per_node).run()))


@on_every_case(Filter, Score)
def check_both_forms_agree(trial: Trial) -> None:
    """`filter_all` and `score_all` say of each node what `filter` and `score` say."""
    vector, scalar = trial.bench().attempt(), trial.bench().attempt(per_node=True)
    compare(vector.run(), scalar.run(), "by {point}_all()", "by {point}()")


@on_every_case(PreFilter, Filter, PreScore, Score)
def check_node_order_does_not_matter(trial: Trial) -> None:
    """The same cluster, seen in another order, gets the same answers node by node."""
    cluster = trial.case.cluster
    shuffled = list(cluster.nodes)
    trial.dice.shuffle(shuffled)
    expected = trial.bench().attempt().run()
    for nodes in (cluster.nodes[::-1], tuple(shuffled)):
        other = trial.case.with_cluster(nodes=nodes, residents=cluster.residents[::-1])
        found = trial.bench(other).attempt().run()
        compare(found, expected, "with the nodes in another order", "before")


@on_every_case(Filter, Score)
def check_a_subset_gets_the_same_answers(trial: Trial) -> None:
    """Asked about some of the nodes only, the `*_all` forms answer for those as before."""
    full, part = trial.bench().attempt(), trial.bench().attempt()
    full.run()
    dice = trial.dice
    if part.prepare_filter():
        chosen = _some(part.candidates, dice)
        expected = {name: full.statuses[name] for name in chosen.names}
        compare_statuses(part.filter(chosen), expected, "in a subset", "among all nodes")
    if full.raw and full.feasible is not None:
        part = trial.bench().attempt()
        part.filter_all_points()
        if part.feasible is None or not part.prepare_scores(part.feasible):
            return
        some = _some(part.feasible, dice)
        raw = part.score(some)
        scores = dict(zip(some.names, raw.tolist(), strict=True))
        wanted = {name: full.raw[name] for name in some.names}
        compare_scores(scores, wanted, "in a subset", "among all nodes")
        part.normalize(some, raw)  # raises a Fault if it answers for more than it was given


@on_every_case(Score)
def check_scores_are_within_bounds(trial: Trial) -> None:
    """Scores lie between 0 and 100 once normalised; raw ones too if they are not normalised."""
    attempt = trial.bench().attempt().run()
    for name, score in attempt.scores.items():
        if not MIN_SCORE <= score <= MAX_SCORE:
            raw = attempt.raw[name]
            normalised = f" (normalised from {raw})" if raw != score else ""
            bounds = f"expected {MIN_SCORE} to {MAX_SCORE}"
            raise Fault(f"node {name} scores {score}{normalised}, {bounds}")


@on_every_case(PreFilter, Filter, PreScore, Score)
def check_same_seed_same_answer(trial: Trial) -> None:
    """Asked again, by the same plugin or a new one, it answers the same."""
    bench = trial.bench()
    first = bench.attempt().run()
    compare(bench.attempt().run(), first, "when asked a second time", "at first")
    compare(
        trial.bench().attempt().run(), first, "by a new instance with the same seed", "at first"
    )


@on_every_case(*_CAN_REFUSE)
def check_refusals_say_why(trial: Trial) -> None:
    """Every answer that is not a yes has a reason that people can read."""
    for per_node in (False, True):
        bench = trial.bench()
        for what, status in _everything_said(bench, bench.attempt(per_node=per_node).run()):
            if status.ok or status.skipped:
                continue
            if not status.reasons or not all(_is_text(reason) for reason in status.reasons):
                raise Fault(f"{what} says {describe(status)} without a reason")


@on_every_case(Reserve)
def check_unreserve_copes(trial: Trial) -> None:
    """`unreserve` does not fail, even if `reserve` never was called."""
    plugin = trial.bench().plugin
    assert isinstance(plugin, Reserve)
    for node in trial.case.cluster.nodes[:2]:
        with asking("unreserve", node.metadata.name):
            plugin.unreserve(CycleState(), trial.case.pod, node.metadata.name)


@on_every_case()
def check_hints_answer(trial: Trial) -> None:
    """`hint` says True or False to every event of `wakes_on`, whatever the objects."""
    plugin = trial.bench().plugin
    for awaited in plugin.wakes_on or ():
        for event, old, new in happenings(awaited, trial.case):
            with asking(f"for {event.label}, hint"):
                answer: object = plugin.hint(event, trial.case.pod, old, new)
            if not isinstance(answer, bool):
                raise Fault(f"hint() returned {show(answer)} for {event.label}, expected a bool")


def _everything_said(bench: Bench, attempt: Attempt) -> Iterator[tuple[str, Status]]:
    """Every status of an attempt that has run, then those of the points before and after it."""
    plugin, pod = bench.plugin, attempt.pod
    if isinstance(attempt.pre_filter, Status):
        yield "pre_filter()", attempt.pre_filter
    form = "filter()" if attempt.per_node else "filter_all()"
    for name, status in attempt.statuses.items():
        yield f"{form} for node {name}", status
    if isinstance(plugin, PreEnqueue):
        with asking("pre_enqueue"):
            answer: object = plugin.pre_enqueue(pod)
        yield "pre_enqueue()", expect_status(answer, "pre_enqueue()", {Code.SKIP, Code.WAIT})
    for name in attempt.feasible.names[:2] if attempt.feasible is not None else ():
        yield from _said_of_the_chosen(plugin, attempt, name)


def _said_of_the_chosen(plugin: Base, attempt: Attempt, name: str) -> Iterator[tuple[str, Status]]:
    state, pod = attempt.state, attempt.pod
    answer: object
    if isinstance(plugin, Reserve):
        with asking("reserve", name):
            answer = plugin.reserve(state, pod, name)
        yield "reserve()", expect_status(answer, "reserve()", {Code.SKIP, Code.WAIT})
    if isinstance(plugin, Permit):
        with asking("permit", name):
            answer = plugin.permit(state, pod, name)
        if not isinstance(answer, Wait):
            yield "permit()", expect_status(answer, "permit()", {Code.SKIP, Code.WAIT})
    if isinstance(plugin, Reserve):
        with asking("unreserve", name):
            plugin.unreserve(state, pod, name)


def _some(nodes: Nodes, dice: random.Random) -> Nodes:
    return nodes.take(np.array([dice.random() < 0.5 for _ in nodes], np.bool_))


def _is_text(reason: object) -> bool:
    return isinstance(reason, str) and bool(reason.strip())


CHECKS: Final[tuple[Check, ...]] = (
    check_contract,
    check_unknown_args_are_refused,
    check_wakes_on_is_declared,
    check_columns_untouched,
    check_answers_have_the_right_type,
    check_same_seed_same_answer,
    check_both_forms_agree,
    check_node_order_does_not_matter,
    check_a_subset_gets_the_same_answers,
    check_scores_are_within_bounds,
    check_refusals_say_why,
    check_unreserve_copes,
    check_applies_to_is_true,
    check_what_ifs_hold,
    check_pods_of_a_class_are_alike,
    check_scope_is_all_that_matters,
    check_cache_key_is_all_that_matters,
    check_equal_points_stay_equal,
    check_extremes_are_all_that_matters,
    check_domains_refuse_alike,
    check_domains_score_alike,
    check_labels_score_alike,
    check_local_tables_are_local,
    check_earlier_pods_leave_no_trace,
    check_queue_order,
    check_hints_answer,
)
"""In the order in which they make sense of a failure: the simplest question first."""
