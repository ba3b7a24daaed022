"""`mooring run`, from parsed flags to exit code.

The modules of a scheduler are imported late: lists of nodes and pods are under way meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from mooring.cli.run.first_lists import ServerConnection, begin_lists, load_modules
from mooring.cli.run.options import RunOptions
from mooring.errors import ConfigError
from mooring.observe import garbage_collection
from mooring.observe import log as logs

if TYPE_CHECKING:
    from mooring.cli.run.settings import Settings


def run(options: RunOptions) -> int:
    """Run a scheduler until it is told to stop."""
    logs.configure(options.v, options.logging_format, sys.stderr)
    garbage_collection.read_a_cluster_first()
    try:
        with asyncio.Runner() as runner:
            connection = runner.run(begin_lists(options))
            try:
                load_modules(runner)
                settings = _complete(options)
                if options.write_config_to:
                    return _write_config(settings)
                is_reload_due = runner.run(_process(settings, connection))
            finally:
                if connection is not None:
                    runner.run(connection.close())
    except ConfigError as error:
        from mooring.cli.config import print_problems

        return print_problems(error, "mooring run")
    if is_reload_due:
        from mooring.cli.run.reload import execute_again

        execute_again()
    return 0


def _complete(options: RunOptions) -> Settings:
    from mooring.cli.run.settings import complete_settings

    return complete_settings(options)


async def _process(settings: Settings, connection: ServerConnection | None) -> bool:
    """Whether the process is to be executed again."""
    from mooring.cli.run.settings import warn_of_ignored

    warn_of_ignored(settings.options)
    if settings.options.shadow:
        from mooring.cli.run.shadow import run_shadow  # a scheduler has no shadow

        await run_shadow(settings)
        return False
    from mooring.cli.run.process import run_process

    return await run_process(settings, connection)


def _write_config(settings: Settings) -> int:
    from mooring.cli.config import write_text

    target = settings.options.write_config_to
    code = write_text(target, settings.to_yaml())
    if code == 0:
        print(f"wrote configuration to {target}")
    return code
