"""`mooring controller`: a function that picks nodes, run as a process with endpoints."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys

import msgspec

from mooring import __version__
from mooring import config as cfg
from mooring.cli.config import print_problems
from mooring.cli.run.component import run_component
from mooring.cli.run.configuration import election_of, with_flags
from mooring.cli.run.options import USER_AGENT, ComponentOptions
from mooring.cli.run.settings import config_problems, flag_error
from mooring.client.component import connector
from mooring.client.endpoint import Endpoint
from mooring.client.incluster import find_endpoint
from mooring.controller.app import Controller
from mooring.controller.metrics import ControllerMetrics
from mooring.controller.runner import Options, Runner
from mooring.errors import ConfigError, Problem
from mooring.observe import log as logs
from mooring.observe.process import add_process_metrics
from mooring.observe.texts import named

log = logging.getLogger(__name__)


class ControllerOptions(ComponentOptions, frozen=True, kw_only=True):
    """What `mooring controller` understands."""

    controller: str  # module:name
    workers: int


def run(flags: ControllerOptions) -> int:
    """Run a controller until it is told to stop; the exit code."""
    logs.configure(flags.v, flags.logging_format, sys.stderr)
    try:
        controller = find_controller(flags.controller)
        options = runner_options(flags, controller)
        endpoint = find_endpoint(flags.kubeconfig, flags.master, context=flags.context)
        asyncio.run(_run(controller, options, endpoint, flags))
    except ConfigError as error:
        return print_problems(error, "mooring controller")
    return 0


def find_controller(path: str) -> Controller:
    """The controller at `module:name`; raises ConfigError with the reason if there is none."""
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise ConfigError([Problem(path, "expected MODULE:NAME, such as my_scheduler:choose")])
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        text = f"can't be imported: {named(error)}"
        raise ConfigError([Problem(path, text)]) from error
    if not isinstance(found, Controller):
        text = f"is a {type(found).__name__}, expected a function under @controller(…)"
        raise ConfigError([Problem(path, text)])
    return found


def runner_options(flags: ControllerOptions, controller: Controller) -> Options:
    """Options of the runner; raises ConfigError with every problem."""
    if flags.leader_elect_resource_name is None:
        name = controller.scheduler_name
        flags = msgspec.structs.replace(flags, leader_elect_resource_name=name)
    config = with_flags(cfg.default_configuration(), flags)
    problems = config_problems(config, flags)
    if problems:
        raise flag_error(problems)
    return Options(
        workers=flags.workers,
        qps=config.client_connection.qps,
        burst=config.client_connection.burst,
        node_selector=flags.node_selector,
        election=election_of(config),
        grace=flags.shutdown_grace_period.seconds,
        reviews=flags.secure_port != 0,
        permission_check=flags.permission_check_interval.seconds,
    )


async def _run(
    controller: Controller, options: Options, endpoint: Endpoint, flags: ControllerOptions
) -> None:
    metrics = ControllerMetrics()
    add_process_metrics(metrics)
    connect = connector(endpoint, metrics, USER_AGENT)
    runner = Runner(controller, connect, options, metrics=metrics)
    extra = {"v": 0, "version": __version__, "controller": flags.controller}
    log.info("Starting mooring", extra={**extra, "schedulerName": controller.scheduler_name})
    await run_component(runner.run, runner.component, runner.guard, flags, metrics)
