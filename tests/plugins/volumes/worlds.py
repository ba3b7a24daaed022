"""Storage out of a hat: small vocabularies, so that claims, volumes and nodes meet."""

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


class World(NamedTuple):
    """Nodes with their pods, everything else, and the pods to place."""

    nodes: list[Node]
    objects: list[Object]
    pods: list[Pod]


def random_world(seed: int) -> World:
    """The world of that seed."""
    dice = random.Random(seed)
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
        *(_capacity(dice, number) for number in range(4)),
    ]
    volumes = [_volume(dice, f"pv-{number}", names) for number in range(14)]
    claims = [f"claim-{number}" for number in range(16)]
    objects += volumes
    objects += (_claim(dice, name, names) for name in claims[:-1])  # the last is missing
    for name in names:
        if dice.random() < 0.8:
            limits = {DRIVER: dice.randint(0, 4), OTHER_DRIVER: dice.choice([None, 1, 9])}
            limits["pd.csi.storage.gke.io"] = dice.choice([0, 1, 5])
            objects.append(csi_node(name, limits=limits, migrated=dice.sample([GCE, EBS], 1)))
        for number in range(dice.choice([0, 0, 1, 3])):
            attached = f"pv-{dice.randint(0, 15)}"
            objects.append(attachment(f"va-{name}-{number}", name, attached))
    residents = {
        name: [_pod(dice, f"old-{name}-{number}", claims) for number in range(dice.randint(0, 3))]
        for name in names
    }
    nodes = [_node(dice, name, residents[name]) for name in names]
    incoming = [_pod(dice, f"new-{number}", claims[:9]) for number in range(14)]
    objects += (
        claim(f"{it.name}-scratch", owner=it, storage_class=dice.choice(CLASSES))
        for it in [*incoming, *(pod for name in names for pod in residents[name])]
        if dice.random() < 0.7
    )
    return World(nodes, objects, incoming)


def _node(dice: random.Random, name: str, pods: list[Pod]) -> Node:
    labels = {}
    if dice.random() < 0.3:
        labels["topology.gke.io/zone"] = dice.choice(ZONES)
    if dice.random() < 0.3:
        labels["failure-domain.beta.kubernetes.io/zone"] = dice.choice(ZONES)
    zone = dice.choice([*ZONES, None])
    region = dice.choice(["r", "s", None])
    return node(name, zone=zone, region=region, labels=labels, pods=pods)


def _capacity(dice: random.Random, number: int) -> Object:
    topology: dict[str, Any] | None = dice.choice(
        [None, {}, {"matchLabels": {ZONE: "a"}}, {"matchLabels": {ZONE: "b"}}]
    )
    size, largest = dice.choice(SIZES), dice.choice([None, "1Gi"])
    classes = ("tracked", "wait")
    return capacity(
        f"cap-{number}",
        storage_class=dice.choice(classes),
        size=size,
        largest=largest,
        topology=topology,
    )


def _volume(dice: random.Random, name: str, hosts: list[str]) -> Object:
    affinities: list[list[dict[str, Any]] | None] = [
        None,
        [term("kubernetes.io/hostname", dice.choice(hosts))],
        [term(ZONE, *dice.sample(ZONES, 2))],
        [term(ZONE, "a"), term(ZONE, "b", operator="NotIn")],
        [{**term(ZONE, "a"), "matchFields": [_named(dice.choice(hosts), "NotIn")]}],
        [{"matchFields": [_named(dice.choice(hosts), "In")]}],
        [{}],
    ]
    terms = dice.choice(affinities)
    labels = {}
    if dice.random() < 0.4:
        key = dice.choice([ZONE, "failure-domain.beta.kubernetes.io/zone"])
        labels[key] = dice.choice(["a", "b", "a__b", "us-x-1__us-x-2", "a__"])
    source = dice.choice(
        [None, None, {"gcePersistentDisk": {"pdName": "d"}}, {"local": {"path": "/"}}]
    )
    promised = dice.choice(["", "", "", f"claim-{dice.randint(0, 9)}"])
    return volume(
        name,
        size=dice.choice(SIZES),
        storage_class=dice.choice(CLASSES),
        affinity=terms,
        labels=labels,
        promised_to=promised,
        phase=dice.choice(["Available", "Available", "Available", "Bound"]),
        modes=dice.choice([("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany")]),
        source=source,
    )


def _named(name: str, operator: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": [name]}


def _claim(dice: random.Random, name: str, hosts: list[str]) -> Object:
    kind = dice.random()
    return claim(
        name,
        size=dice.choice(SIZES),
        storage_class=dice.choice(CLASSES[:5] if kind >= 0.35 else CLASSES),
        bound_to=f"pv-{dice.randint(0, 14)}" if kind < 0.35 else "",  # one of them is missing
        selected=dice.choice(hosts) if kind > 0.85 else None,
        modes=dice.choice([("ReadWriteOnce",), ("ReadWriteOncePod",), ("ReadOnlyMany",)]),
        phase="Lost" if dice.random() < 0.03 else "Pending",
    )


def _pod(dice: random.Random, name: str, claims: list[str]) -> Pod:
    return user(
        name,
        *dice.sample(claims, dice.choice([0, 1, 1, 2, 3])),
        ephemeral=dice.choice([(), (), ("scratch",)]),
        inline=dice.sample(INLINE, dice.choice([0, 0, 1, 2])),
        namespace=dice.choice(["default", "default", "default", "shop"]),
    )
