"""Terms in one line, for the tests of this plugin."""

from typing import Any

from mooring.testing.builders import HOSTNAME, ZONE

Json = dict[str, Any]
TOPOLOGY = {"host": HOSTNAME, "zone": ZONE}


def term(topology: str, selector: Json | None = None, /, *, app: str = "", **more: Any) -> Json:
    """Pods with a label `app`, or as the selector says, around nodes with the same "zone"."""
    by_app = {"matchLabels": {"app": app}} if app else None
    chosen = selector if selector is not None else by_app
    raw: Json = {"topologyKey": TOPOLOGY.get(topology, topology), **more}
    return raw if chosen is None else {**raw, "labelSelector": chosen}


def affinity(*terms: Json) -> Json:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def anti_affinity(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred_affinity(*preferred: tuple[int, Json]) -> Json:
    return {"podAffinity": _preferred(preferred)}


def preferred_anti_affinity(*preferred: tuple[int, Json]) -> Json:
    return {"podAntiAffinity": _preferred(preferred)}


def _preferred(preferred: tuple[tuple[int, Json], ...]) -> Json:
    listed = [{"weight": weight, "podAffinityTerm": raw} for weight, raw in preferred]
    return {"preferredDuringSchedulingIgnoredDuringExecution": listed}
