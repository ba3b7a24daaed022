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
        asyncio.run(run_process(settings))
    except ConfigError as error:
        return print_problems(error, options.config or "mooring")
    return 0


def _write_config(settings: Settings) -> int:
    target = settings.options.write_config_to
    code = write_text(target, settings.to_yaml())
    if code == 0:
        print(f"wrote configuration to {target}")
    return code
