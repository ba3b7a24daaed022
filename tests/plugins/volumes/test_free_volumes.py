"""Free volumes that are followed one by one are those that a look at all volumes finds."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest
from msgspec import structs
from tests.plugins.volumes.storage import claim, term, volume

from mooring.api.volumes import PersistentVolume, PersistentVolumeClaim
from mooring.cache.objects import Objects
from mooring.plugins._csi_migration import required_nodes
from mooring.plugins._volume_claims import class_of_volume, requested_storage
from mooring.plugins.volumebinding.assume_cache import AssumeCache
from mooring.plugins.volumebinding.free_volumes import FreeVolumes, capacity_of
from mooring.plugins.volumebinding.matching import candidates_for, matched
from mooring.plugins.volumebinding.reach import is_reachable
from mooring.testing.builders import ZONE, node, nodes

HOST = "kubernetes.io/hostname"
CLUSTER = nodes(
    *(node(f"n{i}", zone="ab"[i % 2], labels={"rack": "1"} if i % 3 else {}) for i in range(6))
)


def smallest(
    wanted: PersistentVolumeClaim, volumes: list[PersistentVolume], labels: Mapping[str, str]
) -> PersistentVolume | None:
    """As a look at all of them finds it."""
    fitting = [
        it
        for it in volumes
        if it.spec.claim_ref is None
        and it.status.phase == "Available"
        and it.metadata.deletion_timestamp is None
        and class_of_volume(it) == "wait"
        and (it.spec.volume_mode or "Filesystem") == (wanted.spec.volume_mode or "Filesystem")
        and set(wanted.spec.access_modes) <= set(it.spec.access_modes)
        and capacity_of(it).nanos >= requested_storage(wanted).nanos
        and is_reachable(required_nodes(it), labels)
    ]
    return min(fitting, key=lambda it: (capacity_of(it).nanos, it.name), default=None)


class World:
    """Volumes that come, change, are assumed and go."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.objects = Objects()
        self.volumes = AssumeCache(PersistentVolume, lambda: self.objects)
        self.free = FreeVolumes(self.volumes, lambda: self.objects)
        self.version = 0

    def put(self) -> None:
        dice = self.dice
        self.version += 1
        rules = [
            None,
            [term(HOST, f"n{dice.randrange(7)}")],
            [term(ZONE, *dice.sample("abc", dice.randint(1, 2)))],
            [term(ZONE, "a", operator="NotIn"), term("rack", "1")],
            [{"matchExpressions": term(ZONE, "b")["matchExpressions"] * 2}],
        ]
        made = volume(
            f"v{dice.randrange(8)}",
            size=dice.choice(("1Gi", "2Gi", "5Gi", "1500m")),
            affinity=dice.choice(rules),
            storage_class=dice.choice(("wait", "wait", "other")),
            phase=dice.choice(("Available", "Available", "Available", "Released")),
            prebound_to=dice.choice(("", "", "", "another")),
            modes=dice.choice((["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"])),
            spec=dice.choice(({}, {}, {"volumeMode": "Block"})),
        )
        meta = structs.replace(made.metadata, resource_version=str(self.version))
        self.objects.put(structs.replace(made, metadata=meta))

    def remove(self) -> None:
        known = self.objects.list(PersistentVolume)
        if known:
            self.objects.remove(self.dice.choice(known))

    def assume(self) -> None:
        known = self.objects.list(PersistentVolume)
        if known:
            chosen = self.dice.choice(known)
            reference = claim("of-another-pod").reference
            changed = structs.replace(
                chosen, spec=structs.replace(chosen.spec, claim_ref=reference)
            )
            self.volumes.assume(changed)
            if self.dice.random() < 0.3:
                self.volumes.restore(changed)

    def check(self) -> None:
        dice = self.dice
        wanted = claim(
            size=dice.choice(("1Gi", "2Gi", "3Gi", "2")),
            modes=dice.choice((["ReadWriteOnce"], ["ReadOnlyMany"])),
        )
        candidates = candidates_for(wanted, self.free, self.volumes, self.objects)
        latest = [self.volumes.latest(it) for it in self.objects.list(PersistentVolume)]
        expected = [smallest(wanted, latest, one.labels) for one in CLUSTER]
        assert [candidates.pick(one.labels, set()) for one in CLUSTER] == expected
        (found,) = matched([candidates], CLUSTER)
        assert found.tolist() == [one is not None for one in expected]
        some = np.array([1, 4])
        (found,) = matched([candidates], CLUSTER.take(some))
        assert found.tolist() == [expected[place] is not None for place in some]


@pytest.mark.parametrize("seed", range(40))
def test_follows_every_change_of_a_volume(seed: int) -> None:
    world = World(seed)
    for _ in range(25):
        for _ in range(world.dice.randint(0, 3)):
            world.dice.choice((world.put, world.put, world.remove, world.assume))()
        world.check()


def test_two_claims_of_one_class_do_not_get_the_same_volume() -> None:
    objects = Objects()
    for made in (volume("only", on="n1"), volume("small", on="n2"), volume("large", on="n2")):
        objects.put(made)
    volumes = AssumeCache(PersistentVolume, lambda: objects)
    free = FreeVolumes(volumes, lambda: objects)
    both = [candidates_for(claim(name), free, volumes, objects) for name in ("a", "b")]
    first, second = matched(both, CLUSTER)
    assert np.flatnonzero(first).tolist() == [1, 2]
    assert np.flatnonzero(second).tolist() == [2]
