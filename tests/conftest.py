"""Fixtures for all rooms."""

import logging
from collections.abc import Iterator

import pytest

from mooring.observe import log as logs


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Leave the logging of the other tests as it was."""
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
