"""`mooring doctor`, from parsed flags to exit code: runs all checks, prints what they found."""

from __future__ import annotations

import asyncio
import logging
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version

import msgspec
from msgspec import structs
from rich.console import Console

from mooring import __version__
from mooring import config as cfg
from mooring.api.codec import decode
from mooring.api.coordination import Lease
from mooring.cli.config import read_configuration, registry_with
from mooring.cli.doctor.costs import check_plugins
from mooring.cli.doctor.findings import DoctorFinding, ok, problem, show, warning
from mooring.cli.doctor.schedulers import Leases, check_lease, check_nodes, check_schedulers
from mooring.cli.doctor.server import check_permissions, check_server
from mooring.cli.options import CommandOptions
from mooring.cli.run.configuration import election_of
from mooring.cli.run.options import USER_AGENT
from mooring.client.client import ApiClient
from mooring.client.errors import Forbidden
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.client.permissions import lease_permissions
from mooring.errors import ApiError, ConfigError
from mooring.lens.collect import collect
from mooring.lens.snapshot import Snapshot
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.scheduler.rbac import cluster_permissions

_DEPENDENCIES = ("aiohttp", "msgspec", "numpy")


class DoctorOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring doctor` understands."""

    config: str
    plugin: Sequence[str]
    kubeconfig: str
    context: str
    output: str


def run(options: DoctorOptions) -> int:
    """Check everything; 1 if there is a problem."""
    logging.getLogger("mooring").addHandler(logging.NullHandler())  # findings say it
    found = list(_installation())
    try:
        config, plans = _configuration(options)
    except ConfigError as error:
        where = "`mooring config validate` checks the file alone"
        found += [problem("configuration", line, where) for line in error.lines]
    else:
        text = f"{options.config or 'defaults'}: valid"
        found.append(ok("configuration", text))
        found += asyncio.run(_cluster(options, config, plans))
    if options.output == "json":
        sys.stdout.buffer.write(msgspec.json.encode({"version": 1, "findings": found}) + b"\n")
    else:
        show(found, Console(highlight=False))
    return int(any(one.level == "problem" for one in found))


def _installation() -> Iterator[DoctorFinding]:
    libraries = ", ".join(f"{name} {version(name)}" for name in _DEPENDENCIES)
    python = platform.python_version()
    yield ok("installation", f"mooring {__version__}, Python {python}, {libraries}")


def _configuration(
    options: DoctorOptions,
) -> tuple[cfg.KubeSchedulerConfiguration, list[ProfilePlan]]:
    registry = registry_with(options.plugin)
    if options.config:
        config = read_configuration(options.config, registry).config
    else:
        config = cfg.default_configuration()
    if options.kubeconfig:
        connection = structs.replace(config.client_connection, kubeconfig=options.kubeconfig)
        config = structs.replace(config, client_connection=connection)
    return config, plan_profiles(config, registry)


async def _cluster(
    options: DoctorOptions, config: cfg.KubeSchedulerConfiguration, plans: list[ProfilePlan]
) -> list[DoctorFinding]:
    try:
        endpoint = find_endpoint(config.client_connection.kubeconfig, context=options.context)
    except ConfigError as error:
        advice = "name one with --kubeconfig, or run inside a cluster"
        return [problem("server", line, advice) for line in error.lines]
    address = f"{endpoint.host}:{endpoint.port}"
    transport = HttpTransport(endpoint, user_agent=USER_AGENT)
    try:
        return await _checked(transport, address, config, plans)
    except ApiError as error:
        advice = "check address, network and credentials with `kubectl version`"
        return [problem("server", f"{address}: {str(error).removeprefix(f'{address}: ')}", advice)]
    finally:
        await transport.close()


async def _checked(
    transport: HttpTransport,
    address: str,
    config: cfg.KubeSchedulerConfiguration,
    plans: list[ProfilePlan],
) -> list[DoctorFinding]:
    client = ApiClient(transport)
    found = await check_server(transport, address)
    election = election_of(config)
    needed = cluster_permissions(plans, reviews=True)
    if election is not None:
        needed += lease_permissions(election.namespace, election.name)
    found += await check_permissions(client, needed)
    leases = await _leases(client)
    try:
        snapshot: Snapshot = await collect(client)
    except ConfigError as error:
        return [*found, *(problem("rights", line, "") for line in error.lines)]
    cluster = snapshot.cluster
    for missing in snapshot.missing:
        text = f"{missing.resource} can't be read: {missing.problem}"
        found.append(warning("rights", text, "plugins that read it decide without it"))
    found += check_nodes(cluster)
    found += check_schedulers([plan.scheduler_name for plan in plans], cluster, leases)
    found += check_lease(election, leases)
    found += check_plugins(plans, cluster)
    return found


async def _leases(client: ApiClient) -> Leases | None:
    """All of them; None if they may not be listed."""
    found: list[Lease] = []
    continue_ = ""
    try:
        while True:
            page = await client.list_page(Lease, continue_=continue_)
            found += (decode(raw, Lease) for raw in page.items)
            continue_ = page.continue_
            if not continue_:
                return Leases(tuple(found), time.time())
    except Forbidden:
        return None
