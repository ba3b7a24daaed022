"""`extender.run()`: an extender as a process, until a signal."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest

from mooring.extender import Extender
from mooring.framework import Node, Pod

extender = Extender()


@extender.filter
def anywhere(pod: Pod, node: Node) -> bool:
    return True


class StopsAt(logging.Handler):
    """Sends SIGTERM as soon as the extender says that it serves."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "Serving an extender":
            signal.raise_signal(signal.SIGTERM)


@pytest.fixture(autouse=True)
def stops_at_once() -> Iterator[None]:
    logger, handler = logging.getLogger("mooring.extender"), StopsAt()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


def test_serves_its_functions_until_sigterm(capsys: pytest.CaptureFixture[str]) -> None:
    extender.run(port=0, cluster=False)
    said = capsys.readouterr().err
    assert 'Serving an extender" address="127.0.0.1"' in said
    assert 'verbs="filter"' in said
    assert "Requested to terminate, exiting" in said
    assert "any client" not in said


def test_warns_of_a_port_that_others_reach(capsys: pytest.CaptureFixture[str]) -> None:
    extender.run(address="0.0.0.0", port=0, cluster=False)
    assert (
        "any client that reaches the port may ask: no client certificates are required"
        in capsys.readouterr().err
    )
