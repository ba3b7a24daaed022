"""Sparse facts about nodes: which images lie where, which host ports are taken.

Both are rare per node, so they are kept by image and by port rather than as columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from mooring.api import core
from mooring.api.requests import HostPort
from mooring.cache.arrays import IntArray, frozen

ANY_IP = "0.0.0.0"


class ImageState:
    """One image name: its size, and the rows of the nodes that have it."""

    __slots__ = ("_rows_array", "rows", "size")

    def __init__(self, size: int) -> None:
        self.size: int = size  # bytes, as the first node reported it
        self.rows: set[int] = set()
        self._rows_array: IntArray | None = None

    @property
    def rows_array(self) -> IntArray:
        if self._rows_array is None:
            self._rows_array = frozen(np.fromiter(sorted(self.rows), np.int64, len(self.rows)))
        return self._rows_array

    def put(self, row: int) -> None:
        self.rows.add(row)
        self._rows_array = None

    def drop(self, row: int) -> None:
        self.rows.discard(row)
        self._rows_array = None


class ImageIndex:
    """Image name -> where it is."""

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}

    def get(self, name: str) -> ImageState | None:
        return self._states.get(name)

    def add(self, row: int, images: Iterable[core.ContainerImage]) -> None:
        for image in images:
            for name in image.names:
                state = self._states.get(name)
                if state is None:
                    state = self._states[name] = ImageState(image.size_bytes)
                state.put(row)

    def remove(self, row: int, images: Iterable[core.ContainerImage]) -> None:
        for image in images:
            for name in image.names:
                state = self._states.get(name)
                if state is not None:
                    state.drop(row)
                    if not state.rows:
                        del self._states[name]


class PortIndex:
    """(protocol, port) -> row -> how often each IP holds it there."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, int], dict[int, dict[str, int]]] = {}

    def count(self, row: int, ports: Iterable[HostPort], change: int) -> None:
        for port in ports:
            rows = self._holders.setdefault((port.protocol, port.port), {})
            ips = rows.setdefault(row, {})
            left = ips.get(port.ip, 0) + change
            if left:
                ips[port.ip] = left
                continue
            del ips[port.ip]
            if not ips:
                del rows[row]
                if not rows:
                    del self._holders[port.protocol, port.port]

    def holders(self, port: HostPort) -> Mapping[int, Mapping[str, int]]:
        """Rows where some IP holds this protocol and port, with those IPs."""
        return self._holders.get((port.protocol, port.port), {})


def ips_conflict(a: str, b: str) -> bool:
    """Whether two pods can't hold the same port on these addresses of one node."""
    return a == b or ANY_IP in (a, b)
