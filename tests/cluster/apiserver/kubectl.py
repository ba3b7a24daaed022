"""An embedded cluster in a thread of its own, and the real kubectl to drive it with.

Kubelets and controllers are the simulator's; pods are put on nodes by a few lines here, in turn.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import subprocess
import threading
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple, Self

from tests.controlplane.build import binaries
from tests.controlplane.waiting import wait_until

from mooring.client.errors import StatusError
from mooring.cluster.apiserver.http import HttpServer
from mooring.cluster.apiserver.resources import known
from mooring.cluster.apiserver.server import ApiServer
from mooring.cluster.apiserver.store import Object, StoreChange
from mooring.cluster.component import ComponentContext
from mooring.cluster.controllers import Controllers
from mooring.cluster.event_writer import EventWriter
from mooring.cluster.kubelet.kubelet import Kubelets
from mooring.cluster.node_templates import NodeTemplate, make_nodes
from mooring.runtime.clock import SystemClock

NODES = known("nodes")
PODS = known("pods")


class Output(NamedTuple):
    """How a command ended."""

    out: str
    err: str
    code: int


class Kubectl:
    """The real kubectl, for one server."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._command = [
            str(binaries() / "kubectl"),
            f"--kubeconfig={kubeconfig}",
            f"--cache-dir={folder / 'cache'}",
        ]
        self._folder = folder
        self._count = itertools.count()

    def run(self, *arguments: str, stdin: str = "") -> Output:
        """Run it, whatever comes of it."""
        done = subprocess.run(
            [*self._command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Output(done.stdout, done.stderr, done.returncode)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """What it prints; it has to go well, and without a warning."""
        said = self.run(*arguments, stdin=stdin)
        assert (said.code, said.err) == (0, ""), f"kubectl {' '.join(arguments)}: {said}"
        return said.out

    def watching(self, *arguments: str) -> Watch:
        """Begin to watch; what it prints can be read while it goes on."""
        path = self._folder / f"watch-{next(self._count)}"
        return Watch([*self._command, *arguments, "--watch"], path)


class Watch:
    """A kubectl that does not end by itself."""

    def __init__(self, command: Sequence[str], path: Path) -> None:
        self._path = path
        with path.open("w") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def shows(self, *words: str) -> None:
        """Wait for a line with all these words."""

        def is_shown() -> bool:
            lines = self._path.read_text().splitlines()
            return any(all(word in line.split() for word in words) for line in lines)

        wait_until(is_shown, what=f"kubectl shows {words}: {self._path.read_text()}")


class EmbeddedCluster:
    """An API server on loopback; unless it is `bare`, with nodes, kubelets and controllers."""

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self._kubeconfig = folder / "kubeconfig"
        self._is_bare = bare
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()))
        self._thread.start()
        assert self._is_up.wait(60), "the embedded cluster did not start"
        self.kubectl: Kubectl = Kubectl(self._kubeconfig, folder)

    def close(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = ApiServer()
        http = HttpServer(server)
        async with AsyncExitStack() as stack:
            if not self._is_bare:
                _populate(server, stack)
            await http.start()
            http.kubeconfig(self._kubeconfig)
            self._is_up.set()
            await self._stop.wait()
            await http.close()


def _populate(server: ApiServer, stack: AsyncExitStack) -> None:
    """Three nodes, kubelets, controllers and a simple binder."""
    clock, rng = SystemClock(), random.Random(1)
    for node in make_nodes([NodeTemplate(name="node-{i}", count=3)], now=clock.now()):
        server.verbs.create(NODES, node)
    event_writer = EventWriter(server.verbs, clock, warnings_only=False)
    component = ComponentContext(server.verbs, clock, rng, event_writer)
    kubelets = Kubelets(component, startup=0.05, stop=0.05)
    controllers = Controllers(component)
    kubelets.start()
    stack.callback(kubelets.close)
    controllers.start()
    stack.push_async_callback(controllers.close)
    _Binder(server)


class _Binder:
    """Puts every pod on the next node that is not cordoned."""

    def __init__(self, server: ApiServer) -> None:
        self._verbs = server.verbs
        self._turns = itertools.count()
        server.store.listen(self._on_change)

    def _on_change(self, change: StoreChange) -> None:
        if change.resource == PODS.key and change.type == "ADDED":
            pod = change.new.decoded()
            if not pod["spec"].get("nodeName"):
                asyncio.get_running_loop().call_soon(self._bind, pod["metadata"])

    def _bind(self, meta: Object) -> None:
        nodes = [item.decoded() for item in self._verbs.store.list(NODES)]
        free = [node for node in nodes if not node["spec"].get("unschedulable")]
        predicate = free[next(self._turns) % len(free)]["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": predicate}
        try:
            self._verbs.bind(
                meta["namespace"],
                meta["name"],
                {"metadata": {"name": meta["name"]}, "target": target},
            )
        except StatusError:
            return  # it is gone already
