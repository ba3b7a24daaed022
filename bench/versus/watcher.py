"""Sees pods get bound, and when: a thread that does as little as possible, as it shares the cores.

The server is asked only for pods that have a node, and only for their metadata: about a bind there
is one short line. Victims of preemption are watched until the first of them is gone: the server
encodes each change of each of them for this watch alone.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlencode, urlsplit

import msgspec
from tests.controlplane.plane import Plane

from bench.versus.pods import MEASURED

_PODS = "/api/v1/pods"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = _METADATA.replace("Metadata;", "MetadataList;")


class _Meta(msgspec.Struct):
    name: str = ""
    labels: dict[str, str] = {}


class _Object(msgspec.Struct):
    metadata: _Meta


class _Line(msgspec.Struct):
    type: str
    object: _Object


_decoder = msgspec.json.Decoder(_Line)


class Watcher:
    """Watches the measured pods until `total` of them are bound.

    `on_first_bind` is called, in the thread, when the first one is.
    """

    def __init__(self, plane: Plane, total: int, on_first_bind: Callable[[], None]) -> None:
        self.done: threading.Event = threading.Event()
        self.bound: dict[str, float] = {}  # pod -> when it was seen, on the monotonic clock
        self.began: float | None = None  # when the first one was bound, or a victim removed for it
        self.failure: BaseException | None = None
        self._place = urlsplit(plane.server)
        self._trust = ssl.create_default_context(cafile=str(plane.trusted))
        self._headers = {"Authorization": f"Bearer {plane.token}"}
        self._total = total
        self._on_first_bind = on_first_bind
        self._lock = threading.Lock()  # of the two below, so that no new connection is overlooked
        self._stopping = False
        self._socket: socket.socket | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> None:
        """Start, and wait until nothing that happens from now on is missed."""
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            if self._socket is not None:
                # Not the method of the TLS layer, which the reading thread is inside of.
                with suppress(OSError):  # closed by the server or by the thread
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    # --- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping and not self.done.is_set():
                version = self._list()
                self._ready.set()
                self._watch(version)
        except Exception as error:  # whatever a connection that is shut down raises, if we stop
            if not self._stopping:
                self.failure = error
        finally:
            self._ready.set()
            self.done.set()

    def _list(self) -> str:
        """Note what is bound already; the version to watch from."""
        response, connection = self._ask({}, _METADATA_LIST)
        try:
            found = json.loads(response.read())
        finally:
            connection.close()
        for item in found["items"] or ():
            self._saw_bound(msgspec.convert(item["metadata"], _Meta))
        return str(found["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> None:
        """Follow what happens, until the server ends it or victims need not be watched any more."""
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
        response, connection = self._ask(query, _METADATA)
        rest = b""
        try:
            while not self.done.is_set() and (chunk := response.read1(65536)):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    seen = _decoder.decode(line)
                    if seen.type == "ADDED":
                        self._saw_bound(seen.object.metadata)
                    elif seen.type == "DELETED" and self.began is None:
                        self.began = time.monotonic()
                        return  # from now on, without victims
        finally:
            connection.close()

    def _saw_bound(self, pod: _Meta) -> None:
        if pod.labels.get(MEASURED) != "yes":
            return
        if not self.bound:
            self._on_first_bind()
        now = self.bound.setdefault(pod.name, time.monotonic())
        if self.began is None:
            self.began = now
        if len(self.bound) >= self._total:
            self.done.set()

    def _ask(
        self, query: dict[str, str], accept: str
    ) -> tuple[http.client.HTTPResponse, http.client.HTTPSConnection]:
        labels = MEASURED if self.began is None else f"{MEASURED}=yes"
        asked = {"fieldSelector": "spec.nodeName!=", "labelSelector": labels, **query}
        host, port = self._place.hostname or "", self._place.port or 443
        connection = http.client.HTTPSConnection(host, port, context=self._trust)
        try:
            connection.connect()
            with self._lock:
                if self._stopping:
                    raise ConnectionAbortedError("told to stop")
                self._socket = connection.sock
            headers = {**self._headers, "Accept": accept}
            connection.request("GET", f"{_PODS}?{urlencode(asked)}", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                said = response.read(300).decode(errors="replace")
                raise http.client.HTTPException(f"watch of pods: {response.status} {said}")
        except BaseException:
            connection.close()
            raise
        return response, connection
