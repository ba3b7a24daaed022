"""The real control planes for tests, shared and swept after each test.

One is for tests that only use it, another for tests that hurt its programs. They rest while no test
needs them: an idle one takes a fiftieth of a processor.

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

    def __init__(self, *, durable: bool) -> None:
        self.running: ControlPlane | None = None
        self._durable = durable
        self._users = 0

    def use(self) -> Iterator[ControlPlane]:
        if self.running is None:
            self.running = ControlPlane(durable=self._durable).__enter__()
        self._users += 1
        try:
            yield self.running
        finally:
            self._users -= 1
            if not self._users:
                self.running.close()
                self.running = None


_SHARED = {
    "shared_control_plane": _Shared(durable=False),
    "shared_durable_control_plane": _Shared(durable=True),
}


@pytest.fixture(scope="session")
def shared_control_plane(real_programs: None) -> Iterator[ControlPlane]:
    """Ask for `control_plane` instead, which is this one, swept after the test."""
    yield from _SHARED["shared_control_plane"].use()


@pytest.fixture(scope="session")
def shared_durable_control_plane(real_programs: None) -> Iterator[ControlPlane]:
    """Ask for `durable_control_plane` instead, which is this one, swept after the test."""
    yield from _SHARED["shared_durable_control_plane"].use()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in _used_by(item):
        if (plane := _SHARED[name].running) is not None:
            plane.wake()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    yield
    if nextitem is not None and nextitem.path == item.path:
        return  # what the tests of a file share may still need it
    for name in _SHARED.keys() - _used_by(nextitem):
        if (plane := _SHARED[name].running) is not None:
            plane.rest()


def _used_by(item: pytest.Item | None) -> set[str]:
    names = set(getattr(item, "fixturenames", ()))
    callspec = getattr(item, "callspec", None)
    if "control_plane" in names and (
        not callspec or callspec.params.get("control_plane") != EMBEDDED
    ):
        names.add("shared_control_plane")
    return names & _SHARED.keys()


EMBEDDED = "embedded"
on_both = pytest.mark.parametrize("control_plane", ["real", EMBEDDED], indirect=True)
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
    if getattr(request, "param", "real") == EMBEDDED:
        with EmbeddedPlane() as embedded:
            yield embedded
        return
    shared: ControlPlane = request.getfixturevalue("shared_control_plane")
    if shared.admin.list("Pod") or shared.admin.list("Node"):
        shared.reset()  # left by tests that ask for `shared_control_plane` itself
    yield shared
    shared.reset()


@pytest.fixture
def durable_control_plane(shared_durable_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """One whose programs may be hurt; its etcd writes through to the disk."""
    yield shared_durable_control_plane
    shared_durable_control_plane.reset()


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
