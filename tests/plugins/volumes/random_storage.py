"""Random claims, volumes and nodes, of few values, so that they meet."""

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.plugins.volumes.storage import (
    DRIVER,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    term,
    user,
    volume,
)

from mooring.api.meta import Object
from mooring.framework import Node, Pod
from mooring.testing.builders import ZONE, node

OTHER_DRIVER = "other.example.com"
ZONES = ("a", "b", "c")
SIZES = ("1Gi", "2Gi", "2Gi", "5Gi", "100Gi")
CLASSES = ("wait", "wait", "local", "zonal", "tracked", "now", "in-tree")
GCE, EBS = "kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"
INLINE: tuple[Mapping[str, Any], ...] = (
    {"gcePersistentDisk": {"pdName": "d1"}},
    {"gcePersistentDisk": {"pdName": "d1", "readOnly": True}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"awsElasticBlockStore": {"volumeID": "aws://a/vol-1"}},
    {"iscsi": {"iqn": "q1", "readOnly": True}},
    {"iscsi": {"iqn": "q1"}},
    {"rbd": {"monitors": ["m1", "m2"], "image": "i"}},
    {"rbd": {"monitors": ["m2"], "image": "i", "readOnly": True}},
    {"azureDisk": {"diskURI": "uri", "kind": "Managed"}},
    {"cinder": {"volumeID": "c1"}},
    {"portworxVolume": {"volumeID": "p1"}},
    {"emptyDir": {}},
)


class RandomStorage(NamedTuple):
    """Nodes with their pods, everything else, and the pods to place."""

    nodes: list[Node]
    objects: list[Object]
    pods: list[Pod]


def random_storage(seed: int) -> RandomStorage:
    """The storage of that seed."""
    rng = random.Random(seed)
    names = [f"host-{number}" for number in range(7)]
    objects: list[Object] = [
        storage_class("wait"),
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        storage_class("zonal", zones=["a", "b"]),
        storage_class("tracked", provisioner=OTHER_DRIVER),
        storage_class("now", mode="Immediate"),
        storage_class("in-tree", provisioner=GCE),
        csi_driver(OTHER_DRIVER),
        csi_driver(DRIVER, tracks_capacity=False),
        *(_capacity(rng, number) for number in range(4)),
    ]
    volumes = [_volume(rng, f"pv-{number}", names) for number in range(14)]
    claims = [f"claim-{number}" for number in range(16)]
    objects += volumes
    objects += (_claim(rng, name, names) for name in claims[:-1])  # the last is missing
    for name in names:
        if rng.random() < 0.8:
            limits = {DRIVER: rng.randint(0, 4), OTHER_DRIVER: rng.choice([None, 1, 9])}
            limits["pd.csi.storage.gke.io"] = rng.choice([0, 1, 5])
            objects.append(csi_node(name, limits=limits, migrated=rng.sample([GCE, EBS], 1)))
        for number in range(rng.choice([0, 0, 1, 3])):
            attached = f"pv-{rng.randint(0, 15)}"
            objects.append(attachment(f"va-{name}-{number}", name, attached))
    residents = {
        name: [_pod(rng, f"old-{name}-{number}", claims) for number in range(rng.randint(0, 3))]
        for name in names
    }
    nodes = [_node(rng, name, residents[name]) for name in names]
    incoming = [_pod(rng, f"new-{number}", claims[:9]) for number in range(14)]
    objects += (
        claim(f"{it.name}-scratch", owner=it, storage_class=rng.choice(CLASSES))
        for it in [*incoming, *(pod for name in names for pod in residents[name])]
        if rng.random() < 0.7
    )
    return RandomStorage(nodes, objects, incoming)


def _node(rng: random.Random, name: str, pods: list[Pod]) -> Node:
    labels = {}
    if rng.random() < 0.3:
        labels["topology.gke.io/zone"] = rng.choice(ZONES)
    if rng.random() < 0.3:
        labels["failure-domain.beta.kubernetes.io/zone"] = rng.choice(ZONES)
    zone = rng.choice([*ZONES, None])
    region = rng.choice(["r", "s", None])
    return node(name, zone=zone, region=region, labels=labels, pods=pods)


def _capacity(rng: random.Random, number: int) -> Object:
    topology: dict[str, Any] | None = rng.choice(
        [None, {}, {"matchLabels": {ZONE: "a"}}, {"matchLabels": {ZONE: "b"}}]
    )
    size, largest = rng.choice(SIZES), rng.choice([None, "1Gi"])
    classes = ("tracked", "wait")
    return capacity(
        f"cap-{number}",
        storage_class=rng.choice(classes),
        size=size,
        largest=largest,
        topology=topology,
    )


def _volume(rng: random.Random, name: str, hosts: list[str]) -> Object:
    affinities: list[list[dict[str, Any]] | None] = [
        None,
        [term("kubernetes.io/hostname", rng.choice(hosts))],
        [term(ZONE, *rng.sample(ZONES, 2))],
        [term(ZONE, "a"), term(ZONE, "b", operator="NotIn")],
        [{**term(ZONE, "a"), "matchFields": [_named(rng.choice(hosts), "NotIn")]}],
        [{"matchFields": [_named(rng.choice(hosts), "In")]}],
        [{}],
    ]
    terms = rng.choice(affinities)
    labels = {}
    if rng.random() < 0.4:
        key = rng.choice([ZONE, "failure-domain.beta.kubernetes.io/zone"])
        labels[key] = rng.choice(["a", "b", "a__b", "us-x-1__us-x-2", "a__"])
    source = rng.choice(
        [None, None, {"gcePersistentDisk": {"pdName": "d"}}, {"local": {"path": "/"}}]
    )
    prebound = rng.choice(["", "", "", f"claim-{rng.randint(0, 9)}"])
    return volume(
        name,
        size=rng.choice(SIZES),
        storage_class=rng.choice(CLASSES),
        affinity=terms,
        labels=labels,
        prebound_to=prebound,
        phase=rng.choice(["Available", "Available", "Available", "Bound"]),
        modes=rng.choice([("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany")]),
        source=source,
    )


def _named(name: str, operator: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": [name]}


def _claim(rng: random.Random, name: str, hosts: list[str]) -> Object:
    kind = rng.random()
    return claim(
        name,
        size=rng.choice(SIZES),
        storage_class=rng.choice(CLASSES[:5] if kind >= 0.35 else CLASSES),
        bound_to=f"pv-{rng.randint(0, 14)}" if kind < 0.35 else "",  # one of them is missing
        selected=rng.choice(hosts) if kind > 0.85 else None,
        modes=rng.choice([("ReadWriteOnce",), ("ReadWriteOncePod",), ("ReadOnlyMany",)]),
        phase="Lost" if rng.random() < 0.03 else "Pending",
    )


def _pod(rng: random.Random, name: str, claims: list[str]) -> Pod:
    return user(
        name,
        *rng.sample(claims, rng.choice([0, 1, 1, 2, 3])),
        ephemeral=rng.choice([(), (), ("scratch",)]),
        inline=rng.sample(INLINE, rng.choice([0, 0, 1, 2])),
        namespace=rng.choice(["default", "default", "default", "shop"]),
    )
