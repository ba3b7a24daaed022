"""Writes that a fence stops leave their place in the rate limit to others."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from tests.loop_rig import LoopRig

from mooring.api.core import Binding
from mooring.api.meta import ObjectMeta, ObjectReference
from mooring.client.client import ApiClient
from mooring.client.errors import Fenced
from mooring.client.flowcontrol import RateLimiter
from mooring.client.transport import Fence, Request, Response

WRITES = 50


class Transport:
    """Asks the fence right before sending, and counts what was sent."""

    sent = 0

    async def send(self, request: Request, fence: Fence | None = None) -> Response:
        if fence is not None:
            fence()
        self.sent += 1
        return Response(201, {}, b"{}")


def bind(client: ApiClient) -> Coroutine[Any, Any, None]:
    target = ObjectReference(kind="Node", name="a")
    return client.bind(Binding(metadata=ObjectMeta(name="p", namespace="default"), target=target))


def test_a_new_term_does_not_wait_for_the_writes_of_the_last_one() -> None:
    term = 1

    def new_fence() -> Fence:
        own = term

        def check() -> None:
            if own != term:
                raise Fenced("another term")

        return check

    transport = Transport()
    with LoopRig() as rig:
        client = ApiClient(transport, limiter=RateLimiter(1, 1), fence=new_fence)  # type: ignore[arg-type]  # reads are not needed
        old = [rig.start(bind(client)) for _ in range(WRITES)]
        assert transport.sent == 1
        term = 2
        new = rig.start(bind(client))
        rig.advance(2.5)
        assert new.done()
        assert transport.sent == 2
        assert all(task.done() for task in old)
        for task in old[1:]:
            with pytest.raises(Fenced):
                task.result()
