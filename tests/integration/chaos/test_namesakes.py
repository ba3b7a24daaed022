"""Pods are deleted and made anew under their names, as a StatefulSet does, while they are bound."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from tests.controlplane.cluster import ControlPlane
from tests.integration.chaos.load import PACKING, sized_pod, tight_nodes
from tests.integration.chaos.scale import SCALE
from tests.integration.chaos.verdict import Run
from tests.integration.mooring_process import start_mooring

_HANDS = 8  # pods made side by side
_SHARE = 0.4  # of pods that are replaced, some of them several times
_SOON = 0.25  # seconds that a pod exists at most before it is replaced


class Replacer:
    """Makes pods and replaces some of them by namesakes of the same size."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.living: dict[str, str] = {}  # name: uid
        self.ended: dict[str, datetime] = {}  # uid: when the server had deleted it
        self._admin = control_plane.admin
        self._namespace = namespace

    def make(self, index: int) -> None:
        value = sized_pod(index, self._namespace)
        name = value["metadata"]["name"]
        dice = random.Random(index)
        made = self._admin.create(value)
        while dice.random() < _SHARE:
            time.sleep(dice.uniform(0.0, _SOON))
            self._admin.delete("Pod", name, self._namespace)
            self.ended[made["metadata"]["uid"]] = datetime.now(UTC)
            made = self._admin.create(value)
        self.living[name] = made["metadata"]["uid"]


def test_a_bind_never_reaches_a_namesake(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.admin.create_many(tight_nodes(SCALE.nodes))
    proxy = control_plane.proxy(seed=9)
    mooring = start_mooring(control_plane, config=PACKING, server=proxy.url)
    # So that the scheduler acts on old news, and some deletions are never told.
    proxy.faults.watch_lag, proxy.faults.cut_watches_every = 0.2, 1.0
    run = Run("namesakes", control_plane, namespace, [mooring])
    replacer = Replacer(control_plane, namespace)
    with ThreadPoolExecutor(_HANDS) as hands:
        list(hands.map(replacer.make, range(SCALE.pods)))
    run.notes["replaced"] = len(replacer.ended)
    trail = run.judge(SCALE.pods)
    bound = [bind for bind in trail if bind.code == 201]
    known = {*replacer.ended, *replacer.living.values()}
    assert {bind.uid for bind in trail} <= known
    assert [bind for bind in bound if bind.time > replacer.ended.get(bind.uid, bind.time)] == []
    assert {bind.pod: bind.uid for bind in bound} == replacer.living
