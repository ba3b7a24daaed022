"""Who sees what at `/lens/v1` of a cluster: the API server's callers, by its own authorisation."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.cluster.apiserver.http_fixtures import Client, in_loop, serving

from mooring.cluster.apiserver._auth import Attributes
from mooring.cluster.apiserver.requests import ADMIN, Caller
from mooring.cluster.embedded import EmbeddedCluster, run_scheduler
from mooring.cluster.lens import ClusterLens
from mooring.ui.lens import PREFIX, LensPages

STATE = "/lens/v1/state"


def reads_default(caller: Caller, asked: Attributes) -> str:
    """An authorisation by which all callers may read what is in one namespace."""
    return "" if asked.namespace == "default" else f"{caller.name} reads the default namespace only"


@asynccontextmanager
async def lens() -> AsyncIterator[Client]:
    """A client of a cluster with a scheduler, whose callers are the administrator and Jane."""
    tokens = {"t-admin": ADMIN, "t-jane": Caller(name="jane", groups=("dev",))}
    async with EmbeddedCluster(kubelets=False, controllers=False) as cluster:
        running = await run_scheduler(cluster)
        async with serving(cluster.server, tokens=tokens, authorize=reads_default) as served:
            server, client = served
            server.others[PREFIX] = ClusterLens(LensPages(running.lens))
            yield client


@in_loop
async def test_shows_nothing_to_callers_it_does_not_know() -> None:
    async with lens() as client:
        assert (await client.ask(STATE, token=""))[0] == 401


@in_loop
async def test_shows_everything_to_the_administrator() -> None:
    async with lens() as client:
        status, _, body = await client.ask(STATE)
    assert status == 200
    assert json.loads(body)["version"] == 1


@in_loop
async def test_shows_a_namespace_to_callers_who_may_list_its_pods() -> None:
    async with lens() as client:
        status, _, body = await client.ask(STATE, token="t-jane")
        assert status == 403
        assert b'User \\"jane\\" cannot list pods in all namespaces' in body
        assert (await client.ask(f"{STATE}?namespace=default", token="t-jane"))[0] == 200
        assert (await client.ask(f"{STATE}?namespace=other", token="t-jane"))[0] == 403
