"""`mooring config validate`, `mooring config show` and `mooring config convert`."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from mooring import config as cfg
from mooring.cli.options import CommandOptions
from mooring.errors import ConfigError, Problem, UsageError
from mooring.framework.plugin import Args, Base
from mooring.runtime.profile import ProfilePlan, plan_profiles, profile_problems
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
        return print_problems(error, "mooring config validate")
    names = ", ".join(plan.scheduler_name for plan in plans)
    count = f"{len(plans)} profile{'s' if len(plans) > 1 else ''}"
    print(f"{file_name(options.file)}: valid; {count}: {names}")
    return 0


def show(options: ConfigOptions) -> int:
    """Print the effective configuration."""
    try:
        config, plans, registry = _plan(options)
    except ConfigError as error:
        return print_problems(error, "mooring config show")
    print(effective_yaml(config, plans, registry.names), end="")
    return 0


def convert(options: ConvertOptions) -> int:
    """Print or write the file as v1, with notes on what changed."""
    try:
        text = cfg.to_v1_yaml(read_configuration(options.file))
    except ConfigError as error:
        return print_problems(error, "mooring config convert")
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
    loaded = read_configuration(options.file, registry)
    plans = plan_profiles(loaded.config, registry)
    for note in (*loaded.notes, *(note for plan in plans for note in plan.notes)):
        line = loaded.lines.of(note.path, nearest=loaded.written_as == cfg.API_VERSION)
        place = f"{loaded.source}:{line}" if line else loaded.source
        print(f"{place}: note: {note}", file=sys.stderr)
    return loaded.config, plans, registry


def plugin_classes(registry: Registry, paths: Sequence[str]) -> tuple[type[Base], ...]:
    """The classes of `--plugin module:Class`, which the registry knows."""
    return tuple(registry.get(registry.add_path(path)) for path in paths)


def effective_yaml(
    config: cfg.KubeSchedulerConfiguration, plans: list[ProfilePlan], known_plugins: Collection[str]
) -> str:
    """The configuration in effect, as a file."""
    return cfg.to_yaml(config, known_plugins, effective_args(plans))


def effective_args(plans: Sequence[ProfilePlan]) -> dict[str, dict[str, Args]]:
    """The arguments in effect, by profile and plugin; plugins without any need no entry."""
    return {
        plan.scheduler_name: {
            plugin: value for plugin, value in plan.args.items() if value.__struct_fields__
        }
        for plan in plans
    }


def read_configuration(
    file: str, registry: Registry | None = None, read_config_map: cfg.ReadConfigMap | None = None
) -> cfg.Loaded:
    """The configuration in a file: the one reader of all commands.

    The file may be of any version, and the configuration inside a ConfigMap; `-` is standard input.
    With a registry, unknown plugins and wrong arguments are among the problems. Raises ConfigError.
    """

    def check(config: cfg.KubeSchedulerConfiguration) -> list[Problem]:
        return profile_problems(config, registry) if registry is not None else []

    if file == "-":
        text = sys.stdin.read()
        return cfg.read_text(text, file_name(file), read_config_map=read_config_map, check=check)
    return cfg.read_file(file, read_config_map=read_config_map, check=check)


def file_name(file: str) -> str:
    """The name of a file in messages."""
    return "<stdin>" if file == "-" else file


def print_problems(error: ConfigError, command: str) -> int:
    """List every problem on standard error, with its file or else the command; the exit code."""
    for shown in error.lines:
        print(shown if error.source else f"{command}: {shown}", file=sys.stderr)
    count = len(error.problems)
    print(f"{count} problem{'s' if count > 1 else ''} found", file=sys.stderr)
    return 2 if isinstance(error, UsageError) else 1


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
