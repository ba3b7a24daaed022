"""Fixtures for all rooms."""

import gc
import inspect
import logging
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests.event_loop import run
from tests.sizes import sized

from mooring.observe import log as logs

# How long an example takes says more about the machine than about us.
settings.register_profile("mooring", deadline=None, max_examples=sized(30))
settings.load_profile("mooring")

# Modules and tests are made now, and all of them stay: there is nothing to find among them.
gc.set_threshold(200_000)


def pytest_collection_finish() -> None:
    """Collect garbage as `mooring run` does: rarely, and never look at modules and tests again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    # A command that reads a cluster first collects what an earlier one left, if there are frozen
    # objects: here, it would search those of all tests before.
    pytest.MonkeyPatch().setattr(gc, "get_freeze_count", lambda: 0)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Give each `async def test_…` an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


# What commands set the levels of exists from the beginning.
for _name in ("aiohttp", "asyncio", "mooring", *(f"mooring.{room}" for room in logs._PER_POD)):
    logging.getLogger(_name)


@pytest.fixture(autouse=True)
def restored_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Leave modules and logging of the other tests as they were; this is done 9,000 times."""
    path, newest = list(sys.path), next(reversed(sys.modules))
    root = logging.getLogger()
    levels = [(root, root.level)]
    levels += [
        (known, known.level)
        for known in root.manager.loggerDict.values()
        if isinstance(known, logging.Logger)
    ]
    handlers = list(root.handlers)
    yield
    sys.path[:] = path
    if next(reversed(sys.modules)) != newest:
        forget_modules_in(str(tmp_path_factory.getbasetemp()))
    for known, level in levels:
        if known.level != level:  # setting it makes every logger forget what it knows
            known.setLevel(level)
    root.handlers[:] = handlers


def forget_modules_in(folder: str) -> None:
    """Forget modules that a test has written."""
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(folder):
            del sys.modules[name]
