"""The Policy of an old configuration, read from a ConfigMap of the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mooring import config as cfg
from mooring.api.core import ConfigMap
from mooring.cli.run.options import RunOptions
from mooring.client.client import ApiClient
from mooring.client.endpoint import Endpoint
from mooring.client.errors import NotFound
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.errors import ApiError, ConfigError, Problem


def config_map_reader(options: RunOptions) -> cfg.ReadConfigMap:
    """For `cfg.read_file`: reads from the cluster that the scheduler will work for."""

    def read(namespace: str, name: str, kubeconfig: str) -> Mapping[str, str] | None:
        given = options.kubeconfig or kubeconfig
        endpoint = find_endpoint(given, options.master, context=options.context)
        try:
            return asyncio.run(_fetch(endpoint, namespace, name))
        except NotFound:
            return None
        except ApiError as error:
            place = "algorithmSource.policy.configMap"
            text = f"couldn't get policy config map {namespace}/{name}: {error}"
            raise ConfigError([Problem(place, text)]) from error

    return read


async def _fetch(endpoint: Endpoint, namespace: str, name: str) -> Mapping[str, str]:
    transport = HttpTransport(endpoint, user_agent="mooring")
    try:
        found = await ApiClient(transport).get(ConfigMap, name, namespace)
    finally:
        await transport.close()
    return found.data
