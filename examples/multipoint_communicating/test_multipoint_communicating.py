import asyncio
from pathlib import Path

import mooring.framework as fw
from mooring.simulator import Simulation
from mooring.testing import build, check_plugin, node, pod
from multipoint_communicating import (
    WORD,
    Communicating,
)

CONFIG = Path(__file__).with_name("config.yaml")
SCHEDULER = "sample-scheduler"


class Witness(fw.Reserve):
    """Comes after the plugin at Reserve, so before it at Unreserve; keeps what it is shown."""

    name = "Witness"
    wakes_on = ()

    def __init__(self, args: fw.Args, handle: fw.Handle) -> None:
        super().__init__(args, handle)
        self.seen: list[tuple[str, str, str | None]] = []
        self.states: list[fw.CycleState] = []

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status:
        self.seen.append(("reserve", pod.name, state.get(WORD)))
        self.states.append(state)
        return fw.OK

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        self.seen.append(("unreserve", pod.name, state.get(WORD)))


def test_refuses_my_test_pod_before_it_is_bound() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("a"))
        sim.schedule(pod("my-test-pod", scheduler=SCHEDULER))
        assert sim.attempts[0].decision.node_name == "a"
        assert sim.cluster.bindings == []
        assert sim.why("my-test-pod") == "pod is not permitted"
        assert [(event.reason, event.note) for event in sim.events] == [
            ("FailedScheduling", "pod is not permitted")
        ]


def test_gives_back_what_was_reserved_for_the_refused_pod() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("a", cpu=4, pods=[pod("old", cpu=1)]))
        sim.schedule(pod("my-test-pod", cpu=2, scheduler=SCHEDULER))
        a = sim.scheduler.cache.nodes[0]
        assert [resident.name for resident in a.pods] == ["old"]
        assert a.requested("cpu") == 1000
        assert a.spare("cpu") == 3000


def test_forgets_the_word_when_the_reservation_is_undone() -> None:
    witnessed = f"{CONFIG.read_text()}          - name: Witness\n"
    with Simulation(config=witnessed, plugins=[Witness]) as sim:
        sim.apply(node("a"))
        sim.schedule(*[pod(name, scheduler=SCHEDULER) for name in ("my-test-pod", "other")])
        witness = sim.scheduler.runtimes[SCHEDULER].profile.plugins["Witness"]
        assert isinstance(witness, Witness)
        assert sorted(witness.seen) == [
            ("reserve", "my-test-pod", "never bind"),
            ("reserve", "other", None),
            ("unreserve", "my-test-pod", "never bind"),
        ]
        assert not any(WORD in state for state in witness.states)


def test_tries_the_refused_pod_again_after_its_backoff_and_never_binds_it() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("a"))
        sim.schedule(pod("my-test-pod", scheduler=SCHEDULER))
        assert sim.where("my-test-pod") == "backoff"
        sim.advance(60)
        assert [attempt.number for attempt in sim.attempts][:3] == [1, 2, 3]
        assert sim.where("my-test-pod") == "backoff"
        assert sim.cluster.bindings == []


def test_binds_every_other_pod() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("a"))
        names = ["my-test-pod-2", "my-test", "my-test-pod", "web"]
        sim.schedule(*[pod(name, scheduler=SCHEDULER) for name in names])
        assert sim.placements() == {
            "my-test-pod-2": "a",
            "my-test": "a",
            "my-test-pod": "",
            "web": "a",
        }


def test_knows_nothing_of_an_attempt_that_was_not_reserved() -> None:
    ask = build(Communicating).pre_bind(fw.CycleState(), pod("my-test-pod"), "a")
    assert asyncio.run(ask) == fw.OK


def test_multipoint_communicating_honours_the_contract() -> None:
    check_plugin(Communicating)


def test_leaves_the_place_to_others_after_the_refusal() -> None:
    with Simulation(config=CONFIG) as sim:
        sim.apply(node("a", cpu=1))
        sim.schedule(pod("my-test-pod", cpu=1, scheduler=SCHEDULER))
        assert sim.pod("my-test-pod").status.nominated_node_name == ""
        sim.schedule(pod("other", cpu=1, scheduler=SCHEDULER))
        assert sim.node_of("other") == "a"
