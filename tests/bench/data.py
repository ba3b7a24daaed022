"""Raw data as `bench.versus` writes it, with numbers that a test wants."""

from __future__ import annotations

from typing import Any

import msgspec
from bench.versus.raw import Run, Setup

SETUP = Setup(
    nodes=5000,
    pods=3000,
    rounds=3,
    workloads=("basic", "spread"),
    deadline=300.0,
    command="python -m bench.versus --nodes 5000",
    date="2026-01-01",
    machine={"cores": "2"},
    versions={"mooring": "1.0"},
)


def run(workload: str, scheduler: str, number: int, **own: Any) -> Run:
    """A run in which all went well, unless `own` says otherwise."""
    usual = Run(
        workload=workload,
        scheduler=scheduler,
        round=number,
        asked=3000,
        bound=3000,
        first_bind=1.0,
        span=5.0,
        cpu=3.0,
        cpu_quiet=3.3,
        peak_memory=100.0,
    )
    return msgspec.structs.replace(usual, **own)


def all_runs(setup: Setup = SETUP) -> list[Run]:
    """A whole benchmark, in which mooring is three times as fast with a quarter of the CPU."""
    return [
        run(
            workload,
            scheduler,
            number,
            span=(10.0 if scheduler == "mooring" else 30.0) + number / 10,
            cpu=3.0 if scheduler == "mooring" else 12.0,
        )
        for workload in setup.workloads
        for scheduler in setup.schedulers
        for number in range(1, setup.rounds + 1)
    ]
