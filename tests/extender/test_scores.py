"""The scores of extenders beside those of plugins."""

import asyncio
from typing import Any, cast

import numpy as np

from mooring import config as cfg
from mooring.cache.cache import Cache
from mooring.client.transport import Transport
from mooring.decision.scoring import Scores
from mooring.extender.calling.caller import ExtenderCaller
from mooring.extender.calling.chain import Extenders
from mooring.testing import node, pod


class Answer:
    status = 200
    body = b'[{"Host":"b","Score":7},{"Host":"b","Score":1}]'


class AlwaysTheSame:
    async def send(self, request: Any, fence: Any) -> Answer:
        return Answer()


def test_the_scores_of_an_extender_are_listed_weighted_and_summed_by_host() -> None:
    config = cfg.Extender(url_prefix="http://x", prioritize_verb="p", weight=2)
    caller = ExtenderCaller(config, cast("Transport", AlwaysTheSame()))
    cache = Cache()
    for name in "ab":
        cache.put_node(node(name).api)
    ours = Scores((), np.array([100, 100], dtype=np.int64))
    asked = Extenders([caller]).score(pod("p"), cache.nodes, ours)
    scores, best = asyncio.run(asked)
    (table,) = scores.plugins
    assert (table.plugin, table.weight, table.scores.tolist()) == ("http://x", 20, [0, 8])
    assert scores.totals.tolist() == [100, 260]
    assert best == ["b"]
