"""`mooring run`, from parsed flags to exit code."""

from __future__ import annotations

import asyncio
import logging
import sys

from mooring import __version__
from mooring.cli.config import print_problems, write_text
from mooring.cli.run.options import RunOptions
from mooring.cli.run.process import Process
from mooring.cli.run.settings import Settings, complete_settings, warn_of_ignored
from mooring.client.incluster import find_endpoint
from mooring.errors import ConfigError
from mooring.observe import log as logs

log = logging.getLogger(__name__)


def run(options: RunOptions) -> int:
    """Run a scheduler until it is told to stop."""
    logs.configure(options.v, options.logging_format, sys.stderr)
    try:
        settings = complete_settings(options)
        if options.write_config_to:
            return _write_config(settings)
        return asyncio.run(_run(settings))
    except ConfigError as error:
        return print_problems(error, options.config or "mooring")


async def _run(settings: Settings) -> int:
    warn_of_ignored(settings.options)
    kubeconfig, options = settings.config.client_connection.kubeconfig, settings.options
    endpoint = find_endpoint(kubeconfig, options.master, context=options.context)
    process = Process(settings, endpoint)
    if not options.config and not options.master:
        log.warning(
            "without --config the pods of default-scheduler are scheduled: kube-scheduler's"
        )
    profiles = ",".join(plan.scheduler_name for plan in settings.plans)
    extra = {"v": 0, "version": __version__, "profiles": profiles}
    log.info("Starting mooring", extra=extra)
    return await process.run()


def _write_config(settings: Settings) -> int:
    target = settings.options.write_config_to
    code = write_text(target, settings.to_yaml())
    if code == 0:
        print(f"wrote configuration to {target}")
    return code
