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
settings.register_profile("mooring", deadline=None, max_examples=sized(50))
settings.load_profile("mooring")


def pytest_collection_finish() -> None:
    """Collect garbage as `mooring run` does: rarely, and never look at modules and tests again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    # A command that reads a cluster first looks for garbage among all objects: here, two seconds.
    pytest.MonkeyPatch().setattr(gc, "unfreeze", lambda: None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Give each `async def test_…` an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def restored_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget modules that a test has written, and where commands looked for them."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - modules:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(written):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Leave the logging of the other tests as it was: commands set it up for themselves."""
    root = logging.getLogger()
    names = [name for name in root.manager.loggerDict if name.startswith("mooring")]
    loggers = [root, *map(logging.getLogger, [*names, "mooring", "aiohttp", "asyncio"])]
    loggers += [logging.getLogger(f"mooring.{room}") for room in logs._PER_POD]
    levels = [(known, known.level) for known in loggers]
    handlers = list(root.handlers)
    yield
    for known, level in levels:
        if known.level != level:  # setting it makes every logger forget what it knows
            known.setLevel(level)
    root.handlers[:] = handlers
