from __future__ import annotations

from collections import Counter

import pytest
from tests.cluster.virtual_cluster import names

from mooring.api import codec, core
from mooring.cluster.node_templates import MAX_NODES, NodeTemplate, make_nodes


def test_makes_nodes_with_the_labels_that_real_ones_have() -> None:
    template = NodeTemplate(name="m-{zone}-{i:02}", zones=("a",), regions=("r",))
    [node] = make_nodes([template])
    assert node["metadata"]["name"] == "m-a-00"
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "m-a-00",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "simulated",
        "topology.kubernetes.io/zone": "a",
        "topology.kubernetes.io/region": "r",
    }


def test_spreads_machines_over_zones_and_zones_over_regions() -> None:
    template = NodeTemplate(count=12, zones=("a", "b", "c", "d"), regions=("x", "y"))
    nodes = [codec.convert(value, core.Node) for value in make_nodes([template])]
    places = Counter(
        (
            node.metadata.labels["topology.kubernetes.io/zone"],
            node.metadata.labels["topology.kubernetes.io/region"],
        )
        for node in nodes
    )
    assert places == {("a", "x"): 3, ("b", "y"): 3, ("c", "x"): 3, ("d", "y"): 3}


def test_offers_what_is_not_reserved() -> None:
    template = NodeTemplate(
        cpu=8, memory="32Gi", resources={"nvidia.com/gpu": 4}, reserved={"cpu": "500m"}
    )
    [node] = make_nodes([template])
    assert node["status"]["capacity"]["cpu"] == "8"
    assert node["status"]["allocatable"]["cpu"] == "7500m"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"


def test_writes_taints_and_images_as_nodes_report_them() -> None:
    template = NodeTemplate(taints=("gpu=yes:NoSchedule", "x:NoExecute"), images={"app:1": 7})
    [node] = make_nodes([template])
    assert node["spec"]["taints"] == [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"key": "x", "effect": "NoExecute"},
    ]
    assert node["status"]["images"] == [{"names": ["app:1"], "sizeBytes": 7}]


def test_gives_every_machine_its_own_addresses() -> None:
    first = make_nodes([NodeTemplate(count=300)])
    more = make_nodes([NodeTemplate(name="more-{i}", count=300)], first=300)
    nodes = first + more
    assert len({node["spec"]["podCIDR"] for node in nodes}) == 600
    assert len({node["status"]["addresses"][0]["address"] for node in nodes}) == 600


def test_is_the_same_machine_under_the_same_name() -> None:
    one, other = make_nodes([NodeTemplate()]), make_nodes([NodeTemplate()])
    assert one == other


@pytest.mark.parametrize(("is_ready", "status"), [(True, "True"), (False, "Unknown")])
def test_says_whether_it_is_ready(is_ready: bool, status: str) -> None:
    [node] = make_nodes([NodeTemplate(ready=is_ready)])
    assert node["status"]["conditions"][-1]["status"] == status


def test_refuses_two_machines_of_one_name() -> None:
    with pytest.raises(ValueError, match="expected a pattern"):
        make_nodes([NodeTemplate(name="only", count=2)])


def test_takes_several_templates() -> None:
    small, large = NodeTemplate(name="s{i}", count=2), NodeTemplate(name="l{i}", cpu=64)
    assert names(make_nodes([small, large])) == ["s0", "s1", "l0"]


def test_makes_machines_that_are_cordoned() -> None:
    [node] = make_nodes([NodeTemplate(unschedulable=True)])
    assert node["spec"]["unschedulable"] is True


def test_refuses_more_machines_than_there_are_addresses() -> None:
    with pytest.raises(
        ValueError, match=f"expected at most {MAX_NODES} nodes, got {MAX_NODES + 1}"
    ):
        make_nodes([NodeTemplate()], first=MAX_NODES)
