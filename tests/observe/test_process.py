import gc
import os
import time
from pathlib import Path

import pytest
from tests.observe.parse_exposition import read

from mooring.observe.exposition import Exposition
from mooring.observe.family import MetricsRegistry
from mooring.observe.process import add_process_metrics


def scrape(proc: Path = Path("/proc")) -> dict[str, float]:
    registry = MetricsRegistry()
    add_process_metrics(registry, proc)
    seen = read(Exposition(registry).render())
    assert not any(family.stability for family in seen.values())
    return {name: family.samples[0].value for name, family in seen.items()}


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_shows_what_the_process_uses() -> None:
    seen = scrape()
    assert seen["process_cpu_seconds_total"] > 0
    assert 1e6 < seen["process_resident_memory_bytes"] < seen["process_virtual_memory_bytes"]
    assert 3 <= seen["process_open_fds"] <= seen["process_max_fds"]
    assert seen["process_start_time_seconds"] <= time.time()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_counts_open_files_anew_at_each_scrape(tmp_path: Path) -> None:
    registry = MetricsRegistry()
    add_process_metrics(registry)
    shown = Exposition(registry)

    def count() -> float:
        return read(shown.render())["process_open_fds"].samples[0].value

    before = count()
    with open(tmp_path / "a", "w", encoding="utf-8"):
        assert count() == before + 1
    assert count() == before


def test_shows_what_the_garbage_collector_did() -> None:
    registry = MetricsRegistry()
    add_process_metrics(registry)
    shown = Exposition(registry)

    def collections() -> list[float]:
        return [s.value for s in read(shown.render())["python_gc_collections_total"].samples]

    before = collections()
    gc.collect()
    after = collections()
    assert len(after) == 3
    assert after[2] > before[2]


def test_leaves_out_what_the_system_does_not_tell(tmp_path: Path) -> None:
    seen = scrape(tmp_path)
    assert "process_cpu_seconds_total" in seen
    assert "process_resident_memory_bytes" not in seen


def test_reads_past_a_name_with_brackets_and_spaces(tmp_path: Path) -> None:
    (tmp_path / "self" / "fd").mkdir(parents=True)
    (tmp_path / "self" / "fd" / "0").touch()
    rest = " ".join(str(number) for number in range(4, 53))
    (tmp_path / "self" / "stat").write_text(f"7 (a) b (c)) S {rest}\n")
    (tmp_path / "stat").write_text("cpu 1 2 3\nbtime 1000\n")
    seen = scrape(tmp_path)
    ticks = os.sysconf("SC_CLK_TCK")
    assert seen["process_start_time_seconds"] == pytest.approx(1000 + 22 / ticks)
    assert seen["process_virtual_memory_bytes"] == 23
    assert seen["process_resident_memory_bytes"] == 24 * os.sysconf("SC_PAGE_SIZE")
    assert seen["process_open_fds"] == 0
