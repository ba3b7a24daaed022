"""`mooring run` lists nodes and pods before its modules are loaded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from tests.client.http_server import Handler, Peer, answer, serve, until

from mooring.api import core
from mooring.cli.options import from_namespace
from mooring.cli.parser import make_parser
from mooring.cli.run.first_lists import ServerConnection, begin_lists
from mooring.cli.run.options import RunOptions
from mooring.client.client import ApiClient
from mooring.client.informer import Informers, nodes_and_pods

HEADER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""
META = b'{"metadata": {"resourceVersion": "7"}, "items": '
LISTS = {
    "/api/v1/nodes": META + b'[{"metadata": {"name": "n"}}]}',
    "/api/v1/pods": META + b"[]}",
}


def lists() -> Handler:
    async def handler(peer: Peer) -> None:
        while True:
            request = await peer.request()
            if "watch=true" in request.path:
                await peer.gone()
            await peer.send(answer(LISTS[urlsplit(request.path).path]))

    return handler


async def begin(folder: Path, port: int, config: str, *flags: str) -> ServerConnection | None:
    """Begin as a process with these flags does; `config` stands beside the kubeconfig."""
    server = {"server": f"http://127.0.0.1:{port}"}
    context = {"name": "c", "context": {"cluster": "c", "user": ""}}
    kubeconfig = {
        "clusters": [{"name": "c", "cluster": server}],
        "contexts": [context],
        "current-context": "c",
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    (folder / "config.yaml").write_text(HEADER + config)
    kube = "" if "kubeconfig" in config else f"--kubeconfig={folder / 'kubeconfig'}"
    words = [f"--config={folder / 'config.yaml'}", kube, *flags]
    parsed = make_parser().parse_args(["run", *filter(None, words)])
    return await begin_lists(from_namespace(RunOptions, parsed))


@pytest.mark.parametrize(
    ("config", "flags", "listed"),
    [
        ("leaderElection: {leaderElect: false}", [], ["nodes", "pods"]),
        ("leaderElection: {leaderElect: true}", ["--leader-elect=false"], ["nodes", "pods"]),
        ("", [], ["nodes"]),  # the last leader may bind pods until this process is the leader
    ],
)
async def test_lists_what_it_would_list_first(
    tmp_path: Path, config: str, flags: list[str], listed: list[str]
) -> None:
    async with serve(lists()) as server:
        flags = [*flags, "--node-selector=pool=mine"]
        connection = await begin(tmp_path, server.port, config, *flags)
        assert connection is not None
        await until(lambda: len(server.requests) == len(listed))
        await connection.close()
        asked = {
            urlsplit(one.path).path.rpartition("/")[2]: parse_qs(urlsplit(one.path).query)
            for one in server.requests
        }
    assert sorted(asked) == listed
    assert asked["nodes"]["labelSelector"] == ["pool=mine"]


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        ("delayCacheUntilActive: true", []),
        ("extenders: [{urlPrefix: http://127.0.0.1:1, filterVerb: filter}]", []),
        ("", ["--shadow"]),
        ("", ["--check-start"]),
        ("", ["--write-config-to=/dev/null"]),
        ("profiles: wrong", []),
        ("clientConnection: {kubeconfig: /no/kubeconfig}", []),
    ],
)
async def test_begins_nothing_that_may_not_be_needed(
    tmp_path: Path, config: str, flags: list[str]
) -> None:
    assert await begin(tmp_path, 1, config, *flags) is None


async def test_informers_take_the_lists(tmp_path: Path) -> None:
    found: list[core.Node] = []

    class Handlers:
        put_node = found.append

        def remove_node(self, node: core.Node) -> None: ...
        def put_pod(self, api: core.Pod) -> None: ...
        def remove_pod(self, api: core.Pod) -> None: ...

    async with serve(lists()) as server:
        connection = await begin(tmp_path, server.port, "leaderElection: {leaderElect: false}")
        assert connection is not None
        client = ApiClient(connection.reading)
        informers = Informers()
        informers.add(*nodes_and_pods(client, Handlers()))
        connection.hand_over(informers)
        running = asyncio.create_task(informers.run())
        await informers.wait_synced()
        running.cancel()
        await asyncio.wait([running])
        await connection.close()
        paths = [one.path for one in server.requests if "watch=true" not in one.path]
    assert [node.name for node in found] == ["n"]
    assert len(paths) == 2
