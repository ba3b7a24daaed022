"""`mooring cluster scale`: another number of nodes for a pool of a running laptop cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from mooring.api.core import ConfigMap
from mooring.cli.options import CommandOptions
from mooring.cli.run.options import USER_AGENT
from mooring.cli.sources import named_error, reported
from mooring.client.client import ApiClient
from mooring.client.errors import NotFound
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.cluster.node_pools import POOLS, scaled
from mooring.cluster.node_templates import MAX_NODES
from mooring.errors import ApiError, ConfigError, Problem, UsageError

_NO_POOLS: Final = (
    "this cluster has no pools: expected one that `mooring cluster up` runs; other nodes are "
    "created and deleted with kubectl"
)


class ScaleOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring cluster scale` understands."""

    sizes: Sequence[str]
    kubeconfig: str
    context: str


@reported
def scale(options: ScaleOptions) -> int:
    """Write the new sizes; the exit code."""
    asyncio.run(_scale(options, _sizes(options.sizes)))
    return 0


def _sizes(texts: Sequence[str]) -> dict[str, int]:
    found = {}
    for text in texts:
        name, _, count = text.partition("=")
        if not count.isdecimal() or int(count) > MAX_NODES:
            raise UsageError([Problem("", f"{text!r}: expected POOL=N, such as gpu=6")])
        found[name] = int(count)
    return found


async def _scale(options: ScaleOptions, sizes: dict[str, int]) -> None:
    endpoint = find_endpoint(options.kubeconfig, context=options.context)
    transport = HttpTransport(endpoint, user_agent=USER_AGENT)
    namespace, name = POOLS
    try:
        client = ApiClient(transport)
        config = await client.get(ConfigMap, name, namespace)
        changed = scaled(config.data, sizes)
        await client.patch(ConfigMap, name, namespace, {"data": changed})
    except NotFound as error:
        raise ConfigError([Problem("", _NO_POOLS)]) from error
    except ApiError as error:
        raise named_error(endpoint, error) from error
    except ValueError as error:
        raise UsageError([Problem("", str(error))]) from error
    finally:
        await transport.close()
    for pool, count in sizes.items():
        print(f"pool {pool}: {count} nodes")
