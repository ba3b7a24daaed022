from __future__ import annotations

import pytest

from mooring.simulator.measures import format_amount, measured
from mooring.testing import node, nodes, pod


def test_utilisation_imbalance_and_fragmentation() -> None:
    first = [pod("x", cpu="2500m", memory="1Gi"), pod("y", cpu=1, memory="1Gi")]
    second = [pod("z", cpu=1, memory="1Gi")]
    cluster = nodes(
        node("a", cpu=4, memory="8Gi", pods=first),
        node("b", cpu=4, memory="8Gi", pods=second),
        node("cordoned", cpu=64, unschedulable=True),
    )
    cpu, memory, slots = measured(cluster, [*first, *second])
    assert (cpu.allocatable, cpu.requested, cpu.utilisation) == ("8", "4500m", 0.5625)
    # Shares of 0.875 and 0.25.
    assert cpu.imbalance == 0.3125
    # A pod of middle size asks for 1 cpu: the half on a is of no use, nor is its memory.
    assert cpu.fragmentation == round(0.5 / 3.5, 4)
    assert memory.fragmentation == round(6 / 13, 4)
    assert (slots.resource, slots.requested, slots.fragmentation) == ("pods", "3", 0.0)


def test_no_nodes_and_other_resources() -> None:
    assert measured(nodes(), []) == ()
    gpu = pod("x", requests={"example.com/gpu": 1})
    cluster = nodes(node("a", resources={"example.com/gpu": 4}, pods=[gpu]))
    found = measured(cluster, [gpu])
    assert [one.resource for one in found] == ["cpu", "memory", "pods", "example.com/gpu"]
    assert (found[3].requested, found[3].utilisation) == ("1", 0.25)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 31_850_000, "31850"),
        ("memory", 3 << 29, "1536Mi"),
        ("pods", 110, "110"),
        ("hugepages-2Mi", 2 << 20, "2Mi"),
    ],
)
def test_amounts_are_spelled_as_in_manifests(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text
