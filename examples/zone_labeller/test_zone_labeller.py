import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from mooring.cluster.apiserver.resources import known
from mooring.testing import node
from mooring.testing.sandbox import Sandbox
from zone_labeller import ZONE, ZoneLabeller


@pytest.fixture
def labeller(mooring_cluster: Sandbox) -> Iterator[ZoneLabeller]:
    made = ZoneLabeller(mooring_cluster.cluster.client())
    running: asyncio.Task[None] = mooring_cluster.loop.create_task(made.reconciler.run())
    yield made
    made.reconciler.stop()
    mooring_cluster.settle()
    assert running.done()


def zone_of(cluster: Sandbox, name: str) -> str:
    labels: dict[str, str] = cluster.get("node", name)["metadata"].get("labels", {})
    return labels.get(ZONE, "")


def test_labels_nodes_whose_names_tell_a_zone(
    mooring_cluster: Sandbox, labeller: ZoneLabeller
) -> None:
    mooring_cluster.apply(node("rack-a-01"), node("rack-b-07"), node("laptop"))
    mooring_cluster.settle()
    assert zone_of(mooring_cluster, "rack-a-01") == "a"
    assert zone_of(mooring_cluster, "rack-b-07") == "b"
    assert zone_of(mooring_cluster, "laptop") == ""


def test_puts_a_label_back_that_somebody_took_away(
    mooring_cluster: Sandbox, labeller: ZoneLabeller
) -> None:
    mooring_cluster.apply(node("rack-a-01"))
    mooring_cluster.settle()

    def take_away(value: dict[str, Any]) -> None:
        value["metadata"]["labels"] = {}

    mooring_cluster.cluster.verbs.modify(known("nodes"), "", "rack-a-01", take_away)
    mooring_cluster.settle()
    assert zone_of(mooring_cluster, "rack-a-01") == "a"
    assert labeller.reconciler.metrics.reconciles.labels("zone-labeller", "error").value == 0
