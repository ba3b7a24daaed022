"""The pod and the nodes of a filter or prioritize request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from mooring.api import core
from mooring.api.codec import DecodeError, decode
from mooring.cache.arrays import IntArray
from mooring.cache.cache import Cache
from mooring.cache.pods import Pod
from mooring.cache.snapshot import Nodes
from mooring.extender.serving.cluster import WatchedCluster
from mooring.extender.wire import ExtenderArgs, NodeList, name_of


class Failure(Exception):
    """Why a request can't be answered; `plugin` is the one that failed, if any."""

    def __init__(self, text: str, plugin: str = "") -> None:
        super().__init__(text)
        self.plugin: str = plugin


VerbHandler = Callable[[Any], Awaitable[Any]]
"""Payload in, payload out; raises `Failure`."""


class ExtenderRequest(msgspec.Struct, frozen=True):
    """A pod and its candidate nodes."""

    pod: Pod
    names: tuple[str, ...]  # of all nodes of the request, in its order
    cache: Cache  # holds the nodes, and possibly others
    nodes: Nodes  # those of them that are known
    places: IntArray  # in `names`, one for each of `nodes`
    listed: NodeList | None = None  # the nodes as sent, if they were sent in full


async def read_request(args: ExtenderArgs, cluster: WatchedCluster) -> ExtenderRequest:
    """Look up or decode the objects of a request; raises `Failure`."""
    problem = cluster.problem()
    if problem:
        raise Failure(f"the extender is not ready: {problem}")
    pod = read_pod(args.pod)
    if args.nodes is not None:
        items = args.nodes.items or ()
        names = tuple(map(_name_of, items))
        cache = await cluster.described(items, names)
    elif args.node_names is not None:
        names = args.node_names
        cache = await cluster.known(names)
    else:
        raise Failure("the request names no nodes: both Nodes and NodeNames are null")
    nodes, places = select(cache, names)
    return ExtenderRequest(pod, names, cache, nodes, places, args.nodes)


def read_pod(raw: msgspec.Raw) -> Pod:
    try:
        return Pod(decode(bytes(raw), core.Pod))
    except DecodeError as error:
        raise Failure(f"the pod of the request can't be read: {error}") from error


def select(cache: Cache, names: tuple[str, ...]) -> tuple[Nodes, IntArray]:
    """The nodes of these names that are there, and the place of each among the names."""
    row_of = cache.table.row_of
    rows = np.fromiter(map(row_of.get, names, repeat(-1)), np.int64, len(names))
    places: IntArray = np.argsort(rows, kind="stable")
    rows = rows[places]
    unknown = int(np.searchsorted(rows, 0))
    rows, places = rows[unknown:], places[unknown:]
    known = cache.nodes
    if len(rows) == len(known) and bool((rows == np.arange(len(rows))).all()):
        return known, places
    return known.take(rows), places


def _name_of(raw: msgspec.Raw) -> str:
    name = name_of(raw)
    if not name:
        raise Failure("a node of the request has no name")
    return name
