"""A journal that cannot be written ends, with one warning; scheduling goes on."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.controlplane.waiting import wait_until

from mooring.lens import background
from mooring.lens.journal import DecisionJournal
from mooring.lens.record import DecisionRecord
from mooring.simulator import Simulation
from mooring.testing import node, pod

UNWRITABLE = [Path("/sys"), Path("/proc"), Path(__file__)]


@pytest.mark.parametrize("parent", UNWRITABLE, ids=["read-only", "kernel", "no folder"])
def test_a_folder_that_cannot_be_written_ends_the_journal_with_one_warning(
    parent: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not parent.exists():
        pytest.skip(f"{parent} is not here")
    monkeypatch.setattr(background, "PERIOD", 0.01)
    with caplog.at_level(logging.WARNING), Simulation(keep_attempts=False) as sim:
        journal = DecisionJournal(parent / "journal", sim.scheduler)
        record = DecisionRecord(sim.clock.now)
        record.add_sink(journal)
        sim.scheduler.ledger = record
        journal.start()
        sim.apply(node("a"))
        sim.schedule(*(pod(f"p{i}") for i in range(5)))
        wait_until(lambda: journal._is_broken, what="the journal has ended")
        sim.schedule(*(pod(f"p{i}") for i in range(5, 10)))
        journal.close()
        assert all(sim.node_of(f"p{i}") == "a" for i in range(10))
    told = [one for one in caplog.records if "the journal has ended" in one.message]
    assert len(told) == 1


FULL = textwrap.dedent(
    """
    import resource, signal, sys
    from pathlib import Path
    from mooring.lens import background
    from mooring.lens.journal import DecisionJournal
    from mooring.lens.record import DecisionRecord
    from mooring.simulator import Simulation
    from mooring.testing import node, pod

    background.PERIOD = 0.01
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with Simulation(keep_attempts=False) as sim:
        record = DecisionRecord(sim.clock.now)
        journal = DecisionJournal(Path(sys.argv[1]), sim.scheduler)
        journal.start()
        record.add_sink(journal)
        sim.scheduler.ledger = record
        sim.apply(*(node(f"n{i}", cpu=64) for i in range(20)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000,) * 2)
        for i in range(400):
            sim.schedule(pod(f"p{i}", cpu="100m"))
        journal.close()
        print(sum(bool(sim.node_of(f"p{i}")) for i in range(400)))
    """
)


def test_a_full_disk_ends_the_journal_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "journal")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "400\n"
    assert done.stderr.strip() == "the journal has ended; scheduling goes on"
