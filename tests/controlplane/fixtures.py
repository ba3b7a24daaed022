"""The real control plane for tests: shared and swept after each test, or one of its own.

A folder's conftest.py imports what its tests ask for. Without Go these tests are skipped and say
so; with MOORING_REQUIRE_REAL=1 they fail instead.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from tests.controlplane.build import ControlPlaneError, binaries
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.embedded import EmbeddedPlane
from tests.controlplane.objects import namespace as named
from tests.controlplane.plane import Plane


@pytest.fixture(scope="session")
def real_programs() -> None:
    """Builds them, if this is the first time."""
    try:
        binaries()
    except ControlPlaneError as error:
        if os.environ.get("MOORING_REQUIRE_REAL") == "1":
            pytest.fail(f"MOORING_REQUIRE_REAL=1, but {error}")
        pytest.skip(f"{error} (set MOORING_REQUIRE_REAL=1 to make this a failure)")


class _Shared:
    """One control plane for all folders: each that imports the fixture has a session of its own."""

    running: ControlPlane | None = None
    users = 0


@pytest.fixture(scope="session")
def shared_control_plane(real_programs: None) -> Iterator[ControlPlane]:
    """Ask for `control_plane` instead, which is this one, swept after the test."""
    if _Shared.running is None:
        _Shared.running = ControlPlane().__enter__()
    _Shared.users += 1
    try:
        yield _Shared.running
    finally:
        _Shared.users -= 1
        if not _Shared.users:
            _Shared.running.close()
            _Shared.running = None


on_both = pytest.mark.parametrize("control_plane", ["real", "embedded"], indirect=True)
"""A test of a scheduler that must go the same way on the embedded server as on the real one.

Not for tests that need what the embedded server has not: programs and an etcd to be hurt, rules of
RBAC that are obeyed, tokens of service accounts, a front proxy that speaks for others
(`ControlPlane.proxy`), certificates that are rotated.
"""


@pytest.fixture
def control_plane(request: pytest.FixtureRequest, real_programs: None) -> Iterator[Plane]:
    """A running API server without nodes or pods. Its programs are not to be hurt.

    The real one, unless the test is `on_both`.
    """
    if getattr(request, "param", "real") == "embedded":
        with EmbeddedPlane() as embedded:
            yield embedded
        return
    shared: ControlPlane = request.getfixturevalue("shared_control_plane")
    if shared.admin.list("Pod") or shared.admin.list("Node"):
        shared.reset()  # left by tests that ask for `shared_control_plane` itself
    yield shared
    shared.reset()


@pytest.fixture
def fresh_control_plane(real_programs: None) -> Iterator[ControlPlane]:
    """A control plane for this test alone, which may do with it what it likes."""
    with ControlPlane() as running:
        yield running


@pytest.fixture
def namespace(control_plane: Plane) -> str:
    """A namespace for this test alone, so that its binds can be told from those of others."""
    name = f"test-{secrets.token_hex(4)}"
    control_plane.admin.create(named(name))
    return name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the logs of all programs with the failure; their folder is gone soon."""
    report = yield
    arguments: dict[str, Any] = getattr(item, "funcargs", {})
    if report.when == "call" and report.failed:
        for running in {value for value in arguments.values() if isinstance(value, Plane)}:
            report.sections += [(f"log of {name}", tail) for name, tail in running.logs()]
    return report
