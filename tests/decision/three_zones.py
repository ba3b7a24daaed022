"""Nodes in three zones of different sizes, so that rows are listed in another order."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from mooring.cache.cache import Cache
from mooring.cache.internals import listing_of
from mooring.cache.snapshot import Nodes
from mooring.decision.feasible import pick
from mooring.testing import node

SIZE = 90
ROWS = st.integers(0, SIZE - 1)
MANY_ROWS = st.lists(ROWS, unique=True, max_size=SIZE)


def nodes(size: int = SIZE) -> Nodes:
    cache = Cache()
    for i in range(size):
        zone = "a" if i < 50 else "b" if i < 80 else "c"
        cache.put_node(node(f"n{i}", zone=zone, labels={"rack": f"r{i % 7}"}).api)
    return cache.nodes


NODES = nodes()
MANY_NODES = {size: nodes(size) for size in (2, 31, 128, 600)}


def winner(passed: dict[int, bool], points: dict[int, int], nodes: Nodes = NODES) -> int:
    listed = [row for row in listing_of(nodes).tolist() if passed[row]]
    row: int = listed[pick(np.array([points[row] for row in listed]))]
    return row
