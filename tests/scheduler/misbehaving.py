"""Plugins that behave for everybody except the pod "victim"."""

from collections.abc import Callable
from typing import Any

from tests.scheduler.recording import USUAL, Log, columns, place, probe, world

import mooring.framework as fw
from mooring.simulator import Simulation
from mooring.testing.builders import pod

SYNC = (
    "pre_enqueue",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "normalize_score",
    "reserve",
    "unreserve",
    "permit",
    "pre_flight",
)
ASYNC = ("pre_bind", "bind", "post_bind")
SILENT = ("unreserve", "post_bind")
"""Points that can't fail a pod any more: accidents there are only logged."""

Deed = Callable[..., Any]


def only_to_the_victim(deed: Deed) -> Deed:
    """An answer that does `deed(*input)` for the victim and the usual thing for others."""

    def answer(self: Any, *args: Any) -> Any:
        given = next(arg for arg in args if isinstance(arg, fw.Pod))
        return deed(*args) if given.name == "victim" else USUAL

    return answer


def cornered(point: str, deed: Deed, log: Log, budget: float = 5.0) -> Simulation:
    """A world where First does `deed` to the victim at a point that is sure to be reached."""
    answers: dict[str, Any] = {}
    if point == "post_filter":
        answers["filter"] = only_to_the_victim(lambda *_: fw.Status.unschedulable("full"))
    if point == "unreserve":
        answers["permit"] = only_to_the_victim(lambda *_: fw.Status.unschedulable("no"))
    answers[point] = only_to_the_victim(deed)
    return world(probe("First", log, **answers), probe("Second", log), budget=budget)


def try_the_victim_and_then_an_innocent(sim: Simulation, log: Log, point: str) -> str:
    """Both pods meet the plugin; returns what became of the victim in words that name the culprit.

    Whatever happened, the scheduler works on and the columns hold what they did before.
    """
    before = columns(sim)
    victim = pod("victim", cpu=1, labels={"app": "x"})
    sim.schedule(victim)
    assert f"First.{point}" in log
    outcome = f"{place(sim, 'victim')}: {sim.why('victim')}"
    if sim.node_of("victim") == "":
        assert sim.scheduler.cache.pod_count == 0
        assert columns(sim) == before
    sim.schedule(pod("innocent", cpu=1))
    assert sim.node_of("innocent") != ""
    sim.delete(victim, pod("innocent", uid=sim.pod("innocent").metadata.uid))
    sim.settle()
    assert columns(sim) == before
    return outcome
