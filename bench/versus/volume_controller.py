"""Binds claims to the volumes that a scheduler chose, in place of the volume controller."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from tests.controlplane.plane import Plane

from bench.shapes import BIND_COMPLETED

_PATH = "/api/v1/persistentvolumes"


class VolumeController:
    """A thread that watches volumes while a run lasts."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._trust = ssl.create_default_context(cafile=str(plane.trusted))
        self._stopping = False
        self._connection: http.client.HTTPSConnection | None = None
        self._thread = threading.Thread(target=self._run, name="volumes", daemon=True)

    def __enter__(self) -> Self:
        self._connection = self._watch()
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping = True
        if self._connection is not None and self._connection.sock is not None:
            # Not the method of the TLS layer, which the reading thread is inside of.
            with suppress(OSError):
                socket.socket.shutdown(self._connection.sock, socket.SHUT_RDWR)
        self._thread.join()

    def _watch(self) -> http.client.HTTPSConnection:
        place = urlsplit(self._plane.server)
        host, port = place.hostname or "", place.port or 443
        listed = self._plane.admin.request("GET", f"{_PATH}?limit=1")
        version = listed["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
        connection = http.client.HTTPSConnection(host, port, context=self._trust)
        headers = {"Authorization": f"Bearer {self._plane.token}"}
        connection.request("GET", f"{_PATH}?{urlencode(query)}", headers=headers)
        return connection

    def _run(self) -> None:
        assert self._connection is not None
        try:
            for line in self._connection.getresponse():
                volume: dict[str, Any] = json.loads(line)["object"]
                if "claimRef" in volume["spec"]:
                    self._bind(volume)
        except Exception:
            if not self._stopping:
                raise

    def _bind(self, volume: dict[str, Any]) -> None:
        claim = volume["spec"]["claimRef"]
        change = {
            "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
            "spec": {"volumeName": volume["metadata"]["name"]},
        }
        admin = self._plane.admin
        admin.patch("PersistentVolumeClaim", claim["name"], change, claim["namespace"])
