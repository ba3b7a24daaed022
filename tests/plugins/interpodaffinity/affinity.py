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


def near(*terms: Json) -> Json:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def far(*terms: Json) -> Json:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def liking(*wishes: tuple[int, Json]) -> Json:
    return {"podAffinity": _preferred(wishes)}


def shunning(*wishes: tuple[int, Json]) -> Json:
    return {"podAntiAffinity": _preferred(wishes)}


def _preferred(wishes: tuple[tuple[int, Json], ...]) -> Json:
    listed = [{"weight": weight, "podAffinityTerm": raw} for weight, raw in wishes]
    return {"preferredDuringSchedulingIgnoredDuringExecution": listed}
