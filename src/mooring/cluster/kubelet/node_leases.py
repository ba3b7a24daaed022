"""Node leases: the heartbeats of kubelets, as `kubectl describe node` shows them.

No controller here reads them: a node that fails says so in its conditions. So they are long and
seldom renewed, and cost almost nothing even for thousands of nodes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from mooring.api.meta import format_time
from mooring.client.errors import StatusError
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.store import Item, Object
from mooring.cluster.apiserver.verbs import Verbs
from mooring.framework.handle import Clock

log = logging.getLogger(__name__)

LEASES: Final = known("leases", "coordination.k8s.io")
NAMESPACE: Final = "kube-node-lease"

_DURATION: Final = 3600  # seconds
_RENEWAL: Final = 1200.0  # seconds
_BATCH: Final = 50  # leases per callback of the event loop


class NodeLeases:
    """Writes a lease for each node that is added, until it is dropped.

    A lease is owned by its node, and garbage-collected with it.
    """

    def __init__(self, verbs: Verbs, clock: Clock) -> None:
        self._verbs = verbs
        self._clock = clock
        self._uids: dict[str, str] = {}  # of the nodes, by name
        self._due: deque[str] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._working: asyncio.Handle | None = None
        self._renewing: asyncio.Handle | None = None

    def start(self) -> None:
        """Needs a running loop."""
        self._loop = asyncio.get_running_loop()
        self._renewing = self._loop.call_later(_RENEWAL, self._renew)
        self._wake()

    def close(self) -> None:
        self._loop = None
        for handle in (self._working, self._renewing):
            if handle is not None:
                handle.cancel()

    def add(self, node: Item) -> None:
        """Begin to write the lease of a node; without effect if that is done already."""
        if self._uids.get(node.name) != node.uid:
            self._uids[node.name] = node.uid
            self._due.append(node.name)
            self._wake()

    def drop(self, name: str) -> None:
        """Stop renewing the lease of a node; it expires."""
        self._uids.pop(name, None)

    # --- time ----------------------------------------------------------------------------------

    def _renew(self) -> None:
        if self._loop is not None:
            self._renewing = self._loop.call_later(_RENEWAL, self._renew)
            self._due.extend(self._uids)
            self._wake()

    def _wake(self) -> None:
        if self._loop is not None and self._due and self._working is None:
            # call_soon keeps the order of writes deterministic.
            self._working = self._loop.call_soon(self._work)

    def _work(self) -> None:
        self._working = None
        for _ in range(min(_BATCH, len(self._due))):
            self._write(self._due.popleft())
        self._wake()

    # --- writing -------------------------------------------------------------------------------

    def _write(self, name: str) -> None:
        uid = self._uids.get(name)
        if uid is None:
            return
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": _DURATION,
            "renewTime": format_time(self._clock.now(), micros=True),
        }

        def renewed(lease: Object) -> Object:
            meta = {**lease["metadata"], "ownerReferences": [owner]}
            return {**lease, "metadata": meta, "spec": spec}

        try:
            if self._verbs.store.get(LEASES, NAMESPACE, name) is None:
                made = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
                self._verbs.create(LEASES, made, namespace=NAMESPACE)
            else:
                self._verbs.modify(LEASES, NAMESPACE, name, renewed)
        except StatusError as error:
            log.debug("a lease was refused", extra={"node": name, "error": str(error)})
