"""Fixtures for all rooms."""

import logging
import sys
from collections.abc import Iterator

import pytest

from mooring.observe import log as logs


@pytest.fixture(autouse=True)
def restored_path() -> Iterator[None]:
    """Leave the places of modules as they were: commands add the folders they are called in."""
    before = list(sys.path)
    yield
    sys.path[:] = before


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
        known.setLevel(level)
    root.handlers[:] = handlers
