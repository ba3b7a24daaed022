"""`mooring run`, from parsed flags to exit code."""

from __future__ import annotations

import asyncio
import sys

from mooring.cli.config import print_problems, write_text
from mooring.cli.run.options import RunOptions
from mooring.cli.run.process import run_process
from mooring.cli.run.settings import Settings, complete_settings, warn_of_ignored
from mooring.errors import ConfigError
from mooring.observe import log as logs


def run(options: RunOptions) -> int:
    """Run a scheduler until it is told to stop."""
    logs.configure(options.v, options.logging_format, sys.stderr)
    try:
        settings = complete_settings(options)
        if options.write_config_to:
            return _write_config(settings)
        warn_of_ignored(options)
        is_reload_due = asyncio.run(_process(settings))
    except ConfigError as error:
        return print_problems(error, "mooring run")
    if is_reload_due:
        from mooring.cli.run.reload import execute_again

        execute_again()
    return 0


async def _process(settings: Settings) -> bool:
    """Whether the process is to be executed again."""
    if settings.options.shadow:
        from mooring.cli.run.shadow import run_shadow  # imported late: a scheduler has no shadow

        await run_shadow(settings)
        return False
    return await run_process(settings)


def _write_config(settings: Settings) -> int:
    target = settings.options.write_config_to
    code = write_text(target, settings.to_yaml())
    if code == 0:
        print(f"wrote configuration to {target}")
    return code
