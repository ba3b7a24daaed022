"""Random nodes and pods, from few enough names, ports and values that they keep meeting."""

from typing import Any

from hypothesis import strategies as st
from tests.cache import model
from tests.cache.model import RESOURCES, NodeFacts, PodFacts

from mooring.api.requests import HostPort

NODE_NAMES = tuple(f"n{i}" for i in range(6))
UIDS = tuple(f"u{i}" for i in range(9))
IMAGES = ("app:1", "app:latest", "db:2", "web:3")
PORTS = tuple(
    HostPort(ip, protocol, port)
    for ip in ("0.0.0.0", "10.0.0.1", "10.0.0.2")
    for protocol, port in (("TCP", 80), ("UDP", 80), ("TCP", 443))
)

serials = st.integers(0, 40).map(str)
node_names = st.sampled_from(NODE_NAMES)
uids = st.sampled_from(UIDS)
zones = st.sampled_from(["", "a", "b", "c"])


def labels(zone: str, old_zone: str, serial: str) -> model.Pairs:
    pairs = ((model.ZONE, zone), (model.OLD_ZONE, old_zone), (model.SERIAL, serial))
    return tuple((key, value) for key, value in pairs if value)


node_facts = st.builds(
    NodeFacts,
    name=node_names,
    labels=st.builds(labels, zones, st.sampled_from(["", "", "", "a"]), serials),
    offers=st.dictionaries(
        st.sampled_from([*RESOURCES, model.UNCOUNTED]), st.integers(0, 9), max_size=5
    ).map(lambda offers: tuple(offers.items())),
    unschedulable=st.booleans(),
    taints=st.lists(
        st.tuples(st.just("t"), serials, st.sampled_from(["NoSchedule", "NoExecute"])), max_size=2
    ).map(tuple),
    images=st.lists(
        st.tuples(
            st.lists(st.sampled_from(IMAGES), min_size=1, max_size=2).map(tuple),
            st.sampled_from([100, 100, 100, 200]),
        ),
        max_size=3,
    ).map(tuple),
)


def pod_facts(uid: str, **details: Any) -> PodFacts:
    # Two uids share one name, as a pod of a StatefulSet and its successor do.
    return PodFacts(uid=uid, name=f"p{UIDS.index(uid) // 2}", **details)


pods = st.builds(
    pod_facts,
    uid=uids,
    node=node_names,
    cpu=st.sampled_from([None, 0, 100, 250, 1000]),
    memory=st.sampled_from([None, 0, 64, 512]),
    gpu=st.integers(0, 2),
    resized_cpu=st.sampled_from([None, None, 150, 2000]),
    ports=st.lists(st.sampled_from(PORTS), max_size=2).map(tuple),
    app=st.sampled_from(["", "web", "db"]),
    phase=st.sampled_from(["Pending", "Running", "Running", "Running", "Succeeded", "Failed"]),
    deleting=st.booleans(),
)
