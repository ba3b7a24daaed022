"""A server that can't be reached: one line, then one a minute, and one when it is back."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine

import pytest
from tests.client.http_server import always, answer, get, serve

from mooring.api.core import Node, Pod
from mooring.client.client import ApiClient
from mooring.client.component import connector
from mooring.client.endpoint import Endpoint
from mooring.client.errors import Unreachable
from mooring.client.informer import Informer
from mooring.client.reachability import Reachability
from mooring.observe.component import ComponentMetrics


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.message for one in caplog.records if one.levelno >= logging.WARNING]


def test_says_it_once_a_minute_and_when_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    found = Reachability("https://10.0.0.1:6443")
    for second in range(0, 150, 5):
        found.lost("connection refused", float(second))
    found.found(150.0)
    found.found(151.0)
    said = [(one.message, vars(one).get("seconds")) for one in caplog.records]
    lost = "can't reach the API server"
    assert said == [
        (lost, None),
        (lost, 60),
        (lost, 120),
        ("the API server can be reached again", 150),
    ]
    assert all(vars(one)["server"] == "https://10.0.0.1:6443" for one in caplog.records)


def watching(client: ApiClient, kind: type[Pod] | type[Node]) -> Coroutine[None, None, None]:
    return Informer(client, kind, on_put=lambda value: None, on_remove=lambda value: None).run()


async def test_many_watches_of_one_server_say_it_once(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    connect = connector(Endpoint("127.0.0.1", port), ComponentMetrics(), "test")
    transport = connect()
    client = ApiClient(transport)
    tasks = [asyncio.create_task(watching(client, kind)) for kind in (Pod, Node)]
    try:
        await asyncio.sleep(0.2)
        for _ in range(20):
            with pytest.raises(Unreachable) as failed:
                await transport.send(get())
            assert failed.value.is_logged
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await transport.close()
    assert warnings(caplog) == ["can't reach the API server"]
    assert vars(caplog.records[0])["server"] == f"http://127.0.0.1:{port}"


async def test_a_connection_that_works_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with serve(always(answer())) as server:
        endpoint = Endpoint("127.0.0.1", server.port)
        transport = connector(endpoint, ComponentMetrics(), "test")()
        await transport.send(get())
        await transport.close()
    assert not caplog.records
