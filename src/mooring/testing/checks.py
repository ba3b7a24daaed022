"""Checks that a plugin keeps the contract; the same for the default plugins and for yours.

    def test_headroom_honours_the_contract() -> None:
        check_plugin(Headroom, args=[{}, {"resource": "memory", "reserve": 0.5}])

or, one test per check:

    @pytest.mark.parametrize(("name", "check"), plugin_checks(Headroom))
    def test_headroom(name: str, check: Check) -> None:
        check(Headroom)

A plugin is evaluated on small random clusters that are the same in every run, by the engine of
`mooring run`. A failing case is made as small as possible before it is shown.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from mooring.cache.snapshot import Nodes
from mooring.errors import ConfigError
from mooring.framework.plugin import CAN_REFUSE, IN_DECISIONS, Args, Base, Filter, Reserve, Score
from mooring.framework.state import CycleState
from mooring.framework.status import Status
from mooring.runtime.decision_caller import PluginFault
from mooring.runtime.registry import contract_faults
from mooring.testing._bench import (
    Bench,
    Fault,
    PluginFailed,
    describe,
    expect_same,
    per_node,
    show,
)
from mooring.testing._check import (
    DEFAULT_EXAMPLES,
    NO_ARGS,
    Check,
    Examples,
    Finding,
    failure,
    on_every_case,
    on_the_class,
)
from mooring.testing._columns_digest import contradictions, differences, digest
from mooring.testing._declarations import check_applies_to_is_true, check_declarations_are_true
from mooring.testing._plausible_events import plausible_events
from mooring.testing._queue_order import check_queue_order
from mooring.testing._report import report_on
from mooring.testing._what_if import check_what_ifs_hold
from mooring.testing.build import StubHandle, arguments

__all__ = ["CHECKS", "Check", "Examples", "check_plugin", "plugin_checks"]

_READ_ONLY: Final = ("read-only", "immutable")  # in messages of numpy, msgspec and our views


def check_plugin(
    plugin_class: type[Base],
    args: Sequence[Mapping[str, Any]] = (NO_ARGS,),
    *,
    examples: Examples = DEFAULT_EXAMPLES,
    report: Callable[[str], object] | None = None,
) -> None:
    """Run every check with each of these arguments; one AssertionError lists all findings.

    Arguments are spelt as in YAML or as the fields of the plugin's `Args`. With `report=print`, a
    plugin that passes gets a report on what it reads and what it could declare to be cheaper.
    """
    findings: list[Finding] = []
    for given in args:
        findings += _findings(plugin_class, given, examples, known={str(f.fault) for f in findings})
    if findings:
        raise failure(plugin_class, findings)
    if report is not None:
        for given in args:
            report(report_on(plugin_class, given, examples))


def _findings(
    plugin_class: type[Base], args: Mapping[str, Any], examples: Examples, known: set[str]
) -> list[Finding]:
    """The findings with these arguments that are not known yet."""
    findings: list[Finding] = []
    can_be_built, has_failed = True, False
    cases = list(examples.cases(shared=True))
    for check in CHECKS:
        is_asked = can_be_built or not check.needs_cases
        finding = check.find(plugin_class, args, cases) if is_asked else None
        if finding is None:
            continue
        if check is check_contract:
            if contract_faults(plugin_class):
                return [finding]
            can_be_built = False
        if check is check_columns_untouched:  # the other checks must not see its changes
            cases = list(examples.cases())
        # A plugin that raises fails most checks in the same way.
        is_failure = isinstance(finding.fault, PluginFailed)
        if str(finding.fault) not in known and not (is_failure and has_failed):
            findings.append(finding)
        has_failed = has_failed or is_failure
    return findings


def plugin_checks(plugin_class: type[Base] | None = None) -> list[tuple[str, Check]]:
    """The checks by name: all of them, or those that concern a plugin."""
    return [
        (check.name, check)
        for check in CHECKS
        if plugin_class is None or check.applies_to(plugin_class)
    ]


# --- checks of the class ----------------------------------------------------------------------


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
    with contextlib.suppress(ConfigError):
        value = arguments(plugin_class, {**args, "noSuchArgument": 1})
        raise Fault(f"the unknown argument noSuchArgument was accepted: {show(value)}")


@on_the_class(*CAN_REFUSE)
def check_wakes_on_is_declared(plugin_class: type[Base], args: Mapping[str, Any]) -> None:
    """A plugin that can refuse a pod declares the events that may help the pod."""
    if plugin_class.wakes_on is None:
        raise Fault("it can refuse pods but has no wakes_on; () means that nothing helps")


# --- checks of every answer -------------------------------------------------------------------


@on_every_case()
def check_columns_untouched(first: Bench) -> None:
    """Deciding changes nothing: neither columns nor objects."""
    for bench in first.forms():
        before = digest(bench.cache, bench.case.pod)
        try:
            list(bench.said())
        except PluginFailed as failed:
            # The next check is about other exceptions.
            if any(word in str(failed.__cause__) for word in _READ_ONLY):
                raise
        found = differences(before, digest(bench.cache, bench.case.pod))
        found += contradictions(bench.cache.table)
        if found:
            raise Fault("it changed " + "; ".join(found[:3]))


@on_every_case()
def check_answers_are_accepted(bench: Bench) -> None:
    """Nothing raises, answers have the right type, normalised scores are between 0 and 100."""
    for form in bench.forms():
        list(form.said())


@on_every_case(*IN_DECISIONS)
def check_same_seed_same_answer(bench: Bench) -> None:
    """The same evaluation gives the same results, by the same plugin or a new instance."""
    first = bench.evaluate()
    expect_same(bench.evaluate(), first, "when asked a second time", "at first")
    other = bench.anew().evaluate()
    expect_same(other, first, "by a new instance with the same seed", "at first")


@on_every_case(Filter, Score)
def check_both_forms_agree(bench: Bench) -> None:
    """`filter_all` and `score_all` have the results of `filter` and `score` for each node."""
    if per_node(bench.plugin_class) is not bench.plugin_class:
        vectorised, scalar = bench.evaluate(), bench.per_node().evaluate()
        expect_same(vectorised, scalar, "by the vectorised form", "by the per-node form")


@on_every_case(*IN_DECISIONS)
def check_node_order_does_not_matter(bench: Bench) -> None:
    """The results of each node do not depend on the order of the nodes."""
    cluster = bench.case.cluster
    shuffled = list(cluster.nodes)
    bench.dice.shuffle(shuffled)
    expected = bench.evaluate()._replace(best="")  # ties depend on the order
    for nodes in (cluster.nodes[::-1], tuple(shuffled)):
        other = bench.case.with_cluster(nodes=nodes, residents=cluster.residents[::-1])
        found = bench.anew(other).evaluate()._replace(best="")
        expect_same(found, expected, "with the nodes in another order", "before")


@on_every_case(Filter, Score)
def check_a_subset_gets_the_same_answers(bench: Bench) -> None:
    """For a subset of the nodes, the `*_all` forms have the same results as for all."""
    full = bench.evaluate()
    plugin, state, pod = bench.plugin, full.state, bench.case.pod
    nodes, caller, dice = bench.cache.nodes, bench.plugins.caller, bench.dice
    words = ("in a subset", "among all nodes")
    try:
        if isinstance(plugin, Filter) and full.statuses and plugin.name not in state.skip_filter:
            some = _some(nodes, nodes.names if full.only is None else full.only, dice)
            verdicts = caller.filter_all(plugin, state, pod, some)
            statuses = {name: verdicts.status(row) for row, name in enumerate(some.names)}
            expected = full.of(set(some.names))
            expect_same(expected._replace(statuses=statuses), expected, *words)
        if isinstance(plugin, Score) and full.raw:
            some = _some(nodes, full.feasible, dice)
            raw = caller.score_all(plugin, state, pod, some)
            caller.normalized(plugin, state, pod, some, raw.copy())
            scores = dict(zip(some.names, raw.tolist(), strict=True))
            expected = full.of(set(some.names))
            expect_same(expected._replace(raw=scores), expected, *words)
    except PluginFault as fault:
        raise PluginFailed(f"in a subset: {fault.status.message}") from fault


def _some(nodes: Nodes, names: Collection[str], dice: random.Random) -> Nodes:
    chosen = [name in names and dice.random() < 0.5 for name in nodes.names]
    return nodes.take(np.array(chosen, np.bool_))


@on_every_case(*CAN_REFUSE)
def check_refusals_say_why(bench: Bench) -> None:
    """Every status that is not OK has a reason."""
    for what, status in itertools.chain.from_iterable(form.said() for form in bench.forms()):
        if not isinstance(status, Status) or status.ok or status.skipped:
            continue
        if not status.reasons or not all(reason.strip() for reason in status.reasons):
            raise Fault(f"{what} says {describe(status)} without a reason")


@on_every_case(Reserve)
def check_unreserve_copes(bench: Bench) -> None:
    """`unreserve` does not fail, even if `reserve` never was called."""
    assert isinstance(bench.plugin, Reserve)
    for node in bench.case.cluster.nodes[:2]:
        bench.call(bench.plugin.unreserve, CycleState(), bench.case.pod, node.name)


@on_every_case()
def check_hints_answer(bench: Bench) -> None:
    """`hint` returns a bool for every event of `wakes_on`, whatever the objects."""
    hint, case = bench.plugin.hint, bench.case
    for awaited in bench.plugin.wakes_on or ():
        for event, old, new in plausible_events(awaited, case):
            what = f"for {event.label}, hint()"
            answer: object = bench.call(hint, event, case.pod, old, new, what=what)
            if not isinstance(answer, bool):
                raise Fault(f"hint() returned {show(answer)} for {event.label}, expected a bool")


CHECKS: Final[tuple[Check, ...]] = (
    check_contract,
    check_unknown_args_are_refused,
    check_wakes_on_is_declared,
    check_columns_untouched,
    check_answers_are_accepted,
    check_same_seed_same_answer,
    check_both_forms_agree,
    check_node_order_does_not_matter,
    check_a_subset_gets_the_same_answers,
    check_refusals_say_why,
    check_unreserve_copes,
    check_applies_to_is_true,
    check_declarations_are_true,
    check_what_ifs_hold,
    check_queue_order,
    check_hints_answer,
)
"""All checks, the simplest first: a simple finding often explains the later ones."""
