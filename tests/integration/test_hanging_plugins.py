"""A plugin that hangs for some pods stops no others, and leadership stays where it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from tests.controlplane.admin import Object
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.invariants import audit, binds
from tests.controlplane.objects import namespace as namespace_object
from tests.controlplane.objects import nodes, pod, pods
from tests.controlplane.waiting import wait_until
from tests.integration.chaos.load import Feeder
from tests.integration.chaos.test_replicas import leads, lease
from tests.integration.mooring_process import NAME, Mooring, scheduler_user, start_mooring
from tests.sizes import sized

GOOD = 120
BAD = 20
RATE = 30.0  # good pods created a second: a run takes four seconds, of which few may be lost
PATIENCE = 1.0  # seconds, of a probe
TRIES = 3
SHARE = 0.8 if sized(1) > 1 else 0.5  # of the usual rate, that is left; other tests run beside
FAILED = 'running Score plugins: plugin "Hanging" failed with: took '


class Seen(msgspec.Struct, frozen=True):
    """What came of one run."""

    seconds: float  # from the first good pod created to the last one bound
    late: int  # probes of /livez in a row that had no answer in time, at most


class TooSlow(AssertionError):
    """The good pods were bound too late, or /livez was."""


class Probing:
    """Asks /livez over and over, in the background."""

    def __init__(self, mooring: Mooring) -> None:
        self._mooring = mooring
        self._late = self._in_a_row = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._stopped.set()
        self._thread.join()
        return self._late

    def _run(self) -> None:
        while not self._stopped.wait(0.1):
            is_alive = self._mooring.get("/livez", timeout=PATIENCE).code == 200
            self._in_a_row = 0 if is_alive else self._in_a_row + 1
            self._late = max(self._late, self._in_a_row)


def start(control_plane: ControlPlane, name: str, *flags: str) -> Mooring:
    enabled = {"multiPoint": {"enabled": [{"name": "Hanging"}]}}
    return start_mooring(
        control_plane,
        name=name,
        user=scheduler_user(control_plane, name),
        config={"profiles": [{"schedulerName": NAME, "plugins": enabled}]},
        flags=["--leader-elect=true", "--plugin", "hanging_plugin:Hanging", *flags],
        env={"PYTHONPATH": str(Path(__file__).parent)},
    )


def bad_pods(namespace: str, ways: Sequence[str]) -> list[Object]:
    """Of all ways in turn; of the way "name" they are of the same class as the good ones."""
    made = []
    for i in range(BAD):
        how = ways[i % len(ways)]
        labels = {} if how == "name" else {"hang": how, "n": str(i)}
        made.append(
            pod(
                f"bad-{how}-{i:06}",
                namespace=namespace,
                scheduler=NAME,
                cpu="1m",
                memory="1Mi",
                labels=labels,
            )
        )
    return made


def notes(control_plane: ControlPlane, namespace: str, reason: str, prefix: str = "") -> list[str]:
    events = control_plane.admin.list("events.k8s.io/v1/Event", namespace)
    return [
        event["note"]
        for event in events
        if event["reason"] == reason and event["regarding"]["name"].startswith(prefix)
    ]


def wait_for_failure(control_plane: ControlPlane, namespace: str, how: str) -> None:
    def has_failed() -> bool:
        failures = notes(control_plane, namespace, "FailedScheduling", f"bad-{how}-")
        return any(note.startswith(FAILED) for note in failures)

    wait_until(has_failed, what=f"a pod of the way {how} says why it failed")


def run(
    control_plane: ControlPlane, leader: Mooring, namespace: str, bad: Sequence[Object]
) -> Seen:
    """Bad pods, and right after them the good ones; until all of those are bound."""
    admin = control_plane.admin
    admin.create(namespace_object(namespace))
    probing = Probing(leader)
    admin.create_many(bad)
    began = time.time()
    good = pods(GOOD, prefix="good", namespace=namespace, scheduler=NAME, cpu="1m", memory="1Mi")
    Feeder(admin, good, RATE).start().wait()

    def bound() -> list[float]:
        trail = binds(control_plane, namespace)
        return [one.time.timestamp() for one in trail if one.pod.startswith("good")]

    wait_until(lambda: len(bound()) >= GOOD, 60.0, what="all good pods are bound", every=0.2)
    return Seen(max(bound()) - began, probing.stop())


@pytest.mark.parametrize(
    ("flags", "ways"),
    [
        ((), ("sleep", "name", "regex")),
        ((), ("locked",)),  # the first call stops the loop for two seconds
        (("--on-overrun", "Hanging=isolate"), ("gil", "numpy", "memory")),
    ],
    ids=["interruptible", "not interruptible", "isolated"],
)
def test_pods_that_hang_a_plugin_stop_no_others(
    control_plane: ControlPlane, namespace: str, flags: tuple[str, ...], ways: tuple[str, ...]
) -> None:
    control_plane.admin.create_many(nodes(3, cpu="64", pods=3000))
    for tried in range(TRIES):
        try:
            compare(control_plane, f"{namespace}-{tried}", flags, ways)
        except TooSlow:  # other tests share the machine, and may have had it meanwhile
            if tried == TRIES - 1:
                raise
        else:
            return


def compare(
    control_plane: ControlPlane, namespace: str, flags: tuple[str, ...], ways: tuple[str, ...]
) -> None:
    """Two new replicas, a run without bad pods, and one with bad pods of all these ways."""
    leader = start(control_plane, "first", *flags)
    wait_until(lambda: leads(control_plane, leader), what="the first one leads")
    second = start(control_plane, "second", *flags)
    before = lease(control_plane)
    try:
        usual = run(control_plane, leader, f"{namespace}-usual", ())
        name = f"{namespace}-bad"
        seen = run(control_plane, leader, name, bad_pods(name, ways))
        assert audit(control_plane, name).broken == ()
        # A probe whose connection was accepted just before the loop stood still is lost.
        if usual.seconds / seen.seconds < SHARE or seen.late > usual.late + 1:
            control_plane.admin.delete_all("Pod", name)  # else the next try has to try them, too
            text = f"{seen.seconds:.1f} s, usually {usual.seconds:.1f} s; {seen.late} late"
            raise TooSlow(text)
        for how in ways:
            if how not in ("numpy", "locked"):  # their pods are bound in time
                wait_for_failure(control_plane, name, how)
        after = lease(control_plane)
        for field in ("holderIdentity", "leaseTransitions"):
            assert after[field] == before[field]
        assert "[+]plugins ok: on probation after overruns: Hanging" in (
            leader.get("/readyz?verbose").text
        )
    finally:
        for mooring in (second, leader):
            mooring.process.stop()


def test_pods_are_bound_without_a_plugin_that_is_to_be_skipped(
    control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.admin.create_many(nodes(3))
    start(control_plane, "first", "--on-overrun", "Hanging=skip")
    bad = bad_pods(namespace, ["sleep"])[:3]
    control_plane.admin.create_many(bad)
    wait_until(lambda: len(binds(control_plane, namespace)) == len(bad), what="they are bound")
    wait_until(lambda: len(notes(control_plane, namespace, "PluginSkipped")) == len(bad), what="so")
    assert audit(control_plane, namespace).broken == ()
