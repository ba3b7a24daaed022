"""Leave a shared cluster as it was found: remove what a test created.

Objects are removed where they are stored, in etcd: for each that is deleted through the API server
it does nearly as much as the test did when it was made. It notices as it would notice another API
server's deletions, by its watches.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Collection, Iterator
from typing import Any

_ROOT = "/registry/"
# Kinds by the names that they have in etcd.
_EVERYWHERE = (
    *("pods", "persistentvolumeclaims", "events"),
    *("minions", "persistentvolumes", "storageclasses", "csinodes", "csidrivers"),
    *("resourceslices", "deviceclasses"),
)
_BUT_IN_KUBE_NAMESPACES = (
    *("controllers", "replicasets", "statefulsets", "poddisruptionbudgets"),
    *("resourceclaims", "resourceclaimtemplates"),
    *("leases", "serviceaccounts", "configmaps", "roles", "rolebindings"),
)
_BUT_THOSE_OF_THE_SERVER = ("namespaces", "priorityclasses", "clusterroles", "clusterrolebindings")
_AT_ONCE = 128  # removals in one transaction, as many as etcd allows


class Etcd:
    """The store of a control plane, as far as a sweep needs it."""

    def __init__(self, port: int) -> None:
        self._port = port

    def keys(self) -> list[str]:
        asked = {"key": _coded(_ROOT), "range_end": _coded(_ROOT[:-1] + "0"), "keys_only": True}
        found = self._call("range", asked).get("kvs", ())
        return [base64.b64decode(each["key"]).decode() for each in found]

    def remove(self, keys: list[str]) -> None:
        removals = [{"request_delete_range": {"key": _coded(key)}} for key in keys]
        for begin in range(0, len(removals), _AT_ONCE):
            self._call("txn", {"success": removals[begin : begin + _AT_ONCE]})

    def _call(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60.0)
        try:
            connection.request("POST", f"/v3/kv/{verb}", json.dumps(body))
            with connection.getresponse() as response:
                answer: dict[str, Any] = json.load(response)
        finally:
            connection.close()
        assert response.status == 200, answer
        return answer


def sweep(etcd: Etcd, own: Collection[str]) -> None:
    """Remove objects of the kinds that matter to a scheduler, and all namespaces of tests.

    `own` are the keys of what the API server brings itself. Leases, accounts, maps and roles in its
    own namespaces stay.
    """
    etcd.remove(list(_of_tests(etcd.keys(), own)))


def _of_tests(keys: list[str], own: Collection[str]) -> Iterator[str]:
    for key in keys:
        kind, _, rest = key.removeprefix(_ROOT).partition("/")
        if (
            kind in _EVERYWHERE
            or (kind in _BUT_IN_KUBE_NAMESPACES and not rest.startswith("kube-"))
            or (kind in _BUT_THOSE_OF_THE_SERVER and key not in own)
        ):
            yield key


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
