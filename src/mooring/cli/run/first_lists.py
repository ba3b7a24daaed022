"""Lists nodes and pods while the modules of the scheduler are being loaded.

    flags, file ─▶ endpoint ─▶ lists begin ─▶ modules, settings ─▶ the informers take the lists
                                    └────── turns of the loop between them ──────┘

Half of the time to the first bind is spent on loading modules. The API server prepares the lists
meanwhile, and what has come is read between two modules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from mooring import config as cfg
from mooring.api import core
from mooring.cli.run.configuration import with_flags
from mooring.cli.run.options import USER_AGENT, RunOptions
from mooring.client.client import ApiClient
from mooring.client.component import connector
from mooring.client.endpoint import Endpoint
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.client.informer import UNFINISHED_PODS, Informers
from mooring.client.listing import FirstList, Query
from mooring.errors import ConfigError
from mooring.observe.metrics import Metrics

# Each of them loads others. The first one takes as long as a server needs to shake hands.
_MODULES: Final = (
    "importlib.metadata",
    "numpy",
    "mooring.cache.cache",
    "mooring.framework",
    "mooring.runtime.profile",
    "mooring.decision.evaluation",
    "mooring.queue.queue",
    "mooring.scheduler.scheduler",
    "mooring.cli.run.process",
    "mooring.plugins.dynamicresources",
)
_IDLE: Final = 50e-6  # seconds that a step of the loop takes at most without anything to do


class ServerConnection:
    """The API server that a scheduler works for, and lists of it that were begun at once."""

    def __init__(self, endpoint: Endpoint, queries: Iterable[Query] = ()) -> None:
        self.endpoint: Endpoint = endpoint
        self.metrics: Metrics = Metrics()
        self.connect: Callable[[], HttpTransport] = connector(endpoint, self.metrics, USER_AGENT)
        self.reading: HttpTransport = self.connect()
        client = ApiClient(self.reading)
        self._lists: list[FirstList[Any]] = [
            FirstList(client, query, query.kind) for query in queries
        ]

    def hand_over(self, informers: Informers) -> None:
        """Let the informers of the same objects begin with these lists."""
        for first in self._lists:
            informers.begin_with(first)

    async def close(self) -> None:
        for first in self._lists:
            await first.cancel()
        await self.reading.close()


def connect(config: cfg.KubeSchedulerConfiguration, options: RunOptions) -> ServerConnection:
    """Find the API server; raises ConfigError."""
    return ServerConnection(_endpoint(config, options))


async def begin_lists(options: RunOptions) -> ServerConnection | None:
    """Begin to list what these options will have listed at once.

    None if that is nothing, or the server is not known: then the start goes on without, and fails
    where it has always failed.
    """
    if options.shadow or options.check_start or options.write_config_to or options.config == "-":
        return None
    try:
        config = cfg.load_file(options.config) if options.config else cfg.default_configuration()
        config = with_flags(config, options)
        if config.delay_cache_until_active or config.extenders:  # these are sent objects as JSON
            return None
        return ServerConnection(_endpoint(config, options), _queries(config, options))
    except ConfigError:
        return None


def _queries(config: cfg.KubeSchedulerConfiguration, options: RunOptions) -> Iterator[Query]:
    yield Query(core.Node, labels=options.node_selector)
    if not config.leader_election.leader_elect:
        # A leader's pods have to be listed in its term: the last leader may have bound some.
        yield Query(core.Pod, fields=UNFINISHED_PODS)


def _endpoint(config: cfg.KubeSchedulerConfiguration, options: RunOptions) -> Endpoint:
    kubeconfig = config.client_connection.kubeconfig
    return find_endpoint(kubeconfig, options.master, context=options.context)


def load_modules(runner: asyncio.Runner) -> None:
    """Load what a scheduler consists of; lists under way go on."""
    loop = runner.get_loop()
    loop.run_until_complete(_turn())
    for name in _MODULES:
        import_module(name)
        loop.run_until_complete(_turn())


async def _turn() -> None:
    """Handle what has come."""
    now = asyncio.get_running_loop().time
    is_idle = False
    while not is_idle:
        began = now()
        await asyncio.sleep(0)
        is_idle = now() - began < _IDLE
