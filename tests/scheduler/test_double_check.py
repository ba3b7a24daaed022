"""`--check-decisions` finds decisions that differ from a full evaluation, and only those."""

from __future__ import annotations

from typing import ClassVar

import pytest

import mooring.framework as fw
from mooring.simulator import Simulation
from mooring.testing import node, pod

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {enabled: [{name: Moody}]}
"""


class Moody(fw.Filter, fw.Score):
    """Says that only nodes matter, and has answers that can be changed."""

    name = "Moody"
    depends_on = fw.NODE
    wakes_on = ()
    failures: ClassVar[int] = 0  # of the next calls
    refuses: ClassVar[str] = ""
    likes: ClassVar[str] = "a"

    def cache_key(self, pod: fw.Pod) -> None:
        return None

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        if Moody.failures:
            Moody.failures -= 1
            raise RuntimeError("not now")
        return fw.Status.unschedulable("disliked") if node.name == Moody.refuses else fw.OK

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 if node.name == Moody.likes else 0


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("failures", "refuses", "likes"):
        monkeypatch.setattr(Moody, name, getattr(Moody, name))


def checked(sim: Simulation) -> tuple[int, int]:
    """Decisions that came out the same, and those that did not."""
    checks = sim.scheduler.metrics.class_checks
    return int(checks.labels("equal").value), int(checks.labels("different").value)


def running() -> Simulation:
    """With answers of Moody that are kept."""
    sim = Simulation(config=CONFIG, plugins=[Moody], keep_attempts=False, check_share=1.0)
    sim.apply(*(node(name) for name in "abc"))
    sim.schedule(*(pod(f"p{i}") for i in range(3)))
    assert checked(sim) == (3, 0)
    return sim


@pytest.mark.parametrize(
    ("member", "value", "difference"),
    [
        ("refuses", "b", "feasible nodes: 3 by class, 2 in full"),
        ("likes", "c", "node: a by class, c in full"),
        (
            "failures",
            1_000,
            'OK by class, running "Moody" filter plugin: RuntimeError: not now in full',
        ),
    ],
)
def test_finds_answers_that_are_out_of_date(
    member: str, value: object, difference: str, caplog: pytest.LogCaptureFixture
) -> None:
    with running() as sim:
        setattr(Moody, member, value)
        sim.schedule(pod("then"))
        assert checked(sim) == (3, 1)
    (found,) = [record for record in caplog.records if hasattr(record, "difference")]
    assert found.levelname == "ERROR"
    assert difference in found.__dict__["difference"]


def test_a_plugin_that_fails_once_in_a_full_evaluation_makes_no_difference() -> None:
    with running() as sim:
        Moody.failures = 1
        sim.schedule(pod("then"))
        assert Moody.failures == 0
        assert checked(sim) == (4, 0)


def test_an_evaluation_that_fails_either_way_makes_no_difference() -> None:
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    odd = {"key": "size", "operator": "Gt", "values": ["many"]}
    wish = {"weight": 1, "preference": {"matchExpressions": [odd]}}
    with running() as sim:
        sim.schedule(
            *(pod(f"odd{i}", affinity={"nodeAffinity": {preferred: [wish]}}) for i in "ab")
        )
        assert "Invalid value" in sim.why("oddb")
        assert checked(sim)[1] == 0
