"""Points by label, beside those of other scorers, choose what a full evaluation chooses."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mooring.framework as fw
from mooring.api import apps, codec, core
from mooring.framework._internal import ScoreByLabel, ScoresByCode, ScoresByLabel
from mooring.plugins.podtopologyspread.counts import SoftSpread
from mooring.simulator import Simulation
from mooring.testing import node, pod
from mooring.testing.builders import ZONE

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {multiPoint: {enabled: [{name: TwoZones, weight: 2}, {name: Crowded}]}}
"""


class TwoZones(ScoreByLabel):
    """Likes two of the zones; asked for every pod."""

    name = "TwoZones"
    KEY = ZONE
    asked = 0

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 3 if node.labels.get(self.KEY) in ("a", "c") else 0

    def normalized_by_label(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes
    ) -> ScoresByLabel | None:
        type(self).asked += 1
        values = nodes.label_values(self.KEY)
        points = [3 if value in ("a", "c") else 0 for value in values]
        return ScoresByLabel(self.KEY, np.array(points, dtype=np.int64))


class Crowded(fw.Score):
    """Likes nodes with pods; asked about every node for every pod."""

    name = "Crowded"

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return min(node.pod_count, 100)


def cluster() -> Simulation:
    plugins = [TwoZones, Crowded]
    return Simulation(config=CONFIG, plugins=plugins, keep_attempts=False, check_share=1.0)


def random_node(dice: random.Random, number: int, tainted: float) -> fw.Node:
    return node(
        f"n{number}",
        cpu=dice.choice(("1", "4", "4")),
        zone=dice.choice(("a", "a", "b", "c", "", None)),
        taints=["gpu:NoSchedule"] if dice.random() < tainted else [],
    )


def even(number: int, kind: str, max_skew: int) -> fw.Pod:
    """A pod that would like to be spread over the zones."""
    rule = {"maxSkew": max_skew, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    rule["labelSelector"] = {"matchLabels": {"app": kind}}
    spec = {"topologySpreadConstraints": [rule]}
    return pod(f"p{number}", cpu="100m", labels={"app": kind}, spec=spec)


@pytest.mark.parametrize("seed", range(12))
def test_chooses_as_a_full_evaluation_would(seed: int) -> None:
    dice = random.Random(seed)
    tainted = dice.choice((0.0, 0.3, 0.9))
    size = 60 if tainted > 0.5 else dice.choice((5, 20, 60))
    before = TwoZones.asked
    with cluster() as sim:
        sim.apply(*(random_node(dice, number, tainted) for number in range(size)))
        for number in range(60):
            sim.schedule(even(number, dice.choice("vw"), 1 + seed % 2))
            if dice.random() < 0.15:
                sim.apply(random_node(dice, dice.randrange(size), tainted))
        checks = sim.scheduler.metrics.class_checks
        assert checks.labels("different").value == 0
        assert checks.labels("equal").value > 20
    assert TwoZones.asked > before


def replica(number: int, kind: str) -> fw.Pod:
    """A pod of a ReplicaSet: by default it would like to be spread over hosts and zones."""
    labels = {"app": kind, "number": str(number % 3)}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": kind, "uid": kind}
    raw = codec.to_builtins(pod(f"p{number}", cpu="100m", labels=labels).api)
    raw["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return fw.Pod(codec.convert(raw, core.Pod))


def replica_set(kind: str) -> apps.ReplicaSet:
    spec = {"selector": {"matchLabels": {"app": kind}}}
    raw = {"metadata": {"name": kind, "namespace": "default"}, "spec": spec}
    return codec.convert(raw, apps.ReplicaSet)


def service(number: str) -> core.Service:
    spec = {"selector": {"number": number}}
    raw = {"metadata": {"name": f"s{number}", "namespace": "default"}, "spec": spec}
    return codec.convert(raw, core.Service)


@pytest.mark.parametrize("seed", range(12))
def test_spreads_over_hosts_and_zones_as_a_full_evaluation_would(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_code = []
    final = SoftSpread.final

    def counted(self: SoftSpread, nodes: fw.Nodes, everywhere: fw.Nodes) -> object:
        found = final(self, nodes, everywhere)
        by_code.append(isinstance(found, ScoresByCode))
        return found

    monkeypatch.setattr(SoftSpread, "final", counted)
    dice = random.Random(seed)
    tainted = dice.choice((0.0, 0.3, 0.9))
    size = 60 if tainted > 0.5 else dice.choice((5, 20))
    with Simulation(keep_attempts=False, check_share=1.0) as sim:
        sim.apply(*(random_node(dice, number, tainted) for number in range(size)))
        sim.apply(replica_set("v"), replica_set("w"))
        for number in range(60):
            sim.schedule(replica(number, dice.choice("vvvw")))
            if dice.random() < 0.1:
                sim.apply(random_node(dice, dice.randrange(size), tainted))
            if number in (20, 40):  # another selector for some of the pods
                sim.apply(service(str(number // 20)))
        checks = sim.scheduler.metrics.class_checks
        assert checks.labels("different").value == 0
        assert checks.labels("equal").value > 20
    assert any(by_code)
