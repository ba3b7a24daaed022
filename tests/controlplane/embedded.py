"""The embedded API server in the place of the real one, so that tests can be run on both.

It serves HTTPS from a thread of this process, with its own authority and without controllers and
kubelets, as `ControlPlane` does. There is no etcd and no program to be hurt, no RBAC (`grant` makes
roles that decide nothing) and no authority for front proxies.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tests.certificates import Pair, replace
from tests.controlplane.admin import AdminApi, Object
from tests.controlplane.plane import Plane
from tests.controlplane.users import User

from mooring.cluster.apiserver._auth import Attributes, attributes
from mooring.cluster.apiserver.http import HttpServer
from mooring.cluster.apiserver.protobuf import as_json
from mooring.cluster.apiserver.requests import ADMIN, ApiRequest, ApiResponse, WatchResponse
from mooring.cluster.apiserver.server import ApiServer

Garble = Callable[[Attributes], bytes | None]

_PATIENCE = 120.0  # seconds; a machine may be busy
_TOLD_OF = (("create", "binding"), ("create", "eviction"), ("delete", ""))


class EmbeddedPlane(Plane):
    """One embedded API server; cheap enough that every test has its own.

    Bytes that `garble` gives for a call are the answer to it, with a 200, and the call is not
    carried out. Calls of the rig itself are exempt.
    """

    def __init__(self, garble: Garble = lambda asked: None) -> None:
        super().__init__()
        self._garble = garble
        self._http: HttpServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._is_up = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._live()), name="embedded server"
        )

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._is_up.wait(_PATIENCE), "the embedded server did not start"
        return self

    def close(self) -> None:
        with ExitStack() as stack:
            if os.environ.get("MOORING_KEEP_RIG") != "1":
                stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.callback(self._end)
            stack.callback(self.admin.close)
            stack.callback(self._guests.close)

    def add_user(self, name: str, groups: Sequence[str] = ()) -> User:
        assert self._http is not None, "the server has to run: it signs certificates"
        user = User(name, tuple(groups))
        signed = self._http.client_certificate(name, *groups)
        paths = Pair(signed.certificate, signed.key).write(self.folder, f"user-{user.file_name}")
        return User(name, tuple(groups), *paths)

    # --- the thread ----------------------------------------------------------------------------

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = _AuditedServer(self.folder / "audit.log", self._garble)
        self._http = HttpServer(server, tokens={self.token: ADMIN})
        self.server = await self._http.start()
        replace(self.trusted, self._http.authority)
        self.admin = AdminApi(self.server, self._trust, {"Authorization": f"Bearer {self.token}"})
        self.admin_user = self.add_user("rig-admin", groups=["system:masters"])
        self._is_up.set()
        await self._stop.wait()
        await self._http.close()

    def _end(self) -> None:
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_PATIENCE)


class _AuditedServer(ApiServer):
    """Writes a line about each bind and each removal of a pod, as the real one is told to."""

    def __init__(self, path: Path, garble: Garble) -> None:
        super().__init__()
        self._path = path
        self._garble = garble

    async def handle(self, request: ApiRequest) -> ApiResponse | WatchResponse:
        asked = attributes(request)
        is_ours = request.caller == ADMIN
        if not is_ours and (garbage := self._garble(asked)) is not None:
            return ApiResponse(body=garbage)
        answer = await super().handle(request)
        if asked.resource == "pods" and (asked.verb, asked.subresource) in _TOLD_OF:
            assert isinstance(answer, ApiResponse)
            with self._path.open("a") as file:
                file.write(json.dumps(_line(request, asked, answer.status)) + "\n")
        return answer


def _line(request: ApiRequest, asked: Attributes, code: int) -> Object:
    body = as_json(request).body
    return {
        "verb": asked.verb,
        "user": {"username": request.caller.name, "groups": list(request.caller.groups)},
        "userAgent": request.headers.get("user-agent", ""),
        "objectRef": {
            "resource": asked.resource,
            "namespace": asked.namespace,
            "name": asked.name,
            "subresource": asked.subresource,
        },
        "requestObject": json.loads(body) if body else {},
        "responseStatus": {"code": code},
        "stageTimestamp": datetime.now(UTC).isoformat(),
    }
