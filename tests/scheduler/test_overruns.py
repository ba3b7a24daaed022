"""A pod for which a plugin hangs is tried elsewhere; only it, and pods like it, wait."""

import asyncio
import logging
from collections.abc import Hashable, Mapping
from typing import Any

import pytest
from tests.scheduler.recording import USUAL, Log, place, probe, world

from mooring.cache.pods import Pod
from mooring.runtime.guard import PluginTimeout
from mooring.scheduler.overruns import PROBATION, Policy
from mooring.scheduler.trials import Outcome, PodTrial
from mooring.simulator.simulation import Simulation
from mooring.testing.builders import pod

TOO_LONG = Outcome(0.0, "took longer than its budget of 5s", "First", "Score")
FAILED = 'running Score plugins: plugin "First" failed with: took longer than its budget of 5s'


class Watch:
    """The guard's timer, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


class FakeTrials:
    """Keeps trials until the test says how they went."""

    def __init__(self) -> None:
        self.waiting: dict[str, PodTrial] = {}  # by the pod's name
        self.is_closed = False

    def __contains__(self, uid: object) -> bool:
        return uid in [trial.pod.uid for trial in self.waiting.values()]

    def submit(self, trial: PodTrial) -> None:
        assert trial.pod.name not in self.waiting
        self.waiting[trial.pod.name] = trial

    def withdraw(self, key: Hashable) -> list[Pod]:
        pods = [one.pod for one in self.waiting.values() if one.key == key and not one.alone]
        for withdrawn in pods:
            del self.waiting[withdrawn.name]
        return pods

    def close(self) -> None:
        self.is_closed = True

    def end(self, name: str, outcome: Outcome) -> None:
        self.waiting.pop(name).report(outcome)

    @property
    def alone(self) -> set[str]:
        return {name for name, trial in self.waiting.items() if trial.alone}


class Stage:
    """A simulation with two nodes and a plugin that hangs for pods whose label or name says so."""

    def __init__(self, policies: Mapping[str, Policy] | None = None) -> None:
        self.log: Log = []
        self.watch = Watch()
        self.trials = FakeTrials()
        self.takes = 0.0  # seconds for the pods that do not hang

        def score(_self: Any, _state: Any, pod: Pod, _node: Any) -> Any:
            self.log.append(f"scored {pod.name}")
            if pod.labels.get("hang") or pod.name.startswith("bad"):
                raise PluginTimeout  # as the watchdog does
            self.watch.seconds += self.takes
            return USUAL

        self.sim: Simulation = world(probe("First", self.log, score=score))
        self.sim.scheduler.guard.timer = self.watch
        self.overruns = self.sim.scheduler.overruns
        self.overruns.enable(self.trials, policies or {})

    def schedule(self, *names: str, **labels: str) -> None:
        self.sim.schedule(*(pod(name, labels=labels) for name in names))

    def end(self, name: str, outcome: Outcome) -> None:
        self.trials.end(name, outcome)
        self.sim.settle()

    def pass_(self, seconds: float) -> None:
        """Let time pass, for clock and timer."""
        self.watch.seconds += seconds
        self.sim.advance(seconds)

    def events(self, name: str) -> list[tuple[str, str]]:
        return [(e.reason, e.note) for e in self.sim.events if e.pod == f"default/{name}"]


def test_costs_nothing_while_no_plugin_overruns() -> None:
    stage = Stage()
    stage.schedule("p")
    assert stage.sim.node_of("p")
    assert not stage.overruns.is_active
    assert stage.trials.waiting == {}


def test_a_pod_that_stalls_waits_for_a_trial_without_having_failed() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    assert stage.trials.alone == {"p"}
    assert place(stage.sim, "p") == "error backoff"
    assert stage.events("p") == []
    assert stage.log.count("scored p") == 1


def test_a_pod_whose_trial_ended_is_decided_with_the_whole_budget() -> None:
    stage = Stage()
    stage.schedule("bad")
    stage.schedule("slow", app="slow")
    stage.takes = 1.0
    stage.end("slow", Outcome(2.0))
    assert stage.sim.node_of("slow")
    stage.end("bad", Outcome(2.0))  # but this time it hangs
    assert stage.sim.why("bad") == FAILED
    assert stage.trials.waiting == {}


def test_a_pod_whose_trial_overran_fails_and_waits_longer_each_time() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    waits = []
    for _ in range(8):
        stage.end("p", TOO_LONG)
        assert stage.sim.why("p") == FAILED
        waited = 0
        while "p" not in stage.trials.waiting:
            stage.pass_(1)
            waited += 1
        waits.append(waited)
    # Backoff ends with the second after; a trial alone follows, not an attempt.
    assert waits == [11, 21, 41, 81, 161, 321, 601, 601]
    assert stage.trials.alone == {"p"}
    assert stage.log.count("scored p") == 1
    assert ("FailedScheduling", FAILED) in stage.events("p")


def test_pods_of_a_new_kind_are_tried_while_the_plugin_is_on_probation() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    stage.schedule("a", "b", "c", app="web")
    assert stage.trials.waiting.keys() == {"p", "a", "b", "c"}
    assert "scored a" not in stage.log
    stage.end("a", Outcome(0.01))
    assert all(map(stage.sim.node_of, "abc"))  # one vouches for all of its kind
    assert stage.trials.waiting.keys() == {"p"}
    stage.schedule("d", app="web")
    assert stage.sim.node_of("d")


def test_a_kind_with_a_pod_that_hung_vouches_for_no_other() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    stage.schedule("a")
    stage.end("a", Outcome(0.01))
    stage.schedule("bad")  # equal but for the name
    assert stage.trials.alone == {"p", "bad"}
    stage.schedule("b")
    assert "scored b" not in stage.log
    assert not stage.trials.waiting["b"].alone
    assert stage.trials.waiting["b"].is_doubted()
    stage.end("b", Outcome(0.01))
    assert stage.sim.node_of("b")
    stage.end("bad", Outcome(0.01))  # it was another reason: all is as before
    assert "bad" in stage.trials.waiting


def test_a_pod_that_does_not_end_in_a_batch_is_tried_alone() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    stage.schedule("q", hang="yes", n="2")
    assert stage.trials.alone == {"p"}
    stage.end("q", TOO_LONG)
    assert stage.trials.alone == {"p", "q"}
    assert stage.events("q") == []


def test_three_pods_of_a_kind_are_enough_to_fail_the_others_early() -> None:
    stage = Stage()
    stage.schedule("p", "q", "r", "s", hang="yes")
    assert stage.trials.alone == {"p"}
    stage.end("p", TOO_LONG)
    for name in "qr":
        stage.end(name, TOO_LONG)
        assert stage.events(name) == []
        stage.end(name, TOO_LONG)
        assert stage.sim.why(name) == FAILED
    stage.end("s", TOO_LONG)
    assert stage.sim.why("s") == FAILED


def test_a_pod_that_changed_is_tried_again() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    stage.schedule("a", app="web")
    uid = stage.sim.pod("a").metadata.uid
    stage.sim.apply(pod("a", uid=uid, labels={"app": "other"}))
    stage.end("a", Outcome(0.01))
    assert stage.sim.node_of("a") == ""
    assert "a" in stage.trials.waiting


def test_a_pod_deleted_during_its_trial_is_forgotten() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    assert stage.trials.waiting["p"].is_wanted()
    stage.sim.delete(stage.sim.pod("p"))
    stage.sim.settle()
    assert not stage.trials.waiting["p"].is_wanted()
    stage.end("p", TOO_LONG)
    assert len(stage.sim.scheduler.queue) == len(stage.sim.scheduler.queue.in_flight) == 0


def test_skip_decides_the_pod_without_the_plugin() -> None:
    stage = Stage({"First": "skip"})
    stage.schedule("p", hang="yes")
    stage.end("p", TOO_LONG)
    assert stage.trials.alone == set()  # what is left of the plugins is tried as well
    stage.end("p", Outcome(0.01))
    assert stage.sim.node_of("p")
    note = "decided without plugin First: at Score it took longer than its budget of 5s"
    assert stage.events("p")[0] == ("PluginSkipped", note)
    assert stage.log.count("scored p") == 1
    stage.schedule("q", app="web")
    stage.end("q", Outcome(0.01))
    assert "scored q" in stage.log  # others are decided with it


def test_isolate_tries_every_kind_from_the_start() -> None:
    stage = Stage({"*": "isolate"})
    stage.schedule("a", hang="yes")
    assert "scored a" not in stage.log
    stage.end("a", TOO_LONG)
    stage.end("a", Outcome(0.0, "took more than its 1024Mi of memory", "First", "Score"))
    assert stage.sim.why("a").endswith("failed with: took more than its 1024Mi of memory")
    assert "scored a" not in stage.log


def test_probation_ends_after_a_while_without_overruns(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = Stage()
    stage.schedule("p", hang="yes")
    stage.end("p", TOO_LONG)
    assert stage.overruns.note() == "on probation after overruns: First"
    stage.sim.delete(stage.sim.pod("p"))
    stage.pass_(PROBATION - 1)
    stage.schedule("a")
    assert "a" in stage.trials.waiting
    stage.end("a", Outcome(0.01))
    stage.pass_(PROBATION)
    assert stage.overruns.note() == ""
    stage.schedule("b", app="new")
    assert stage.sim.node_of("b")
    messages = [record.message for record in caplog.records if "probation" in record.message]
    assert len(messages) == 2


def test_slow_pods_get_a_fifth_of_the_time_beside_others() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    stage.schedule("good", app="web")
    stage.end("good", Outcome(0.01))
    stage.schedule("slow", app="slow")
    stage.end("slow", Outcome(2.0))
    for second in range(60):
        stage.schedule(f"good-{second}", app="web")
        assert stage.sim.node_of(f"good-{second}")
        stage.pass_(1)
        if stage.sim.node_of("slow"):
            break
    assert 9 <= second <= 12


def test_slow_pods_get_all_the_time_if_there_are_no_others() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    for name in ("a", "b", "c"):
        stage.schedule(name, app="slow")
        if name == "a":
            stage.end("a", Outcome(2.0))
        assert stage.sim.node_of(name)


def test_counts_overruns_and_plugins_on_probation() -> None:
    stage = Stage()
    stage.schedule("p", hang="yes")
    stage.end("p", TOO_LONG)
    metrics = stage.sim.scheduler.metrics
    assert metrics.plugin_overruns.labels("First", "Score").value == 2
    stage.overruns._measure()
    assert metrics.plugins_on_probation.labels().value == 1


def test_without_trials_a_pod_that_overran_only_waits_longer() -> None:
    log: Log = []
    watch = Watch()

    def dawdle(*_: Any) -> Any:
        watch.seconds += 6
        return USUAL

    with world(probe("First", log, score=dawdle)) as sim:
        sim.scheduler.guard.timer = watch
        sim.schedule(pod("p"))
        assert sim.why("p") == FAILED
        attempts = [len(sim.attempts)]
        for _ in range(3):
            sim.advance(11)
            attempts.append(len(sim.attempts))
    assert attempts == [1, 2, 2, 3]


def test_a_point_after_the_decision_that_overruns_has_its_penalty_too() -> None:
    log: Log = []
    watch = Watch()

    def dawdle(*_: Any) -> Any:
        watch.seconds += 6
        return USUAL

    with world(probe("First", log, reserve=dawdle)) as sim:
        sim.scheduler.guard.timer = watch
        sim.schedule(pod("p"))
        sim.advance(9)
        assert len(sim.attempts) == 1
        sim.advance(2)
        assert len(sim.attempts) == 2


def test_ends_trials_with_the_scheduler() -> None:
    stage = Stage()
    stage.sim.close()
    assert stage.trials.is_closed


@pytest.mark.parametrize("is_ours", [True, False])
def test_others_on_the_loop_get_more_than_one_turn_after_a_long_decision(
    is_ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: Log = []
    began = 0.0

    def dawdle(*_: Any) -> Any:
        nonlocal began
        began += 1
        return USUAL

    with world(probe("First", log, reserve=dawdle), nodes=["a"]) as sim:
        if is_ours:
            sim.scheduler.try_in_copies({})
        time = sim.loop.time
        monkeypatch.setattr(sim.loop, "time", lambda: time() + began)
        sim.apply(pod("p"), pod("q"))

        async def renew() -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            log.append("renewed")

        task = sim.loop.create_task(renew())
        sim.settle()
        sim.advance(1)
        assert task.done()
    steps = [step for step in log if step in ("First.reserve", "renewed")]
    assert (steps[1] == "renewed") == is_ours
