"""A server with reflectors and informers, on a virtual loop."""

from __future__ import annotations

import random
from typing import Generic, TypeVar

from tests.faulty_transport import FaultyServer
from tests.loop_rig import LoopRig

from mooring.api.core import Pod
from mooring.api.meta import Object
from mooring.client.client import ApiClient
from mooring.client.informer import Informer
from mooring.client.watch import Reflector

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


class Recorded(Generic[O]):
    """A sink that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def replace(self, objects: list[O], unread: list[O]) -> None:
        told = [value.name for value in objects] + [f"{value.name}?" for value in unread]
        self.told.append(f"all: {' '.join(told)}".strip())

    def put(self, value: O) -> None:
        self.told.append(f"put {value.name}")

    def put_unread(self, value: O) -> None:
        self.told.append(f"put {value.name}?")

    def remove(self, value: O) -> None:
        self.told.append(f"remove {value.name}")


class ClientRig(LoopRig):
    """A virtual loop, a server and its client."""

    def __init__(self) -> None:
        super().__init__()
        self.server = FaultyServer()
        self.client = ApiClient(self.server)
        self.rng = random.Random(7)
        self._sink: Recorded[Pod] = Recorded()

    def follow(self, page_size: int = 500) -> Reflector[Pod]:
        """Begin to follow pods; what is said of them is `told`."""
        reflector = Reflector(self.client, Pod, self._sink, page_size=page_size, rng=self.rng)
        self.start(reflector.run())
        return reflector

    @property
    def told(self) -> list[str]:
        return self._sink.told

    def times(self, verb: str) -> list[float]:
        """When requests came."""
        return [asked.at for asked in self.server.asked if asked.verb == verb]

    def overhear(self) -> list[bytes]:
        """The lines that the server sends from now on."""
        lines: list[bytes] = []

        def keep(line: bytes) -> list[bytes]:
            lines.append(line)
            return [line]

        self.server.chop = keep
        return lines


class Mirror:
    """An informer, and a second store made of nothing but what its handlers heard.

    What they must never hear is written down in `wrong`; raised, it would only be logged.
    """

    def __init__(self, rig: ClientRig) -> None:
        self.objects: dict[str, Object] = {}
        self.wrong: list[str] = []
        self.informer: Informer[Pod] = Informer(
            rig.client, Pod, on_put=self._put, on_remove=self._remove, page_size=5, rng=rig.rng
        )
        self._ended: set[str] = set()  # uids
        self._server = rig.server
        rig.start(self.informer.run())

    @property
    def lists(self) -> int:
        return self.informer.reflector.lists

    def assert_true(self) -> None:
        """Store and mirror are what the server has, and no handler heard what it must not."""
        there = self._server.content(Pod)
        assert {value.key: value for value in self.informer} == there
        assert self.objects == there
        assert self.wrong == []

    def _put(self, value: Pod) -> None:
        known = self.objects.get(value.key)
        if value.uid in self._ended:
            self.wrong.append(f"{value.key} came back to life")
        if known is not None and known.uid != value.uid:
            self.wrong.append(f"the end of {known.key} was not told")
        if known is not None and _version(value) <= _version(known):
            self.wrong.append(f"{value.key} was overwritten by what is not newer")
        self.objects[value.key] = value

    def _remove(self, value: Pod) -> None:
        if self.objects.pop(value.key, None) != value:
            self.wrong.append(f"the end of {value.key} was told with a state nobody heard of")
        self._ended.add(value.uid)


def _version(value: Object) -> int:
    return int(value.metadata.resource_version)
