"""`mooring config validate`, `mooring config show` and `mooring config convert`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from mooring import config as cfg
from mooring.cli.options import CommandOptions
from mooring.errors import ConfigError, Problem
from mooring.framework.plugin import Base
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry


class ConfigOptions(CommandOptions, frozen=True, kw_only=True):
    """What `validate` and `show` understand."""

    file: str
    plugin: Sequence[str]


class ConvertOptions(CommandOptions, frozen=True, kw_only=True):
    """What `convert` understands."""

    file: str
    output: str


def validate(options: ConfigOptions) -> int:
    """Print whether the scheduler would start with this file."""
    try:
        _, plans, _ = _plan(options)
    except ConfigError as error:
        return print_problems(error, _name(options.file))
    names = ", ".join(plan.scheduler_name for plan in plans)
    count = f"{len(plans)} profile{'s' if len(plans) > 1 else ''}"
    print(f"{_name(options.file)}: valid; {count}: {names}")
    return 0


def show(options: ConfigOptions) -> int:
    """Print the effective configuration."""
    try:
        config, plans, registry = _plan(options)
    except ConfigError as error:
        return print_problems(error, _name(options.file))
    print(effective_yaml(config, plans, registry.names), end="")
    return 0


def convert(options: ConvertOptions) -> int:
    """Print or write the file as v1, with notes on what changed."""
    try:
        text = cfg.to_v1_yaml(_read(options.file))
    except ConfigError as error:
        return print_problems(error, _name(options.file))
    if options.output:
        return write_text(options.output, text)
    print(text, end="")
    return 0


def write_text(file: str, text: str) -> int:
    """Write a file; the exit code."""
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"{file}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _plan(
    options: ConfigOptions,
) -> tuple[cfg.KubeSchedulerConfiguration, list[ProfilePlan], Registry]:
    registry = registry_with(options.plugin)
    loaded = _read(options.file)
    plans = plan_profiles(loaded.config, registry)
    for note in loaded.notes:
        print(f"{_name(options.file)}: note: {note}", file=sys.stderr)
    return loaded.config, plans, registry


def plugin_classes(registry: Registry, paths: Sequence[str]) -> tuple[type[Base], ...]:
    """The classes of `--plugin module:Class`, which the registry knows."""
    return tuple(registry.get(registry.add_path(path)) for path in paths)


def effective_yaml(
    config: cfg.KubeSchedulerConfiguration, plans: list[ProfilePlan], known_plugins: Collection[str]
) -> str:
    """The configuration in effect, as a file; plugins without arguments need no entry."""
    args = {
        plan.scheduler_name: {
            plugin: value for plugin, value in plan.args.items() if value.__struct_fields__
        }
        for plan in plans
    }
    return cfg.to_yaml(config, known_plugins, args)


def _read(file: str) -> cfg.Loaded:
    """The configuration in a file of any version, also inside a ConfigMap."""
    if file == "-":
        return cfg.read_text(sys.stdin.read(), _name(file), in_manifests=True)
    return cfg.read_file(file, in_manifests=True)


def _name(file: str) -> str:
    return "<stdin>" if file == "-" else file


def print_problems(error: ConfigError, name: str) -> int:
    """List every problem of a file on standard error; the exit code."""
    for problem in error.problems:
        shown = str(problem)
        print(shown if shown.startswith(name) else f"{name}: {shown}", file=sys.stderr)
    count = len(error.problems)
    print(f"{count} problem{'s' if count > 1 else ''} found", file=sys.stderr)
    return 1


def registry_with(plugins: Sequence[str]) -> Registry:
    """Installed plugins and those of `--plugin module:Class`."""
    registry = Registry.discover()
    problems = []
    for path in plugins:
        try:
            registry.add_path(path)
        except LookupError as error:
            problems.append(Problem(f"--plugin {path}", str(error.args[0])))
    if problems:
        raise ConfigError(problems)
    return registry
