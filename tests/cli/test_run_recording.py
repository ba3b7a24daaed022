"""Where `mooring run` writes and sends its record, as its flags say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.test_run_settings import settled
from tests.lens.test_otlp_push import Collector, collector

from mooring.cli import main
from mooring.cli.run.recording import recording
from mooring.observe.metrics import Metrics
from mooring.simulator import Simulation
from mooring.testing import node, pod

__all__ = ["collector"]  # a fixture


def record(*flags: str) -> None:
    """What a scheduler does with these flags: it finds a node for one pod, and none for another."""
    options = settled("--secure-port=0", *flags).options
    with (
        Simulation(keep_attempts=False) as sim,
        recording(sim.scheduler, options, Metrics(), dict) as recorded,
    ):
        assert recorded.record is not None
        sim.apply(node("n", cpu=2))
        sim.schedule(pod("web", cpu=1))
        sim.schedule(pod("huge", cpu=64))


def test_a_record_file_has_all_attempts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "decisions.db"
    record(f"--record-file={file}", "--record-file-limit=1Mi")
    assert main(["records", str(file), "--pod", "web"]) == 0
    assert "scheduled" in capsys.readouterr().out
    assert main(["records", str(file), "--pod", "huge"]) == 0
    assert "Insufficient cpu" in capsys.readouterr().out


def test_a_collector_gets_the_share_that_was_asked_for(collector: Collector) -> None:
    record(f"--record-otlp={collector.url}", "--record-otlp-share=1")
    assert sorted(collector.pods) == ["huge", "web"]
    collector.spans.clear()
    record(f"--record-otlp={collector.url}", "--record-otlp-share=0")
    assert collector.pods == []
