"""Options and configuration file completed into `Settings`, checked as a whole."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from mooring import config as cfg
from mooring.api.selectors import SelectorError, parse_label_query
from mooring.cli.config import (
    effective_args,
    effective_yaml,
    plugin_classes,
    read_configuration,
    registry_with,
)
from mooring.cli.run.configuration import election_of, with_flags
from mooring.cli.run.feature_gates import read_feature_gates
from mooring.cli.run.flags import IGNORED
from mooring.cli.run.options import ComponentOptions, RunOptions
from mooring.cli.run.policy import config_map_reader
from mooring.client.lease import refuse_foreign_lease
from mooring.errors import ConfigError, Problem, UsageError
from mooring.framework.plugin import Base
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.scheduler.overruns import ALL_PLUGINS, POLICIES, Policy

log = logging.getLogger(__name__)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and how."""

    config: cfg.KubeSchedulerConfiguration
    plans: list[ProfilePlan]
    plugins: tuple[type[Base], ...]  # of --plugin
    known_plugins: tuple[str, ...]
    feature_gates: frozenset[str]  # that are turned on
    policies: dict[str, Policy]  # by plugin: what follows when it overruns
    options: RunOptions

    def to_document(self) -> Any:
        return cfg.to_document(self.config, self.known_plugins, effective_args(self.plans))

    def to_yaml(self) -> str:
        return effective_yaml(self.config, self.plans, self.known_plugins)


def complete_settings(options: RunOptions) -> Settings:
    """Read the file, override it by flags, plan the profiles; raises ConfigError."""
    feature_gates = read_feature_gates(options.feature_gates)
    registry = registry_with(options.plugin)
    config = cfg.default_configuration()
    if options.config:
        loaded = read_configuration(options.config, registry, config_map_reader(options))
        config = loaded.config
        for note in loaded.notes:
            log.warning("configuration note", extra={"path": note.path, "note": note.text})
    config = with_flags(config, options)
    problems = config_problems(config, options)
    if problems:
        raise flag_error(problems, options.config)
    plans = plan_profiles(config, registry, feature_gates)
    return Settings(
        config=config,
        plans=plans,
        plugins=plugin_classes(registry, options.plugin),
        known_plugins=tuple(registry.names),
        feature_gates=feature_gates,
        policies=_policies(options.on_overrun, plans),
        options=options,
    )


def _policies(given: Sequence[str], plans: Sequence[ProfilePlan]) -> dict[str, Policy]:
    """The values of --on-overrun, by plugin."""
    known = {ALL_PLUGINS}.union(*(plan.classes for plan in plans))
    policies: dict[str, Policy] = {}
    problems = []
    for text in given:
        plugin, _, policy = text.partition("=")
        if policy not in POLICIES:
            expected = f"expected PLUGIN={'|'.join(POLICIES)}, got {text!r}"
            problems.append(Problem("--on-overrun", expected))
        elif plugin not in known:
            problems.append(Problem("--on-overrun", f"no profile enables the plugin {plugin!r}"))
        else:
            policies[plugin] = cast("Policy", policy)
    if problems:
        raise UsageError(problems)
    return policies


def warn_of_ignored(options: RunOptions) -> None:
    """Log which of the given flags have no effect."""
    for flag in IGNORED:
        if flag in options.ignored:
            log.warning("the flag has no effect", extra={"flag": flag})


def flag_error(problems: Sequence[Problem], file: str = "") -> ConfigError:
    """The error for a configuration that flags completed; some fields may come from a file."""
    of_flags = all(problem.path.startswith("--") for problem in problems)
    return UsageError(problems) if of_flags else ConfigError(problems, file)


def config_problems(
    config: cfg.KubeSchedulerConfiguration, options: ComponentOptions
) -> list[Problem]:
    """Problems of a configuration, and of flags that have no field in it."""
    problems = cfg.validate(config)
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        text = "needs --tls-private-key-file beside it, and the other way round"
        problems.append(Problem("--tls-cert-file", text))
    if not 0 <= options.secure_port <= 65535:
        problems.append(Problem("--secure-port", f"expected 0 to 65535, got {options.secure_port}"))
    if isinstance(options, RunOptions):
        problems += _mode_problems(config, options)
    try:
        parse_label_query(options.node_selector)
    except SelectorError as error:
        problems.append(Problem("--node-selector", str(error)))
    election = election_of(config)
    if election is not None:
        foreign = refuse_foreign_lease(election.namespace, election.name)
        problems += [foreign] if foreign is not None else []
    return problems


def _mode_problems(
    config: cfg.KubeSchedulerConfiguration, options: RunOptions
) -> Iterator[Problem]:
    """Problems of --shadow, --reload and the flags of the record."""
    if options.shadow_report and not options.shadow:
        yield Problem("--shadow-report", "needs --shadow beside it")
    if options.reload and options.shadow:
        yield Problem("--reload", "can't be used with --shadow")
    elif options.reload and config.leader_election.leader_elect:
        yield Problem("--reload", "is for development and needs --leader-elect=false")
    if not options.record_size:
        given = {
            "--record-file": options.record_file,
            "--record-journal": options.record_journal,
            "--record-otlp": options.record_otlp,
        }
        text = "records nothing with --record-size 0"
        yield from (Problem(flag, text) for flag, value in given.items() if value)
