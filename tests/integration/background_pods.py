"""Pods that keep coming while a test does something to the cluster or to the scheduler."""

from __future__ import annotations

import threading
from typing import Self

from tests.controlplane.objects import pod
from tests.controlplane.plane import Plane
from tests.controlplane.waiting import wait_until
from tests.integration.cluster_reads import node_of
from tests.integration.mooring_process import NAME

_PAUSE = 0.02  # seconds between two pods


class Load:
    """Creates tiny pods, one after the other, until the block ends."""

    def __init__(self, control_plane: Plane, namespace: str, scheduler: str = NAME) -> None:
        self._control_plane = control_plane
        self._namespace = namespace
        self._scheduler = scheduler
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._failure: BaseException | None = None
        self.created: int = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def wait_for(self, more: int) -> None:
        """Wait until so many further pods have been created, and at least one of them bound."""
        before = self.created
        wait_until(
            lambda: self._failure is not None or self.created >= before + more,
            what=f"{more} further pods are created",
        )
        name = f"load-{before + more - 1:05d}"
        wait_until(
            lambda: node_of(self._control_plane, self._namespace, name), what=f"{name} is bound"
        )

    def _run(self) -> None:
        try:
            while not self._stop.wait(_PAUSE):
                name = f"load-{self.created:05d}"
                value = pod(
                    name,
                    namespace=self._namespace,
                    scheduler=self._scheduler,
                    cpu="1m",
                    memory="1Mi",
                )
                self._control_plane.admin.create(value)
                self.created += 1
        except BaseException as error:
            self._failure = error
