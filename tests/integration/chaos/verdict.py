"""The end of every run: nothing lost, nothing bound twice, no node over its limits; and figures."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import Bind, audit, binds
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.load import insist
from tests.integration.chaos.scale import SCALE
from tests.integration.mooring_process import Mooring

_LOOK_EVERY = 0.5  # seconds
_SETTLE = 30.0  # seconds until the watch has shown what was bound last

# What the scheduler says in its log, and what we call it.
_SAID = {
    "relists": "listing again",
    "unknown binds": "the outcome of a bind is unknown",
}

_DIFFERS = "a decision by class is not that of a full evaluation"


class Run:
    """One run: what to expect of it, and since when it lasts."""

    def __init__(
        self, title: str, control_plane: ControlPlane, namespace: str, moorings: Sequence[Mooring]
    ) -> None:
        self.notes: dict[str, object] = {}  # what else to print
        self._title = title
        self._control_plane = control_plane
        self._namespace = namespace
        self._moorings = moorings
        self._pids = [mooring.process.pid for mooring in moorings]
        self._logged = [len(mooring.process.log.read_text()) for mooring in moorings]
        self._began = time.monotonic()

    def wait_bound(self, count: int) -> None:
        """Wait until so many pods are bound: to do harm in the middle of work."""
        wait_until(
            lambda: len(binds(self._control_plane, self._namespace)) >= count,
            SCALE.deadline,
            what=f"{count} pods are bound",
        )

    def wait_all_bound(self) -> None:
        """Wait until no pod is without a node."""
        query = {"fieldSelector": "spec.nodeName="}
        admin = self._control_plane.admin
        wait_until(
            lambda: not insist(lambda: admin.list("Pod", self._namespace, **query)),
            SCALE.deadline,
            what="all pods are bound",
            every=_LOOK_EVERY,
        )
        self.notes.setdefault("seconds", f"{time.monotonic() - self._began:.0f}")

    def judge(self, pods: int, *, restarted: bool = False) -> list[Bind]:
        """Wait until all is bound and settled, look for damage, print one line of figures.

        `restarted` says that the scheduler was ended and started again by the test.
        """
        self.wait_all_bound()
        alive = [mooring for mooring in self._moorings if mooring.process.is_alive]
        if not restarted:
            assert [mooring.process.pid for mooring in alive] == self._pids
        for mooring in alive:
            self._wait_settled(mooring)
        self.show()
        found = insist(lambda: audit(self._control_plane, self._namespace))
        assert found.broken == (), found.broken
        assert found.unbound == (), found.unbound
        assert found.bound == pods, f"{found.bound} pods are bound, of {pods}"
        differences = [
            line for log in self._logs() for line in log.splitlines() if _DIFFERS in line
        ]
        assert differences == [], differences  # of --check-decisions
        return binds(self._control_plane, self._namespace)

    def show(self) -> None:
        """Print one line of figures."""
        trail = binds(self._control_plane, self._namespace)
        done = [bind.time for bind in trail if bind.code == 201]
        span = (max(done) - min(done)).total_seconds() if len(done) > 1 else 0.0
        figures: dict[str, object] = {
            "binds/s": f"{len(done) / span:.0f}" if span else "-",
            "bind attempts": len(trail),
        }
        for what, words in _SAID.items():
            figures[what] = sum(log.count(words) for log in self._logs())
        figures["conflicts"] = conflicts(self._moorings, self._control_plane.token)
        told = ", ".join(f"{key} {value}" for key, value in (figures | self.notes).items())
        print(f"\n{self._title}: {told}", flush=True)

    def _wait_settled(self, mooring: Mooring) -> None:
        """Its picture of the cluster is that of the server, and nothing is under way."""
        bound = sum(
            1 for pod in self._control_plane.admin.list("Pod") if pod["spec"].get("nodeName")
        )
        expected = {
            'scheduler_cache_size{type="pods"}': bound,
            'scheduler_cache_size{type="assumed_pods"}': 0,
            'scheduler_goroutines{operation="binding"}': 0,
        }
        wait_until(
            lambda: self._read(mooring, expected) == expected,
            _SETTLE,
            what=f"{mooring.process.name} knows what the server knows, {expected}",
            every=_LOOK_EVERY,
        )

    def _read(self, mooring: Mooring, names: dict[str, int]) -> dict[str, float]:
        found = metrics(mooring, self._control_plane.token)
        return {name: found.get(name, -1.0) for name in names}

    def _logs(self) -> list[str]:
        """What each of them wrote since the run began; an earlier test may have used the file."""
        return [
            mooring.process.log.read_text()[begin:]
            for mooring, begin in zip(self._moorings, self._logged, strict=True)
        ]


def metrics(mooring: Mooring, token: str) -> dict[str, float]:
    """All samples of a scheduler's /metrics; empty if it does not answer."""
    answer = mooring.get("/metrics", token)
    if answer.code != 200:
        return {}
    samples = re.findall(r"^([a-z_]+(?:\{.*\})?) (\S+)$", answer.text, re.MULTILINE)
    return {name: float(value) for name, value in samples}


def conflicts(moorings: Sequence[Mooring], token: str) -> int:
    """How often they met another scheduler, as counted by those that run."""
    counted = [metrics(mooring, token) for mooring in moorings if mooring.process.is_alive]
    return round(
        sum(
            value
            for samples in counted
            for name, value in samples.items()
            if name.startswith("mooring_scheduling_conflicts_total")
        )
    )
