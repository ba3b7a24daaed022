"""The order in which kube-scheduler lists nodes: round-robin over zones.

Ties between equally good nodes fall by this order, so we keep the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mooring.api.wellknown import REGION, ZONE

_OLD_REGION = "failure-domain.beta.kubernetes.io/region"
_OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def zone_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """Region and zone of a node, old label names first; empty if it has neither."""
    region, zone = labels.get(_OLD_REGION), labels.get(_OLD_ZONE)
    if region is None:
        region = labels.get(REGION, "")
    if zone is None:
        zone = labels.get(ZONE, "")
    return (region, zone)


class NodeOrder:
    """Zones in order of first appearance, nodes within a zone in order of addition."""

    def __init__(self) -> None:
        self._zones: dict[tuple[str, str], dict[str, None]] = {}
        self._zone_of: dict[str, tuple[str, str]] = {}
        self._list: list[str] | None = None

    def put(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node, or move it to the end of its new zone."""
        zone = zone_of(labels)
        known = self._zone_of.get(name)
        if known == zone:
            return
        if known is None:
            self._list = None  # a mere change of zone shows only after the next node comes or goes
        else:
            self._drop(name, known)
        self._zones.setdefault(zone, {})[name] = None
        self._zone_of[name] = zone

    def remove(self, name: str) -> None:
        self._drop(name, self._zone_of.pop(name))
        self._list = None

    def names(self) -> list[str]:
        if self._list is None:
            self._list = list(self._round_robin())
        return self._list

    def _drop(self, name: str, zone: tuple[str, str]) -> None:
        nodes = self._zones[zone]
        del nodes[name]
        if not nodes:
            del self._zones[zone]

    def _round_robin(self) -> Iterator[str]:
        columns = [iter(nodes) for nodes in self._zones.values()]
        while columns:
            going = []
            for column in columns:
                name = next(column, None)
                if name is not None:
                    yield name
                    going.append(column)
            columns = going
