"""`mooring ui`: the page about a cluster, a running scheduler or a file."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from mooring.cli.config import read_configuration, registry_with
from mooring.cli.imagined import read_config
from mooring.cli.sources import CLUSTER, SourceOptions, load, reported, scheduler_transport
from mooring.client.errors import Forbidden
from mooring.errors import ConfigError, Problem
from mooring.lens.explainer import Explainer
from mooring.lens.offline import OfflineLens
from mooring.observe.signals import handle_signals
from mooring.simulator.imagine import Run, search_paths
from mooring.simulator.questions import Imagination
from mooring.ui.file_lens import FileLens
from mooring.ui.one_file import one_file
from mooring.ui.page_server import Backend, served
from mooring.ui.upstream import UpstreamLens


class UiOptions(SourceOptions, frozen=True, kw_only=True):
    """What `mooring ui` understands."""

    config: str | None
    plugin: Sequence[str]
    html: str
    port: int
    browser: bool
    namespace: str


@reported
def run(options: UiOptions) -> int:
    """Serve the page until Ctrl-C, or write it; the exit code."""
    if options.is_scheduler and not options.html:
        return asyncio.run(_serve_scheduler(options))
    lens, imagination = _of_snapshot(options)
    if options.html:
        return _write(Path(options.html), one_file(lens))
    return asyncio.run(_serve_snapshot(lens, imagination, options))


def _of_snapshot(options: UiOptions) -> tuple[OfflineLens, Imagination]:
    registry = registry_with(options.plugin)
    config = read_configuration(options.config).config if options.config else None
    snapshot = load(options, quiet=True)  # what matters is in the notes
    lens = OfflineLens(
        snapshot,
        Explainer(snapshot, config, registry),
        source="cluster" if options.source == CLUSTER else "file",
    )
    base = Run(
        config=read_config(options.config, options.plugin) if options.config else "",
        config_name=options.config or "",
        plugins=tuple(options.plugin),
        paths=search_paths(*filter(None, [options.config])),
    )
    return lens, Imagination(snapshot, options.source, base)


def _write(file: Path, page: bytes) -> int:
    try:
        file.write_bytes(page)
    except OSError as error:
        raise ConfigError([Problem(str(file), error.strerror or str(error))]) from error
    print(f"{file}: {len(page):,} bytes; open it in a browser")
    return 0


# --- serving -------------------------------------------------------------------------------------


async def _serve_snapshot(lens: OfflineLens, imagination: Imagination, options: UiOptions) -> int:
    is_cluster = options.source == CLUSTER
    read_again = (lambda: _of_snapshot(options)) if is_cluster else None
    backend = FileLens(lens, imagination, read_again)
    try:
        await backend.warm_up()
        return await _until_stopped(backend, options)
    finally:
        backend.close()


async def _serve_scheduler(options: UiOptions) -> int:
    async with scheduler_transport(options) as transport:
        backend = UpstreamLens(transport, options.namespace)
        try:
            await backend.check()
        except Forbidden as error:
            if options.namespace:
                raise
            text = f"{error}; a reader of one namespace names it: --namespace NAME"
            raise ConfigError([Problem(options.source, text)]) from error
        return await _until_stopped(backend, options)


async def _until_stopped(backend: Backend, options: UiOptions) -> int:
    stop = asyncio.Event()
    handle_signals(stop.set)
    async with served(backend, options.port) as server:
        address = server.new_address()
        print(f"{address}\nThis address opens the page once. Ctrl-C ends it.", flush=True)
        if options.browser:
            webbrowser.open(address)
        await stop.wait()
    return 0
