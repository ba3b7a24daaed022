"""`mooring run` behind a server, or a proxy, that answers 200 and garbage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from tests.controlplane.embedded import EmbeddedPlane
from tests.controlplane.objects import node, pod
from tests.controlplane.waiting import wait_until
from tests.garbage import NO_OBJECT
from tests.integration.cluster_reads import wait_for_event, wait_until_bound
from tests.integration.mooring_process import NAME, Mooring, start_mooring

from mooring.cluster.apiserver._auth import Attributes

ELECTED = {
    "leaderElection": {
        "leaderElect": True,
        "resourceName": NAME,
        "leaseDuration": "6s",
        "renewDeadline": "4s",
        "retryPeriod": "1s",
    }
}


class Garbler:
    """Gives garbage for some requests, each kind of it in turn, and counts it."""

    def __init__(self) -> None:
        self._covers: Callable[[str], bool] = lambda asked: True
        self.answered: Counter[str] = Counter()  # by verb and resource

    def __call__(self, asked: Attributes) -> bytes | None:
        name = f"{asked.verb} {asked.resource}"
        name += f"/{asked.subresource}" if asked.subresource else ""
        if not self._covers(name):
            return None
        garbage = NO_OBJECT[self.answered[name] % len(NO_OBJECT)]
        self.answered[name] += 1
        return garbage + b"\n" if asked.verb == "watch" else garbage

    def cover(self, covers: Callable[[str], bool]) -> None:
        """Spoil the answers to these from now on, and begin to count anew."""
        self._covers = covers
        self.answered.clear()

    def heal(self) -> None:
        self.cover(lambda asked: False)

    def wait_for(self, mooring: Mooring, **times: int) -> None:
        """Until each of these has been answered so often, by a process that runs."""
        wanted = {name.replace("__", "/").replace("_", " "): count for name, count in times.items()}

        def missing() -> dict[str, int]:
            return {name: n for name, n in wanted.items() if self.answered[name] < n}

        wait_until(
            lambda: not mooring.process.is_alive or not missing(),
            60.0,
            what=f"garbage has been the answer to {wanted}",
        )
        assert mooring.process.is_alive, mooring.log[-3000:]


@pytest.fixture
def garbler() -> Garbler:
    return Garbler()


@pytest.fixture
def plane(garbler: Garbler) -> Iterator[EmbeddedPlane]:
    with EmbeddedPlane(garbler) as running:
        running.admin.create(node("n", cpu="4"))
        yield running


def test_goes_on_through_garbage_of_every_endpoint(plane: EmbeddedPlane, garbler: Garbler) -> None:
    mooring = start_mooring(
        plane, config=ELECTED, flags=["--permission-check-interval", "1s"], wait=False
    )
    garbler.wait_for(
        mooring,
        list_resourceclaims=3,
        list_nodes=3,
        list_storageclasses=3,
        get_leases=3,
        get_configmaps=1,
        create_selfsubjectaccessreviews=20,
    )
    assert mooring.get("/livez").code == 200
    assert mooring.get("/readyz").code == 500

    # Pods are listed after claims.
    garbler.cover(lambda asked: asked == "list pods" or asked.startswith("watch "))
    garbler.wait_for(mooring, list_pods=3)

    garbler.cover(lambda asked: asked.startswith("watch "))
    garbler.wait_for(mooring, watch_pods=4, watch_nodes=4)

    garbler.heal()
    plane.admin.create(pod("first", scheduler=NAME, cpu="1"))
    wait_until_bound(plane, "default", "first")
    wait_until(lambda: mooring.is_ready, what="it is ready")

    garbler.cover(lambda asked: not asked.startswith(("list ", "watch ")))
    plane.admin.create(pod("second", scheduler=NAME, cpu="1"))
    plane.admin.create(pod("giant", scheduler=NAME, cpu="100"))
    garbler.wait_for(
        mooring, create_pods__binding=1, get_pods=2, patch_pods__status=2, create_events=1
    )
    assert mooring.get("/metrics", token=plane.token).code == 500
    garbler.wait_for(mooring, create_tokenreviews=1, create_selfsubjectaccessreviews=20)
    wait_until(lambda: '"Leaderelection lost"' in mooring.log, what="it has noticed")

    garbler.heal()
    plane.admin.create(node("m", cpu="200"))
    wait_until_bound(plane, "default", "first", "second", "giant")
    wait_for_event(plane, "default", "giant", "FailedScheduling")
    wait_until(lambda: mooring.is_ready, what="it is ready again")
    mooring.process.stop(timeout=30)
    assert mooring.process.exit_code == 0
    assert "Traceback" not in mooring.log
