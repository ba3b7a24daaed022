"""An extender under load: names of 5,000 nodes in each request, 100 requests a second.

    python -m bench.extender --seconds 60
    python -m bench.extender --form function     # a function, asked node by node

Requests leave when their time has come, whether or not earlier ones were answered, over connections
that are kept; a latency counts from the moment the request should have left. The extender is a
process of its own and watches an embedded API server. Afterwards whole nodes are sent, some with
less than the greatest size of a body and some with more.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import sys
import time
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

import mooring.framework as fw
from mooring.cluster.apiserver.resources import known
from mooring.cluster.embedded import EmbeddedCluster
from mooring.extender import Extender
from mooring.extender.serving.app import App, Options
from mooring.framework.plugin import Base

ZONES = tuple(f"zone-{number}" for number in range(10))
ZONE = "topology.kubernetes.io/zone"


class NotInFirst(fw.Filter, fw.Score):
    """Refuses a tenth of the nodes by a label, and ranks by what is free; for all nodes at once."""

    name = "NotInFirst"
    REFUSED = fw.Status.unschedulable("node is in the first zone")

    def filter(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> fw.Status:
        return self.REFUSED if node.labels.get(ZONE) == ZONES[0] else fw.OK

    def filter_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.Verdicts:
        values = nodes.label_values(ZONE)
        first = values.index(ZONES[0]) if ZONES[0] in values else -1
        return fw.Verdicts.passing(nodes).reject(nodes.label_codes(ZONE) == first, self.REFUSED)

    def score(self, state: fw.CycleState, pod: fw.Pod, node: fw.Node) -> int:
        return 100 * max(node.spare("cpu"), 0) // max(node.allocatable("cpu"), 1)

    def score_all(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.Nodes) -> fw.IntArray:
        free = np.maximum(nodes.spare("cpu"), 0)
        return 100 * free // np.maximum(nodes.allocatable("cpu"), 1)


extender = Extender()


@extender.filter
def not_in_first(pod: fw.Pod, node: fw.Node) -> bool | str:
    return node.labels.get(ZONE) != ZONES[0] or "node is in the first zone"


@extender.prioritize
def by_free_cpu(pod: fw.Pod, node: fw.Node) -> float:
    return 10 * node.spare("cpu") / max(node.allocatable("cpu"), 1)


# --- the extender --------------------------------------------------------------------------------


async def serve(nodes: int, form: str) -> None:
    """Serve until the standard input ends; the port is told on the standard output."""
    async with EmbeddedCluster(kubelets=False, controllers=()) as cluster:
        cluster.add_nodes(nodes, cpu="32", memory="64Gi", zones=ZONES)
        plugins: Sequence[type[Base]] = extender.plugins if form == "function" else [NotInFirst]
        app = App(plugins, connect=cluster.transport, options=Options(port=0))
        running = asyncio.create_task(app.run(on_ready=gc.freeze))  # as `mooring extender` does
        await app.cluster.informers.wait_synced()
        names = app.cluster.cache.nodes.names
        whole = [item.decoded() for item in cluster.store.items(known("nodes"))]
        print(json.dumps({"port": app.port, "names": names, "nodes": whole}), flush=True)
        await asyncio.to_thread(sys.stdin.read)
        app.stop()
        await running
        used = resource.getrusage(resource.RUSAGE_SELF)
        told = {"cpu": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024}
        print(json.dumps(told), flush=True)


# --- who asks ------------------------------------------------------------------------------------


class Caller:
    """Connections to an extender that are used again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Code and body of an answer."""
        if self._free:
            reader, writer = self._free.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**26)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        headers = dict(line.split(b": ", 1) for line in lines[1:] if line)
        answer = await reader.readexactly(int(headers[b"content-length"]))
        if headers.get(b"connection") == b"close":
            writer.close()
        else:
            self._free.append((reader, writer))
        return int(lines[0].split()[1]), answer

    def close(self) -> None:
        for _, writer in self._free:
            writer.close()


async def load(
    caller: Caller, bodies: Sequence[bytes], rate: float, seconds: float
) -> tuple[list[float], int]:
    """Ask so many times a second; the latencies in seconds, and how many went wrong."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    errors = 0
    began = loop.time()

    async def one(number: int) -> None:
        nonlocal errors
        due = began + number / rate
        await asyncio.sleep(due - loop.time())
        path = ("/filter", "/prioritize")[number % 2]
        try:
            code, answer = await caller.ask(path, bodies[number % len(bodies)])
        except (ConnectionError, asyncio.IncompleteReadError):
            code, answer = 0, b""  # it takes no more connections
        latencies.append(loop.time() - due)
        good = answer.endswith(b'"Error":""}') if path == "/filter" else answer[:9] == b'[{"Host":'
        errors += code != 200 or not good

    async with asyncio.TaskGroup() as tasks:
        for number in range(int(rate * seconds)):
            tasks.create_task(one(number))
    return latencies, errors


