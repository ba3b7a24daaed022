"""The answers of `/lens/v1` about a snapshot: what `mooring ui FILE` and its one-file page show."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import structs

from mooring.api import core
from mooring.lens.api import Depth, LensQueue, LensState, NodePage, RecordPage
from mooring.lens.explainer import Explainer
from mooring.lens.explanation import plain
from mooring.lens.snapshot import Snapshot
from mooring.lens.state import node_page
from mooring.lens.waiting_list import queue_of_snapshot, state_of_snapshot


class OfflineLens:
    """One snapshot; not for several threads at once."""

    def __init__(
        self, snapshot: Snapshot, explainer: Explainer, *, source: Literal["cluster", "file"]
    ) -> None:
        self._snapshot = snapshot
        self._explainer = explainer
        self._source = source
        self._pods: dict[str, core.Pod] = {pod.key: pod for pod in snapshot.cluster.pods}

    def state(self) -> LensState:
        found = state_of_snapshot(self._snapshot, self._explainer.cluster_of().cache)
        return structs.replace(found, source=self._source)

    def queue(self, place: str, limit: int) -> LensQueue:
        return queue_of_snapshot(self._snapshot, place=place, limit=limit)

    def node(self, name: str) -> NodePage | None:
        """One node and its pods; None if there is none of this name."""
        private = self._explainer.cluster_of()
        return node_page(private.cache, name, private.nominator.nominated_on(name))

    def records(self) -> RecordPage:
        """A snapshot has no records."""
        return RecordPage(rows=())

    def explain(
        self, key: str, depth: Depth = "groups", ask: tuple[str, ...] = ()
    ) -> dict[str, Any] | None:
        """A pod "namespace/name" as JSON has it; None if there is no such pod."""
        pod = self._pods.get(key)
        if pod is None:
            return None
        found = self._explainer.explain(pod, ask=ask, remedies=depth == "remedies")
        fields = plain(found)
        if depth == "matrix":
            fields["matrix"] = self._explainer.matrix_of(pod)
        return fields
