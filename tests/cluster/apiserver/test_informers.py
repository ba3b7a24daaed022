"""Informers converge to the server's state, whatever is written and however often they are cut off.

The same over sockets: `test_informers_over_sockets.py`; with every kind of fault:
`tests/client/test_informer_model.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.cluster.apiserver.in_process_server import ServerOnALoop
from tests.cluster.apiserver.informer_mirrors import (
    InformerMirror,
    RandomWrites,
    random_mirror,
)
from tests.faulty_transport import FaultyTransport, Vanish

from mooring.cluster.apiserver.transport import LocalTransport


class FollowedServer(ServerOnALoop):
    """A loop, a server that is written to, and informers that follow it over a bad wire."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = RandomWrites(self.server)
        self.mirrors: list[tuple[InformerMirror, FaultyTransport]] = []

    def follow(self, rng: random.Random) -> None:
        transport = FaultyTransport(LocalTransport(self.server.server))
        mirror = random_mirror(self.server, transport, rng)
        self.mirrors.append((mirror, transport))
        self.loop.create_task(mirror.informer.run())

    def calm_down(self) -> None:
        """Restore the connections; after a while all informers are up to date."""
        for _, transport in self.mirrors:
            transport.calm()
        self.loop.advance(60)
        for mirror, _ in self.mirrors:
            mirror.assert_true()


@pytest.fixture
def followed() -> Iterator[FollowedServer]:
    with FollowedServer() as followed:
        yield followed


def test_twenty_clients_with_selectors_end_up_with_what_there_is(followed: FollowedServer) -> None:
    rng = random.Random(11)
    followed.writes.make_namespaces()
    for _ in range(20):
        followed.follow(rng)
    for step in range(3_000):
        followed.writes.anything(rng)
        if rng.random() < 0.02:
            _, transport = rng.choice(followed.mirrors)
            transport.fail("*", *[Vanish()] * rng.randrange(3))
            transport.cut()
        if step % 1_000 == 999:
            followed.server.store.compact()
        if rng.random() < 0.3:
            followed.loop.advance(rng.choice([0, 0, 0.5, 20]))
    followed.loop.advance(60)
    followed.calm_down()
