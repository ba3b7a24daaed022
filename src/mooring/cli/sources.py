"""Which cluster a command is about: a file, the cluster of a kubeconfig, or a running scheduler.

`add_source_flags` of `source_flags` adds `--from`, `--kubeconfig` and `--context`; `load` turns
them into a Snapshot. What goes wrong is one line on standard error and exit code 1: see `reported`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from mooring.cli.options import CommandOptions
from mooring.cli.progress import progress
from mooring.client.client import ApiClient
from mooring.client.endpoint import Endpoint
from mooring.client.errors import Unreachable
from mooring.client.http import HttpTransport
from mooring.client.incluster import find_endpoint
from mooring.client.paths import resource_of
from mooring.client.server_access import ServerAccess, find_server, get
from mooring.errors import ApiError, ConfigError, MooringError, Problem, UsageError
from mooring.lens.collect import collect
from mooring.lens.reading import read_snapshot, snapshot_of
from mooring.lens.snapshot import KINDS, Snapshot
from mooring.observe import garbage_collection

CLUSTER: Final = "cluster"
_LONGEST_SNAPSHOT: Final = 1 << 30  # bytes
_TICK: Final = 0.1  # seconds
_PATIENCE: Final = 300.0  # seconds for an answer
_SNAPSHOT_PATH: Final = "/lens/v1/snapshot"

OptionsT = TypeVar("OptionsT", bound=CommandOptions)


class SourceOptions(CommandOptions, frozen=True, kw_only=True):
    """The flags of `add_source_flags`."""

    source: str  # --from
    kubeconfig: str
    context: str
    token: str
    client_certificate: str
    client_key: str
    certificate_authority: str
    insecure_skip_tls_verify: bool

    @property
    def is_scheduler(self) -> bool:
        """Whether a running scheduler is asked."""
        return self.source.startswith(("http://", "https://"))


def reported(run: Callable[[OptionsT], int]) -> Callable[[OptionsT], int]:
    """A command whose errors are printed, each on a line of its own; exit code 1."""

    def command(options: OptionsT) -> int:
        try:
            return run(options)
        except ConfigError as error:
            print(*error.lines, sep="\n", file=sys.stderr)
            return 2 if isinstance(error, UsageError) else 1
        except MooringError as error:
            print(error, file=sys.stderr)
        return 1

    return command


def load(options: SourceOptions, *, quiet: bool = False) -> Snapshot:
    """The snapshot that the flags mean; notes go to standard error, unless `quiet`."""
    with garbage_collection.suspended():
        found = _read(options)
    if not quiet:
        tell(found)
    return found


def _read(options: SourceOptions) -> Snapshot:
    source = options.source
    if options.is_scheduler:
        return snapshot_of(ask_scheduler(options, _SNAPSHOT_PATH), source)
    if source in ("", CLUSTER):
        return asyncio.run(_of_cluster(options))
    return read_snapshot(Path(source))


def tell(snapshot: Snapshot) -> None:
    """What was left out, and which kinds could not be read, on standard error."""
    for note in snapshot.notes:
        print(note, file=sys.stderr)
    for missing in snapshot.missing:
        print(f"not read: {missing.resource}: {missing.problem}", file=sys.stderr)


async def _of_cluster(options: SourceOptions) -> Snapshot:
    endpoint = find_endpoint(options.kubeconfig, context=options.context)
    transport = _transport(endpoint)
    kinds = [resource_of(kind) for kind in KINDS.values()]
    try:
        with progress() as shown:

            def on_page(resource: str, count: int) -> None:
                place = kinds.index(resource)
                shown.show(f"reading {resource}: {count:,}", place, len(kinds))

            return await collect(ApiClient(transport), on_page=on_page)
    except (ApiError, ConfigError) as error:
        raise named_error(endpoint, error) from error
    finally:
        await transport.close()


def ask_scheduler(options: SourceOptions, path: str) -> bytes:
    """What a running scheduler answers, with the user of the flags or of the kubeconfig."""
    from mooring.cli.run.options import USER_AGENT

    endpoint = _scheduler(options)
    asking = get(
        endpoint, path, user_agent=USER_AGENT, seconds=_PATIENCE, max_answer=_LONGEST_SNAPSHOT
    )
    try:
        return asyncio.run(_shown(asking))
    except ApiError as error:
        raise named_error(endpoint, error) from error


async def _shown(asking: Coroutine[Any, Any, bytes]) -> bytes:
    """The answer; while it is waited for, a bar says so."""
    answer = asyncio.ensure_future(asking)
    with progress() as shown:
        while not (await asyncio.wait([answer], timeout=_TICK))[0]:
            shown.show("waiting for the scheduler")
    return answer.result()


@asynccontextmanager
async def scheduler_transport(options: SourceOptions) -> AsyncIterator[HttpTransport]:
    """Carries requests to a running scheduler; errors inside name its address."""
    endpoint = _scheduler(options)
    transport = _transport(endpoint)
    try:
        yield transport
    except ApiError as error:
        raise named_error(endpoint, error) from error
    finally:
        await transport.close()


def _scheduler(options: SourceOptions) -> Endpoint:
    if not options.is_scheduler:  # a cluster of `mooring cluster up` answers for its scheduler
        return find_endpoint(options.kubeconfig, context=options.context)
    names = ServerAccess.__struct_fields__
    return find_server(
        options.source, ServerAccess(**{name: getattr(options, name) for name in names})
    )


def named_error(endpoint: Endpoint, error: ApiError | ConfigError) -> ConfigError:
    """The error with the address of the server in front."""
    why = f"can't reach the server: {error}" if isinstance(error, Unreachable) else str(error)
    return ConfigError([Problem(f"{endpoint.host}:{endpoint.port}", why)])


def _transport(endpoint: Endpoint) -> HttpTransport:
    from mooring.cli.run.options import USER_AGENT

    return HttpTransport(endpoint, user_agent=USER_AGENT)
