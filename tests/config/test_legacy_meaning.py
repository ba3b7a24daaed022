"""Old files decide as they did: weights in a small cluster, against weights written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.testing import Simulation, node, pod

GROUP = "kubescheduler.config.k8s.io"
KIND = "kind: KubeSchedulerConfiguration\n"
TODAY = f"apiVersion: {GROUP}/v1\n{KIND}"
OLD = {
    "v1beta2": f"apiVersion: {GROUP}/v1beta2\n{KIND}",
    "v1beta1": f"apiVersion: {GROUP}/v1beta1\n{KIND}",
    "policy": "apiVersion: v1\nkind: Policy\n",
}
# What those meant, in terms of today: every weight 1, but spreading 2.
BY_HAND = (
    TODAY
    + """
profiles:
- plugins:
    multiPoint:
      disabled:
      - {name: TaintToleration}
      - {name: NodeAffinity}
      - {name: InterPodAffinity}
      enabled:
      - {name: TaintToleration, weight: 1}
      - {name: NodeAffinity, weight: 1}
      - {name: InterPodAffinity, weight: 1}
"""
)
PREFERS_SSD = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "preference": {
                    "matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]
                },
            }
        ]
    }
}


class Machine:
    """A node that is more or less full, wanted or avoided."""

    def __init__(self, used: int, disk: str, *, avoided: bool) -> None:
        self.used = used  # of 10 cores
        self.disk = disk
        self.avoided = avoided

    def __repr__(self) -> str:
        return f"Machine({self.used}, {self.disk!r}, avoided={self.avoided})"


MACHINES = st.lists(
    st.builds(Machine, st.integers(0, 8), st.sampled_from(["ssd", "hdd"]), avoided=st.booleans()),
    min_size=2,
    max_size=5,
)


def choice(config: str, machines: list[Machine]) -> str:
    with Simulation(config=config, seed=1) as sim:
        for index, machine in enumerate(machines):
            taints = ["old=yes:PreferNoSchedule"] if machine.avoided else []
            labels = {"disk": machine.disk}
            name = f"n{index}"
            sim.apply(node(name, cpu="10", memory="10Gi", labels=labels, taints=taints))
            if machine.used:
                sim.apply(pod(f"there-{index}", cpu=str(machine.used), memory="1Gi", on=name))
        sim.schedule(pod("new", cpu="1", memory="1Gi", affinity=PREFERS_SSD))
        return sim.node_of("new")


@pytest.mark.parametrize("version", OLD)
def test_weighs_as_it_did_where_today_would_choose_otherwise(version: str) -> None:
    # The disk speaks for one and the taint for the other: equal then, 2 to 3 today. The emptier
    # one wins when they are equal.
    machines = [Machine(0, "ssd", avoided=True), Machine(5, "hdd", avoided=False)]
    assert choice(OLD[version], machines) == choice(BY_HAND, machines) == "n0"
    assert choice(TODAY, machines) == "n1"


@pytest.mark.parametrize("version", OLD)
@given(MACHINES)
@settings(max_examples=15, deadline=None)
def test_chooses_as_the_weights_of_then_do(version: str, machines: list[Machine]) -> None:
    assert choice(OLD[version], machines) == choice(BY_HAND, machines)
