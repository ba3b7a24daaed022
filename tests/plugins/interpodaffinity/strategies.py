"""Small clusters full of pods with terms, of few enough values that they match."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.plugins.interpodaffinity.model import Cluster

from mooring.framework import Pod
from mooring.testing.builders import HOSTNAME, ZONE, pod

Json = dict[str, Any]
NAMESPACES = ("shop", "bank", "lab")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

keys = st.sampled_from([HOSTNAME, ZONE, ZONE, "rack", "nowhere"])
apps = st.sampled_from([{}, {"app": "web"}, {"app": "db"}, {"app": "web", "tier": "a"}])
space_labels = st.sampled_from([{}, {"team": "x"}, {"team": "y", "env": "prod"}])
weights = st.sampled_from([0, 1, 1, 10, 100])


def tests_of(key: str, values: list[str]) -> st.SearchStrategy[Json]:
    some = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
    listed = st.builds(
        lambda operator, chosen: {"key": key, "operator": operator, "values": chosen},
        st.sampled_from(["In", "NotIn"]),
        some,
    )
    operators = st.sampled_from(["Exists", "DoesNotExist"])
    return listed | operators.map(lambda operator: {"key": key, "operator": operator})


pod_selectors: st.SearchStrategy[Json] = st.one_of(
    apps.map(lambda labels: {"matchLabels": labels}),
    st.lists(tests_of("app", ["web", "db"]) | tests_of("tier", ["a", "b"]), max_size=2).map(
        lambda found: {"matchExpressions": found}
    ),
)
space_selectors: st.SearchStrategy[Json] = st.one_of(
    space_labels.map(lambda labels: {"matchLabels": labels}),
    tests_of("team", ["x", "y"]).map(lambda test: {"matchExpressions": [test]}),
)


@st.composite
def terms(draw: st.DrawFn) -> Json:
    term: Json = {"topologyKey": draw(keys)}
    if draw(st.integers(0, 9)):
        term["labelSelector"] = draw(pod_selectors)
    kind = draw(st.sampled_from(["own", "own", "listed", "selected", "both"]))
    if kind in ("listed", "both"):
        term["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), min_size=1, unique=True))
    if kind in ("selected", "both"):
        term["namespaceSelector"] = draw(space_selectors)
    return term


@st.composite
def affinities(draw: st.DrawFn) -> Json:
    kinds: Json = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        part: Json = {}
        if draw(st.booleans()):
            part[REQUIRED] = draw(st.lists(terms(), min_size=1, max_size=2))
        if draw(st.booleans()):
            part[PREFERRED] = [
                {"weight": draw(weights), "podAffinityTerm": term}
                for term in draw(st.lists(terms(), min_size=1, max_size=2))
            ]
        if part:
            kinds[kind] = part
    return kinds


@st.composite
def pods(draw: st.DrawFn, name: str, on: str = "") -> Pod:
    return pod(
        name,
        uid=name,
        on=on,
        namespace=draw(st.sampled_from(NAMESPACES)),
        labels=draw(apps),
        affinity=draw(st.none() | affinities()),
        deleting=draw(st.booleans()),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    nodes: dict[str, dict[str, str]] = {}
    for number in range(draw(st.integers(1, 5))):
        labels = {HOSTNAME: f"n{number}"} if draw(st.integers(0, 5)) else {}
        for key, values in ((ZONE, ["a", "b"]), ("rack", ["r"])):
            value = draw(st.sampled_from(["", *values, *values]))
            if value:
                labels[key] = value
        nodes[f"n{number}"] = labels
    homes = draw(st.lists(st.sampled_from(sorted(nodes)), max_size=6))
    residents = tuple(draw(pods(f"old{number}", on=on)) for number, on in enumerate(homes))
    known = draw(st.lists(st.sampled_from(NAMESPACES), unique=True))
    return Cluster(nodes, residents, {name: draw(space_labels) for name in known})
