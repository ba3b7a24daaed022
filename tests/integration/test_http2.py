"""Our HTTP/2 and the real API server's: many requests on one connection, large ones, watches."""

from __future__ import annotations

import asyncio
import json

from tests.controlplane.cluster import ControlPlane

from mooring.client.http import HttpTransport
from mooring.client.kubeconfig import load_kubeconfig
from mooring.client.transport import Request

COUNT = 200
LARGE = "x" * 50_000  # bytes; all together more than any window


def test_requests_share_a_connection_in_http_2_and_watches_have_their_own(
    control_plane: ControlPlane, namespace: str
) -> None:
    endpoint = load_kubeconfig(str(control_plane.kubeconfig_for(control_plane.admin_user)))
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    async def scenario() -> None:
        transport = HttpTransport(endpoint, user_agent="mooring-test")
        try:
            made = await asyncio.gather(*(transport.send(create(at)) for at in range(COUNT)))
            assert {answer.status for answer in made} == {201}
            listed = await transport.send(Request(method="GET", path=path))
            items = json.loads(listed.body)["items"]
            mine = [item["data"]["text"] for item in items if "data" in item]
            assert sorted(mine).count(LARGE) == COUNT
            async with transport.stream(Request(method="GET", path=f"{path}?watch=1")) as stream:
                async for part in stream.chunks():
                    assert b'"ADDED"' in part
                    break
            sessions, tls = transport._sessions, endpoint.tls
            assert sessions is not None
            assert tls is not None
            session = sessions.usable(tls.context())
            assert session is not None
            assert session.answers == COUNT + 1
        finally:
            await transport.close()

    def create(number: int) -> Request:
        value = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"map-{number}"},
            "data": {"text": LARGE},
        }
        return Request(method="POST", path=path, body=json.dumps(value).encode())

    asyncio.run(scenario())
