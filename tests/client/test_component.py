"""A component holds its work until it is synced and leads, and ends everything in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.faulty_transport import Asked, Fault, FaultyTransport, Refuse, Vanish

from mooring.api import core
from mooring.client.component import STANDING_BY, SYNCING, Component
from mooring.client.errors import Fenced, Forbidden, NotFound
from mooring.client.informer import Informer
from mooring.client.lease import Election
from mooring.client.permissions import permissions_on
from mooring.client.transport import Request, Transport
from mooring.observe.component import ComponentMetrics
from mooring.testing import pod
from mooring.testing.sandbox import Sandbox

ELECTION = Election(name="mine")


class Rig:
    """A component on a cluster in this process, whose work only keeps a record."""

    def __init__(self) -> None:
        self.sandbox: Sandbox = Sandbox(controllers=False, kubelets=False)
        self.sandbox.apply(pod("web"))
        self.said: list[str] = []
        self.lost: Callable[[Request], bool] = lambda request: False
        self.forbidden: Callable[[Request], bool] = lambda request: False
        self.reviews: int = 0
        self.ends: asyncio.Event = asyncio.Event()  # work under way has ended
        self.ends.set()
        self.metrics: ComponentMetrics = ComponentMetrics()
        self._stopped = asyncio.Event()

    def start(self, **options: Any) -> Component:
        loop, cluster = self.sandbox.loop, self.sandbox.cluster
        self.component = Component(
            self._connect,
            self.metrics,
            host="h",
            clock=self.sandbox.clock.now,
            uptime=loop.time,
            **options,
        )
        self.component.informers.add(
            Informer(
                self.component.reader,
                core.Pod,
                on_put=lambda value: self.said.append(f"put {value.name}"),
                on_remove=lambda value: None,
            )
        )
        running = self.component.run(self, lambda: self.said.append("synced"))
        self.task = loop.create_task(running)

        async def stop() -> None:
            self.ends.set()
            self.component.stop()
            await self.task

        cluster.before_close(stop)
        self.sandbox.settle()
        return self.component

    def _connect(self) -> Transport:
        rig = self

        class Transport(FaultyTransport):
            async def close(self) -> None:
                rig.said.append("close")

        transport = Transport(self.sandbox.cluster.transport())
        transport.fault = self._meet
        return transport

    def _meet(self, asked: Asked) -> Fault | None:
        request = asked.request
        if asked.verb == "watch":
            return None
        if self.forbidden(request):
            return Refuse(403, "Forbidden")
        if "reviews" in request.path:
            self.reviews += 1
        elif request.method != "GET":
            self.said.append(f"{request.method} {request.path.split('/')[-1]}")
        return Vanish() if self.lost(request) else None

    @property
    def leads(self) -> float:
        self.metrics.refresh()
        return self.metrics.leader.labels("mine").value

    # --- the work ------------------------------------------------------------------------------

    async def run(self) -> None:
        await self._stopped.wait()
        await self.ends.wait()
        self.said.append("ended")

    def stop(self) -> None:
        self.said.append("stop")
        self._stopped.set()

    def hold(self, why: str) -> None:
        self.said.append(f"hold: {why}")

    def release(self, why: str) -> None:
        self.said.append(f"release: {why}")


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    with rig.sandbox:
        yield rig


def emit(component: Component) -> None:
    reference = pod("web").api.reference
    component.events.emit(reference, "Normal", "Tested", "Testing", "a note", controller="me")


def test_work_is_held_until_informers_are_synced(rig: Rig) -> None:
    rig.lost = lambda request: "pods" in request.path
    rig.start()
    assert rig.said == [f"hold: {SYNCING}"]
    rig.lost = lambda request: False
    rig.sandbox.advance(60)
    assert rig.said == [f"hold: {SYNCING}", "put web", "synced", f"release: {SYNCING}"]


def test_a_term_begins_with_a_new_list_of_pods(rig: Rig) -> None:
    rig.lost = lambda request: "leases" in request.path
    rig.start(election=ELECTION)
    rig.sandbox.advance(10)
    assert [f"hold: {SYNCING}", f"hold: {STANDING_BY}"] == rig.said[:2]
    assert rig.said[-1] == f"release: {SYNCING}"
    lists: list[str] = []

    def note(request: Request) -> bool:
        if "pods" in request.path:
            lists.append(request.path)
        return False

    rig.lost = note
    rig.sandbox.advance(10)
    assert f"release: {STANDING_BY}" in rig.said
    assert len(lists) == 1


def test_a_lost_term_holds_the_work_and_its_writes(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    component = rig.start(election=ELECTION)
    rig.sandbox.advance(10)
    assert component.election is not None
    assert component.election.is_leader
    assert rig.leads == 1
    assert f"release: {STANDING_BY}" in rig.said
    rig.said.clear()
    rig.lost = lambda request: "leases" in request.path
    rig.sandbox.advance(30)
    assert f"hold: {STANDING_BY}" in rig.said
    assert rig.leads == 0
    assert "Leaderelection lost" in caplog.messages
    assert component.fence is not None
    with pytest.raises(Fenced, match="not the leader of the lease kube-system/mine"):
        component.fence()()


def test_a_write_that_was_decided_in_one_term_is_not_sent_in_the_next(rig: Rig) -> None:
    """It waits for the limiter while another replica may lead, and this one leads again."""
    component = rig.start(election=ELECTION, qps=0.02, burst=1)
    rig.sandbox.advance(10)

    async def delete() -> str:
        try:
            await component.writer.delete(core.Pod, "web", "default")
        except Fenced as error:
            return str(error)
        return "deleted"

    async def spend() -> None:
        with pytest.raises(NotFound):
            await component.writer.delete(core.Pod, "other", "default")

    loop = rig.sandbox.loop
    loop.run_until_complete(spend())
    old = loop.create_task(delete())  # has to wait for 50 seconds
    rig.lost = lambda request: "leases" in request.path
    rig.sandbox.advance(20)
    assert rig.leads == 0
    rig.lost = lambda request: False
    rig.sandbox.advance(20)
    assert rig.leads == 1
    new = loop.create_task(delete())
    rig.sandbox.advance(60)
    assert old.result() == "this process has lost the lease since this was decided"
    rig.sandbox.advance(60)
    assert new.result() == "deleted"


def test_nothing_is_written_before_a_new_leader_has_caught_up(rig: Rig) -> None:
    component = rig.start(election=ELECTION)
    rig.sandbox.advance(10)
    rig.lost = lambda request: "leases" in request.path
    rig.sandbox.advance(20)
    rig.lost = lambda request: "pods" in request.path  # the refresh does not end
    rig.sandbox.advance(20)
    assert rig.leads == 1
    assert component.fence is not None
    fence = component.fence()
    with pytest.raises(Fenced):
        fence()
    rig.lost = lambda request: False
    rig.sandbox.advance(60)
    with pytest.raises(Fenced):
        fence()
    component.fence()()


def test_with_delay_nothing_is_listed_before_the_first_term(rig: Rig) -> None:
    rig.lost = lambda request: "leases" in request.path
    rig.start(election=ELECTION, delay_informers=True)
    rig.sandbox.advance(60)
    assert "put web" not in rig.said
    rig.lost = lambda request: False
    rig.sandbox.advance(10)
    assert {"put web", f"release: {SYNCING}", f"release: {STANDING_BY}"} <= set(rig.said)


def test_ends_in_order(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    component = rig.start(election=ELECTION)
    rig.sandbox.advance(10)
    rig.ends.clear()
    rig.said.clear()
    component.stop()
    rig.sandbox.advance(1)
    assert component.is_stopping
    assert rig.said == ["stop"]
    component.writes.begin()  # so that the Event waits until the end
    emit(component)
    rig.ends.set()
    rig.sandbox.advance(1)
    end = ["stop", "ended", "POST events", f"hold: {STANDING_BY}", "PUT mine"]
    assert rig.said == [*end, "close", "close", "close"]
    assert rig.task.done()
    assert "Leaderelection lost" not in caplog.messages


def test_work_that_does_not_end_is_given_up(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    component = rig.start(grace=7.0)
    rig.ends.clear()
    component.stop()
    rig.sandbox.advance(6.9)
    assert not rig.task.done()
    rig.sandbox.advance(0.2)
    assert rig.task.done()
    assert "ended" not in rig.said
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.message == "bindings did not end in time and are given up"
    assert record.__dict__["grace"] == 7.0


def test_counts_events_that_were_dropped(rig: Rig) -> None:
    component = rig.start(max_events=1)
    component.writes.begin()
    for name in ("a", "b", "c"):
        reference = pod(name).api.reference
        component.events.emit(reference, "Normal", "Tested", "Testing", "", controller="me")
    assert component.events.dropped > 0
    rig.metrics.refresh()
    assert rig.metrics.dropped_events.labels().value == component.events.dropped


def test_checks_the_permissions_of_the_work_and_of_the_lease(rig: Rig) -> None:
    component = rig.start(election=ELECTION, needed=permissions_on(core.Pod, "list"))
    assert [str(each) for each in component.permissions.needed] == [
        "list pods",
        'create leases.coordination.k8s.io in namespace "kube-system"',
        'get leases.coordination.k8s.io "mine" in namespace "kube-system"',
        'update leases.coordination.k8s.io "mine" in namespace "kube-system"',
    ]


def test_a_forbidden_request_has_permissions_checked_again(rig: Rig) -> None:
    component = rig.start(needed=permissions_on(core.Pod, "list"), permission_check=3600.0)
    assert f"release: {SYNCING}" in rig.said
    assert rig.reviews == 0  # the work comes first
    rig.sandbox.advance(60)
    assert rig.reviews == 1
    rig.forbidden = lambda request: request.path.endswith("/nodes/a")

    async def read() -> None:
        with pytest.raises(Forbidden):
            await component.reader.get(core.Node, "a")

    rig.sandbox.loop.run_until_complete(read())
    rig.sandbox.advance(10)
    assert rig.reviews == 2
