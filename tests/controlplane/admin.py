"""A plain, synchronous client for tests: dictionaries in, dictionaries out.

It has nothing in common with the client under test, so that the two can't be wrong together. It
may be used from several threads.
"""

from __future__ import annotations

import http.client
import json
import select
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

Object = dict[str, Any]
Objects = list[Object]  # inside the class `list` is a method

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_TIMEOUT = 60.0  # seconds without a byte from the server
_NOTHING: Mapping[str, str] = MappingProxyType({})


class ApiFailure(RuntimeError):
    """The server said no."""

    def __init__(self, request: str, code: int, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            status = json.loads(body)
        except ValueError:
            status = {"message": body.decode(errors="replace").strip()}
        self.code: int = code
        self.headers: Mapping[str, str] = headers
        self.reason: str = status.get("reason", "")
        self.message: str = status.get("message", "")
        super().__init__(f"{request}: {code} {self.reason}: {self.message}")


class AdminApi:
    """One API server, seen by one user; `trust` is asked anew for each connection.

    Kinds are named "Pod" in the core group, "storage.k8s.io/v1/CSINode" elsewhere.
    """

    def __init__(
        self,
        server: str,
        trust: Callable[[], ssl.SSLContext],
        headers: Mapping[str, str] = _NOTHING,
    ) -> None:
        place = urlsplit(server)
        self._address = (place.hostname or "", place.port or 443)
        self._trust = trust
        self._headers = {"Accept": "application/json", **headers}
        self._idle: list[http.client.HTTPSConnection] = []
        self._lock = threading.Lock()
        self._resources: dict[str, dict[str, Object]] = {}

    # --- objects -------------------------------------------------------------------------------

    def create(self, value: Object, namespace: str = "") -> Object:
        return self.request("POST", self._collection_for(value, namespace), value)

    def create_many(self, values: Iterable[Object], concurrency: int = 16) -> Objects:
        """Create objects side by side; what the server made of them, in the order given."""
        with ThreadPoolExecutor(concurrency) as threads:
            return list(threads.map(self.create, values))

    def get(self, kind: str, name: str, namespace: str = "") -> Object:
        return self.request("GET", self.path(kind, name, namespace))

    def list(self, kind: str, namespace: str = "", **query: str) -> Objects:
        """All objects of a kind; of all namespaces if none is named."""
        return list(self.request("GET", self.path(kind, "", namespace, query=query))["items"])

    def replace(self, value: Object, subresource: str = "") -> Object:
        name, namespace = value["metadata"]["name"], value["metadata"].get("namespace", "")
        return self.request("PUT", self.path(_kind(value), name, namespace, subresource), value)

    def patch(
        self,
        kind: str,
        name: str,
        change: Object | Objects,
        namespace: str = "",
        *,
        subresource: str = "",
        content_type: str = MERGE_PATCH,
    ) -> Object:
        path = self.path(kind, name, namespace, subresource)
        return self.request("PATCH", path, change, content_type)

    def delete(self, kind: str, name: str, namespace: str = "", grace: int | None = 0) -> Object:
        """Delete an object, by default at once: no kubelet here ends the grace period of a pod."""
        options = {"gracePeriodSeconds": grace} if grace is not None else {}
        return self.request("DELETE", self.path(kind, name, namespace), options)

    def delete_all(self, kind: str, namespace: str = "", **query: str) -> None:
        """Delete a kind's objects in one namespace, or those that have none."""
        path = self.path(kind, "", namespace, query=query)
        self.request("DELETE", path, {"gracePeriodSeconds": 0})

    def bind(self, namespace: str, pod: str, node: str, uid: str = "") -> Object:
        """Bind a pod by hand."""
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": namespace, **({"uid": uid} if uid else {})},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self.request("POST", self.path("Pod", pod, namespace, "binding"), binding)

    # --- the wire ------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Object:
        """Any request; the decoded answer."""
        answer: Object = json.loads(self.text(method, path, body, content_type))
        return answer

    def text(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> bytes:
        """Any request; the answer as it came."""
        asked = dict(self._headers)
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            asked["Content-Type"] = content_type
        connection = self._connection()
        try:
            connection.request(method, path, content, asked)
            with connection.getresponse() as response:
                code, headers, answer = response.status, dict(response.headers), response.read()
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)
        if code >= 300:
            raise ApiFailure(f"{method} {path}", code, answer, headers)
        return answer

    def path(
        self,
        kind: str,
        name: str = "",
        namespace: str = "",
        subresource: str = "",
        query: Mapping[str, str] = _NOTHING,
    ) -> str:
        """Where objects of a kind, or one of them, or a part of one, are."""
        version, _, short = kind.rpartition("/")
        version = version or "v1"
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        parts = [root]
        resource = self._resource(root, short)
        if resource["namespaced"] and namespace:
            parts.append(f"namespaces/{quote(namespace)}")
        parts += [part for part in (resource["name"], quote(name), subresource) if part]
        return "/".join(parts) + (f"?{urlencode(query)}" if query else "")

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    # --- inside --------------------------------------------------------------------------------

    def _collection_for(self, value: Object, namespace: str) -> str:
        namespace = namespace or value["metadata"].get("namespace", "default")
        return self.path(_kind(value), "", namespace)

    def _resource(self, root: str, kind: str) -> Object:
        known = self._resources.get(root)
        if known is None or kind not in known:
            listed = self.request("GET", root)["resources"]
            known = {item["kind"]: item for item in listed if "/" not in item["name"]}
            self._resources[root] = known
        if kind not in known:
            raise LookupError(f"{root} has no kind {kind}, only {', '.join(sorted(known))}")
        return known[kind]

    def _connection(self) -> http.client.HTTPSConnection:
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection = self._idle.pop()
            # An idle connection has nothing to say, except that the server is gone.
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        host, port = self._address
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=self._trust())


def _kind(value: Object) -> str:
    version, kind = value["apiVersion"], value["kind"]
    return f"{version}/{kind}"
