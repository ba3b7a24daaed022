"""The recorded decisions, made by a `Scheduler` as `mooring run` makes it: by class where it can.

Each is made twice: for a class that was never met, and for the same class after every node has
changed and changed back, so that kept answers are brought up to date.
"""

from __future__ import annotations

import asyncio
import functools
import json
from typing import Any

import msgspec
import pytest
from tests.parity.recordings import FAMILIES, recordings

from mooring import config as cfg
from mooring.cache.pods import Pod
from mooring.framework.state import CycleState
from mooring.scheduler.cycle import Decision
from mooring.scheduler.scheduler import Scheduler
from mooring.simulator.claims import allocating, assume_in_flight
from mooring.simulator.clock import EPOCH
from mooring.simulator.cluster import LocalCluster
from mooring.simulator.scenario import Scenario
from mooring.testing import pod as pod_of
from mooring.testing.builders import ZONE


@pytest.mark.parametrize("family", FAMILIES)
def test_a_scheduler_decides_as_recorded(family: str) -> None:
    different: list[str] = []
    count = by_class = 0
    with asyncio.Runner() as runner:
        for scenario, expect in recordings(family):
            if expect["outcome"] == "Gated":
                continue
            rig = Rig(scenario, runner.get_loop())
            decisions = {"at first": rig.decide()}
            by_class += rig.decided_by_class
            rig.change_and_change_back()
            decisions["after changes"] = rig.decide()
            for when, decision in decisions.items():
                found = difference(expect, scenario, decision)
                if found:
                    different.append(f"{scenario.id} {when}: {found}")
            count += 1
    assert count
    assert not different, f"{len(different)} of {count} differ:\n" + "\n".join(different[:10])
    assert by_class > count // 2


class FrozenClock:
    """Nothing waits in a decision."""

    def now(self) -> float:
        return EPOCH

    async def sleep(self, seconds: float) -> None:
        raise AssertionError


class Rig:
    """A scheduler that knows the cluster of a scenario."""

    def __init__(self, scenario: Scenario, loop: asyncio.AbstractEventLoop) -> None:
        self._scenario = scenario
        self._loop = loop
        cluster = LocalCluster()
        self._scheduler = Scheduler(
            configuration(scenario), client=cluster, recorder=cluster, clock=FrozenClock()
        )
        cache = self._scheduler.cache
        for node in sorted(scenario.cluster.nodes, key=lambda node: node.metadata.name):
            cache.put_node(node)
        for api in scenario.cluster.pods:
            pod = Pod(api)
            if pod.node_name:
                cache.put_pod(pod)
            elif not pod.is_finished:
                self._scheduler.queue.nominator.nominate(pod, None)
        for value in scenario.cluster.other_objects():
            cache.objects.put(value)
        (runtime,) = self._scheduler.runtimes.values()
        assume_in_flight(allocating(runtime.profile), scenario.in_flight, cache.objects)

    @property
    def decided_by_class(self) -> int:
        return int(self._scheduler.metrics.decisions.labels("class").value)

    def decide(self) -> Decision:
        """The decision for a pod of the scenario's class, as the scheduler's loop makes it."""
        (runtime,) = self._scheduler.runtimes.values()
        pod = Pod(self._scenario.pod)
        return self._loop.run_until_complete(
            runtime.cycle.decide(CycleState(), pod, self._scheduler.cache.nodes)
        )

    def change_and_change_back(self) -> None:
        """Every node gets another zone and a pod; a decision is made; they are as before."""
        cache = self._scheduler.cache
        guests: list[Pod] = []
        for node in self._scenario.cluster.nodes:
            name = node.metadata.name
            labels = {**node.metadata.labels, ZONE: "elsewhere"}
            meta = msgspec.structs.replace(node.metadata, labels=labels)
            cache.put_node(msgspec.structs.replace(node, metadata=meta))
            guests.append(pod_of(f"guest-of-{name}", cpu="1", on=name))
            cache.put_pod(guests[-1])
        self.decide()
        for guest in guests:
            cache.remove_pod(guest)
        for node in self._scenario.cluster.nodes:
            cache.put_node(node)


def configuration(scenario: Scenario) -> cfg.KubeSchedulerConfiguration:
    name = scenario.pod.spec.scheduler_name or cfg.DEFAULT_SCHEDULER_NAME
    profile = {"schedulerName": name, **(scenario.profile or {})}
    header = {"apiVersion": cfg.API_VERSION, "kind": cfg.KIND}
    return loaded(json.dumps({**header, "profiles": [profile]}))


@functools.cache
def loaded(text: str) -> cfg.KubeSchedulerConfiguration:
    return cfg.load_text(text, "profile")


def difference(expect: dict[str, Any], scenario: Scenario, got: Decision) -> str:
    """What is not as recorded; "" if all is."""
    outcome, message = expect["outcome"], got.status.message
    feasible = expect.get("feasible", [])
    if outcome == "Scheduled" or len(feasible) == 1:  # a single one is taken without scores
        nominated = scenario.pod.status.nominated_node_name
        if nominated in feasible:
            best, found = [nominated], 1
        else:
            best, found = expect.get("best", feasible), len(feasible)
        if got.node_name not in best or got.found != found:
            return f"expected one of {best} of {found}, got {got.node_name!r} of {got.found}"
        return ""
    if outcome == "Error":
        return "" if not (got.status.ok or got.status.rejected) else f"expected an error: {message}"
    expected = expect.get("fitErrorFinal", expect["fitError"])
    return "" if message == expected else f"expected {expected!r}, got {message!r}"
