"""`mooring replay`: what it prints about attempts that another configuration decides otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.simulator.clusters import strategy

from mooring.cli import main
from mooring.lens.journal import DecisionJournal
from mooring.lens.record import DecisionRecord
from mooring.simulator import Simulation
from mooring.testing import node, pod


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes: four small pods on both, one that fits nowhere, and one that takes a node."""
    folder = tmp_path_factory.mktemp("journal")
    with Simulation(keep_attempts=False) as sim:
        record = DecisionRecord(sim.clock.now)
        written = DecisionJournal(folder, sim.scheduler)
        written.start()
        record.add_sink(written)
        sim.scheduler.ledger = record
        sim.apply(node("a", cpu=4), node("b", cpu=4))
        for number in range(4):
            sim.schedule(pod(f"web-{number}", cpu=1))
        sim.schedule(pod("huge", cpu=64))
        sim.schedule(pod("vip", cpu=4, priority=9))
        sim.advance(5)
        written.close()
    return folder


def replayed(
    capsys: pytest.CaptureFixture[str], journal: Path, config: str, *words: str
) -> tuple[int, str]:
    file = journal / "config.yaml"
    file.write_text(config)
    code = main(["replay", str(journal), "--config", str(file), *words])
    return code, capsys.readouterr().out


def test_a_table_says_what_was_decided_otherwise(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = replayed(capsys, journal, strategy("MostAllocated"))
    assert code == 3
    lines = [line.split() for line in said.splitlines()]
    assert "5 decided the same, 3 otherwise; 5 pods placed" in said
    assert "without a node at the end: 1 pod\n" in said
    assert lines[-3:] == [
        ["2", "default/web-1", "b", "a"],
        ["4", "default/web-3", "b", "a"],
        ["6", "default/vip", "no", "node", "b"],
    ]


def test_a_long_table_is_cut(journal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, said = replayed(capsys, journal, strategy("MostAllocated"), "--limit", "1")
    assert "default/web-1" in said
    assert "default/web-3" not in said
    assert said.endswith("and 2 more (--limit, -o json)\n")


def test_evictions_of_the_other_configuration_are_counted(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said = replayed(capsys, journal, strategy("LeastAllocated"))
    assert "8 decided the same, 0 otherwise" in said
    assert "2 pods evicted\n" in said
    assert said.endswith("pods that were evicted in the record left all the same\n")


def test_attempts_of_other_schedulers_are_counted(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = strategy("MostAllocated").replace("default-scheduler", "other")
    code, said = replayed(capsys, journal, f"{other}percentageOfNodesToScore: 50\n")
    assert code == 0
    assert "9 of schedulers that the configuration does not have" in said
    assert "percentageOfNodesToScore: where the scan began is not in the journal" in said


def test_a_configuration_that_can_not_be_read_is_one_line(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(journal), "--config", "/nowhere/config.yaml"]) == 1
    assert capsys.readouterr().err == "/nowhere/config.yaml: No such file or directory\n"
