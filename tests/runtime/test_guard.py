import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.unshowable import Parting

import mooring.framework as fw
from mooring.errors import PluginError, PluginOverrun
from mooring.framework._internal import InternalPlugin
from mooring.framework.plugin import IN_DECISIONS, Args
from mooring.framework.state import Failed
from mooring.observe import texts
from mooring.observe.metrics import Metrics
from mooring.observe.signals import handle_signals
from mooring.runtime.guard import Guard, PluginTimeout, Watchdog
from mooring.runtime.registry import Registry


class Quiet(fw.Filter):
    name = "Quiet"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


def plugin() -> Quiet:
    handle: Any = None
    return Quiet(Args(), handle)


def guard(budget: float = 5.0) -> Guard:
    return Guard(Metrics(), budget=budget)


def raises(error: BaseException) -> Callable[..., Any]:
    def call(*_: Any) -> Any:
        raise error

    return call


def run(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await work

    return asyncio.run(main())


def test_hands_the_answer_through() -> None:
    assert guard().call(plugin(), "Filter", lambda a, b: a + b, 1, 2) == 3


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit("boom"), GeneratorExit("boom")])
def test_names_the_plugin_and_the_point_of_an_accident(error: BaseException) -> None:
    with pytest.raises(PluginError, match="boom") as caught:
        guard().call(plugin(), "Filter", raises(error))
    assert (caught.value.plugin, caught.value.point) == ("Quiet", "Filter")
    assert repr(caught.value.__cause__) == repr(type(error)("boom"))


