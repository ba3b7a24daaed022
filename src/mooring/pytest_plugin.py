"""Fixtures for users' tests; active as soon as mooring is installed beside pytest.

Imports are inside the fixtures: a project that has mooring installed but does not use it in a test
run should not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mooring.cluster.embedded import RunningScheduler
    from mooring.simulator import Simulation
    from mooring.testing.sandbox import Sandbox


@pytest.fixture
def mooring_simulation() -> Iterator[Callable[..., Simulation]]:
    """Make in-process clusters with a scheduler on virtual time; they are closed after the test.

    def test_my_plugin(mooring_simulation):
        sim = mooring_simulation(plugins=[MyPlugin], config=CONFIG)
    """
    from mooring.simulator import Simulation

    made: list[Simulation] = []

    def make(**options: Any) -> Simulation:
        simulation = Simulation(**options)
        made.append(simulation)
        return simulation

    yield make
    for simulation in made:
        simulation.close()


@pytest.fixture
def mooring_cluster() -> Iterator[Sandbox]:
    """An embedded cluster on virtual time: API server, controllers and kubelets, no nodes yet.

    def test_my_manifest(mooring_cluster, mooring_scheduler):
        mooring_cluster.add_nodes(3, cpu="8")
        mooring_scheduler(plugins=[MyPlugin], config=CONFIG)
        mooring_cluster.apply(MANIFEST)
        mooring_cluster.wait_until_running()
    """
    from mooring.testing.sandbox import Sandbox

    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def mooring_scheduler(mooring_cluster: Sandbox) -> Callable[..., RunningScheduler]:
    """Start a scheduler on `mooring_cluster`: `mooring_scheduler(plugins=[MyPlugin], config=…)`."""
    return mooring_cluster.start_scheduler


@pytest.fixture
def mooring_build() -> Callable[..., Any]:
    """Build one plugin with its arguments: `mooring_build(Headroom, reserve=0.25)`."""
    from mooring.testing.build import build

    return build


@pytest.fixture
def mooring_check() -> Callable[..., None]:
    """Check that a plugin keeps the contract: `mooring_check(Headroom)`."""
    from mooring.testing.checks import check_plugin

    return check_plugin
