"""`mooring extender`: plugins and functions served to a kube-scheduler over HTTP."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Sequence
from typing import Literal

from mooring import config as cfg
from mooring.cli.config import plugin_classes, print_problems, read_configuration, registry_with
from mooring.cli.options import CommandOptions
from mooring.config.duration import Duration
from mooring.errors import ConfigError, Problem, UsageError
from mooring.extender.serving.app import Options, serve
from mooring.extender.serving.verbs import Extender
from mooring.observe import log as logs
from mooring.observe.texts import named
from mooring.ui.serving_tls import ServingTls


class ExtenderOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring extender` understands."""

    extender: str
    plugin: Sequence[str]
    config: str
    serve_bind: bool
    plugin_timeout: Duration

    kubeconfig: str
    context: str
    no_cluster: bool

    bind_address: str
    port: int
    tls_cert_file: str
    tls_private_key_file: str
    client_ca_file: str
    client_names: str
    max_body_bytes: int

    v: int
    logging_format: Literal["text", "json"]


def run(flags: ExtenderOptions) -> int:
    """Serve until it is told to stop; the exit code."""
    logs.configure(flags.v, flags.logging_format, sys.stderr)
    try:
        asyncio.run(_serve(flags))
    except ConfigError as error:
        return print_problems(error, "mooring extender")
    return 0


async def _serve(flags: ExtenderOptions) -> None:
    """Complete and check the options, then serve; raises ConfigError."""
    extender, paths = _functions(flags.extender), list(flags.plugin)
    if flags.extender and extender is None:
        paths.append(flags.extender)
    registry = registry_with(paths)
    config = cfg.default_configuration()
    if flags.config:
        config = read_configuration(flags.config, registry).config
    tls = None
    if flags.tls_cert_file or flags.tls_private_key_file or flags.client_ca_file:
        tls = ServingTls(
            cert_file=flags.tls_cert_file,
            key_file=flags.tls_private_key_file,
            client_ca_file=flags.client_ca_file,
        )
    if flags.client_names and not flags.client_ca_file:
        raise UsageError([Problem("--client-names", "needs --client-ca-file")])
    options = Options(
        address=flags.bind_address,
        port=flags.port,
        cluster=not flags.no_cluster,
        kubeconfig=flags.kubeconfig,
        context=flags.context,
        serve_bind=flags.serve_bind,
        max_body_bytes=flags.max_body_bytes,
        plugin_seconds=flags.plugin_timeout.seconds,
        certified=bool(flags.client_ca_file),
        client_names=tuple(name for name in flags.client_names.split(",") if name),
    )
    extender = extender or Extender()
    plugins = [*plugin_classes(registry, paths), *extender.plugins]
    await serve(plugins, options, config=config, tls=tls)


def _functions(path: str) -> Extender | None:
    """The Extender at `module:extender`; None if another object is there."""
    module, colon, name = path.partition(":")
    if not path:
        return None
    try:
        found: object = importlib.import_module(module)
        for part in (name if colon else "extender").split("."):
            found = getattr(found, part)
    except Exception as error:
        text = f"can't import {path}: {named(error)}"
        raise ConfigError([Problem("", text)]) from error
    return found if isinstance(found, Extender) else None