def body(names: Sequence[str] | None, nodes: Sequence[Any] | None, number: int = 0) -> bytes:
    """A request about the pod of this number."""
    requests = {"cpu": "100m", "memory": "200Mi"}
    container = {"name": "app", "image": "app:1", "resources": {"requests": requests}}
    meta = {"name": f"web-{number}", "namespace": "default", "uid": f"uid-{number}"}
    pod = {"metadata": meta, "spec": {"containers": [container]}}
    whole = {"metadata": {}, "items": nodes} if nodes is not None else None
    return msgspec.json.encode({"Pod": pod, "Nodes": whole, "NodeNames": names})


def padded(node: Any, size: int) -> Any:
    """A node of about so many bytes, as nodes with images and managed fields are."""
    missing = max(size - len(msgspec.json.encode(node)), 0)
    meta = {**node["metadata"], "annotations": {"padding": "x" * missing}}
    return {**node, "metadata": meta}


async def run(nodes: int, rate: float, seconds: float, form: str) -> dict[str, float]:
    """The whole story; what was measured."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.extender", "--serve", "--form", form),
        *("--nodes", str(nodes)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**28,
    )
    assert child.stdout is not None
    assert child.stdin is not None
    told = json.loads(await child.stdout.readline())
    caller = Caller(told["port"])
    try:
        bodies = [body(told["names"], None, number) for number in range(8)]
        await load(caller, bodies, rate, min(1.0, seconds))  # to warm up
        latencies, errors = await load(caller, bodies, rate, seconds)
        found = {
            "requests": float(len(latencies)),
            "errors": float(errors),
            **{f"p{share} ms": _share(latencies, share) * 1000 for share in (50, 90, 99, 100)},
        }
        for size in (2_000, 20_000):
            whole = body(None, [padded(node, size) for node in told["nodes"]])
            began = time.perf_counter()
            code, answer = await caller.ask("/filter", whole)
            what = f"{nodes} whole nodes, {len(whole) / 2**20:.0f} MiB: code {code}, ms"
            found[what] = (time.perf_counter() - began) * 1000
            assert code == 413 or answer.endswith(b'"Error":""}')
    finally:
        caller.close()
        child.stdin.close()
        ended = json.loads(await child.stdout.readline())
        await child.wait()
    return {**found, "extender CPU s": ended["cpu"], "extender MB": ended["megabytes"]}


def _share(latencies: list[float], share: int) -> float:
    ordered = sorted(latencies)
    return ordered[min(len(ordered) * share // 100, len(ordered) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--form", choices=("plugin", "function"), default="plugin")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.nodes, options.form))
        return
    found = asyncio.run(run(options.nodes, options.rate, options.seconds, options.form))
    for name, value in found.items():
        print(f"{name:<50}{value:>12.1f}")


if __name__ == "__main__":
    main()