def test_lets_the_human_at_the_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        guard().call(plugin(), "Filter", raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        run(guard().acall(plugin(), "Bind", raises(KeyboardInterrupt())))


def test_does_not_wrap_an_error_that_names_its_author_already() -> None:
    error = PluginError("said before", plugin="Other", point="Score")
    assert guard().failure(plugin(), "Filter", error) is error


def test_logs_a_traceback_once_per_place(caplog: pytest.LogCaptureFixture) -> None:
    watched = guard()
    here, there = raises(ValueError("boom")), raises(KeyError("boom"))
    for function in (here, here, there, here, there):
        with pytest.raises(PluginError):
            watched.call(plugin(), "Filter", function)
    with pytest.raises(PluginError):
        watched.call(plugin(), "Score", here)
    shown = [record for record in caplog.records if record.exc_info]
    assert [getattr(record, "point", "") for record in shown] == ["Filter", "Filter", "Score"]


def test_two_lines_of_one_function_are_two_places(caplog: pytest.LogCaptureFixture) -> None:
    def fails(early: bool) -> None:
        if early:
            raise ValueError("boom")
        raise ValueError("boom")

    watched = guard()
    for early in (True, False, True):
        with pytest.raises(PluginError):
            watched.call(plugin(), "Filter", fails, early)
    assert len(caplog.records) == 2


def test_shortens_what_it_shows_of_a_wrong_answer() -> None:
    error = guard().wrong_answer(plugin(), "Filter", "x" * 500, "a Status")
    assert str(error).endswith("x..., expected a Status")
    assert len(str(error)) < 120


def test_keeps_the_deadline_of_a_plugin_that_leads_to_another() -> None:
    watched = guard()
    seen = []

    def outer() -> None:
        before = watched.deadline
        watched.call(plugin(), "PreEnqueue", lambda: None)
        seen.append(watched.deadline == before)

    watched.call(plugin(), "Filter", outer)
    assert seen == [True]
    assert watched.deadline is None


def test_records_times_only_when_asked_to() -> None:
    watched = guard()
    for record in (False, True):
        watched.record_plugins = record
        watched.call(plugin(), "Filter", lambda: fw.Status.unschedulable("no"))
    child = watched.metrics.plugin_duration.labels("Quiet", "Filter", "Unschedulable")
    assert child.count == 1


async def quick(answer: object) -> object:
    await asyncio.sleep(0)
    return answer


def test_awaits_and_hands_the_answer_through() -> None:
    assert run(guard().acall(plugin(), "Bind", quick, 7)) == 7


def test_passes_what_happens_outside_on_to_the_waiting_plugin() -> None:
    async def patient() -> str:
        loop = asyncio.get_running_loop()
        failing = loop.create_future()
        loop.call_soon(failing.set_exception, OSError("reset"))
        try:
            await failing
        except OSError as error:
            return f"got {error}"
        return "nothing"

    assert run(guard().acall(plugin(), "Bind", patient)) == "got reset"


async def patient(cleaned: list[bool]) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        cleaned.append(True)


async def test_passes_cancellation_through() -> None:
    cleaned: list[bool] = []

    task = asyncio.ensure_future(guard().acall(plugin(), "Bind", patient, cleaned))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [True]


def test_takes_a_cancellation_that_nobody_asked_for_as_an_accident() -> None:
    async def sulky() -> None:
        raise asyncio.CancelledError

    with pytest.raises(PluginError, match="CancelledError"):
        run(guard().acall(plugin(), "Bind", sulky))


async def test_passes_the_end_of_a_coroutine_through() -> None:
    cleaned: list[bool] = []

    waiting = guard().acall(plugin(), "Bind", patient, cleaned)
    waiting.send(None)
    waiting.close()
    assert cleaned == [True]


def test_an_answer_that_cannot_be_awaited_is_an_accident() -> None:
    def forgot() -> Any:
        return None

    with pytest.raises(PluginError, match="AttributeError"):
        run(guard().acall(plugin(), "Bind", forgot))


def hang() -> None:
    while True:
        pass


async def hang_later() -> None:
    await asyncio.sleep(0)
    hang()


def test_the_watchdog_interrupts_for_real() -> None:
    watched = guard(budget=0.2)
    with Watchdog(watched), pytest.raises(PluginError, match=r"longer than its budget of 0\.2s"):
        watched.call(plugin(), "Filter", hang)
    assert watched.deadline is None


def test_the_watchdog_interrupts_between_two_waits() -> None:
    watched = guard(budget=0.2)
    with Watchdog(watched), pytest.raises(PluginError, match=r"longer than its budget of 0\.2s"):
        run(watched.acall(plugin(), "Bind", hang_later))
    assert watched.deadline is None


class Ours(InternalPlugin, fw.Filter):
    name = "Ours"

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return fw.OK


def ours() -> Ours:
    handle: Any = None
    return Ours(Args(), handle)


def test_the_watchdog_interrupts_at_the_limit_in_force() -> None:
    watched = guard(budget=60.0)
    watched.limit = 0.1
    with Watchdog(watched), pytest.raises(PluginOverrun, match="longer than its budget of 60s"):
        watched.call(plugin(), "Filter", hang)
    assert watched.overrun == ("Quiet", "Filter")


def test_plugins_of_this_project_always_have_the_budget() -> None:
    watched = guard(budget=0.5)
    watched.limit = 0.01
    began = watched.timer()
    with Watchdog(watched), pytest.raises(PluginOverrun):
        watched.call(ours(), "Filter", hang)
    assert watched.timer() - began >= 0.5


def test_every_plugin_of_this_project_is_known_as_such() -> None:
    """Otherwise a long search for victims in a large cluster would be repeated in a copy."""
    registry = Registry.discover()
    ours = [registry.get(name) for name in registry.names]
    deciding: tuple[type, ...] = (*IN_DECISIONS, fw.PostFilter)
    assert [p for p in ours if issubclass(p, deciding) and not issubclass(p, InternalPlugin)] == []


def test_between_nodes_the_limit_in_force_counts() -> None:
    now = 0.0
    watched = Guard(Metrics(), budget=5.0, timer=lambda: now)
    watched.limit = 1.0

    def ask(asked: fw.Filter) -> None:
        nonlocal now
        now += 2.0
        watched.check_budget(asked, "Filter")

    watched.call(ours(), "Filter", ask, ours())
    assert watched.overrun is None
    with pytest.raises(PluginOverrun):
        watched.call(plugin(), "Filter", ask, plugin())


def test_an_answer_between_limit_and_budget_is_good_but_noted() -> None:
    now = 0.0

    def dawdle() -> int:
        nonlocal now
        now += 2.0
        return 7

    watched = Guard(Metrics(), budget=5.0, timer=lambda: now)
    watched.limit = 1.0
    assert watched.call(ours(), "Filter", dawdle) == 7
    assert watched.overrun is None
    assert watched.call(plugin(), "Filter", dawdle) == 7
    assert watched.overrun == ("Quiet", "Filter")


class Endless(Exception):
    def __str__(self) -> str:
        while True:
            pass

    __repr__ = __str__


def from_endless() -> None:
    raise ValueError("boom") from Endless()


class Late(Exception):
    def __str__(self) -> str:
        raise texts.Overrun


def test_takes_a_text_that_says_it_took_too_long_at_its_word() -> None:
    with pytest.raises(PluginError, match="longer than its budget of 5s"):
        guard().call(plugin(), "Filter", raises(Late()))


@pytest.mark.parametrize("call", [raises(Endless()), from_endless])
def test_the_watchdog_interrupts_a_text_that_never_ends(call: Callable[[], Any]) -> None:
    watched = guard(budget=0.2)
    with Watchdog(watched), pytest.raises(PluginError, match=r"longer than its budget of 0\.2s"):
        watched.call(plugin(), "Filter", call)
    assert watched.deadline is None


def test_the_watchdog_interrupts_an_answer_that_never_ends_to_show_itself() -> None:
    watched = guard(budget=0.2)
    with Watchdog(watched):
        error = watched.wrong_answer(plugin(), "Filter", Endless(), "a Status")
    assert str(error) == "took longer than its budget of 0.2s"
    assert watched.deadline is None


def test_keeps_nothing_of_what_a_plugin_raised() -> None:
    with pytest.raises(PluginError) as caught:
        guard().call(plugin(), "Filter", raises(Parting()))
    cause = caught.value.__cause__
    assert cause is not None
    assert (type(cause).__name__, str(cause)) == ("Parting", "<Parting that can't be shown>")
    assert cause.__traceback__ is not None


def test_cuts_what_a_plugin_says_as_ours() -> None:
    class Fake(PluginError):
        def __str__(self) -> str:
            return "x" * 20_000_000

    long = PluginError("x" * 20_000_000, plugin="Quiet")
    for error in (long, Fake("", plugin="Quiet")):
        with pytest.raises(PluginError) as caught:
            guard().call(plugin(), "Filter", raises(error))
        assert type(caught.value) is PluginError
        assert len(str(caught.value)) <= 4096


def test_an_answer_can_not_run_code_while_its_time_is_recorded() -> None:
    class Sly:
        @property
        def code(self) -> Any:
            raise SystemExit(9)

    watched = guard()
    watched.record_plugins = True
    answer = Sly()
    assert watched.call(plugin(), "Filter", lambda: answer) is answer


async def taking_signals(work: Callable[[], Any]) -> Any:
    handle_signals(lambda: None)
    return work()


def test_a_keyboard_interrupt_is_the_plugins_where_the_loop_takes_ctrl_c() -> None:
    watched = guard()

    def call() -> None:
        watched.call(plugin(), "Filter", raises(KeyboardInterrupt("boom")))

    with pytest.raises(PluginError, match="KeyboardInterrupt: boom"):
        run(taking_signals(call))
    with pytest.raises(KeyboardInterrupt):
        call()  # the loop has gone


def test_a_strike_between_the_answer_and_the_reset_is_caught() -> None:
    class Late(Guard):
        """Strikes at the last moment: when the deadline is about to be taken away."""

        def __setattr__(self, name: str, value: object) -> None:
            if name == "deadline" and value is None and getattr(self, "deadline", None):
                object.__setattr__(self, name, value)
                raise PluginTimeout
            object.__setattr__(self, name, value)

    with pytest.raises(PluginError, match="longer than its budget"):
        Late(Metrics()).call(plugin(), "Filter", lambda: fw.OK)


def test_the_watchdog_gives_the_signal_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with Watchdog(guard()):
        assert signal.getsignal(signal.SIGALRM) != before
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_the_watchdog_needs_the_main_thread() -> None:
    refused: list[str] = []

    def enter() -> None:
        try:
            Watchdog(guard()).__enter__()
        except RuntimeError as error:
            refused.append(str(error))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert refused == ["the watchdog works by signals and needs the main thread"]


def test_a_failure_on_purpose_is_shown_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    def give_up() -> None:
        raise Failed("nothing to compare with")

    with pytest.raises(PluginError) as caught:
        guard().call(plugin(), "Score", give_up)
    assert str(caught.value) == "nothing to compare with"
    assert not caplog.records
