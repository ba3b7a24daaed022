"""From flags and file to one value that says everything about this process, checked as a whole."""

from __future__ import annotations

import argparse
import logging
from typing import Any, Final

import msgspec
import yaml

from mooring import config as cfg
from mooring.api.selectors import SelectorError, parse_label_query
from mooring.cli.config import registry_with
from mooring.cli.run.feature_gates import check_feature_gates
from mooring.cli.run.flags import IGNORED
from mooring.cli.run.policy import config_map_reader
from mooring.client.lease import refuse_foreign_lease
from mooring.errors import ConfigError, Problem
from mooring.framework.plugin import Base
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry

log = logging.getLogger(__name__)

_ELECTION_FLAGS: Final = {
    "leader_elect": "leader_elect",
    "leader_elect_lease_duration": "lease_duration",
    "leader_elect_renew_deadline": "renew_deadline",
    "leader_elect_retry_period": "retry_period",
    "leader_elect_resource_name": "resource_name",
    "leader_elect_resource_namespace": "resource_namespace",
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and how."""

    config: cfg.KubeSchedulerConfiguration
    plans: list[ProfilePlan]
    plugins: tuple[type[Base], ...]  # of --plugin
    known_plugins: tuple[str, ...]
    flags: argparse.Namespace

    @property
    def scheduler_name(self) -> str:
        """The name this process goes by: its first profile's."""
        return self.plans[0].scheduler_name

    def to_document(self) -> Any:
        """The configuration in effect, as plain data."""
        return yaml.safe_load(self.to_yaml())

    def to_yaml(self) -> str:
        """The configuration in effect, as a file."""
        args = {
            plan.scheduler_name: {
                name: value for name, value in plan.args.items() if value.__struct_fields__
            }
            for plan in self.plans
        }
        return cfg.to_yaml(self.config, self.known_plugins, args)


def complete_settings(flags: argparse.Namespace) -> Settings:
    """Read the file, lay the flags over it, plan the profiles; raises ConfigError."""
    check_feature_gates(flags.feature_gates)
    registry = registry_with(flags.plugin)
    config = cfg.default_configuration()
    notes: tuple[cfg.Note, ...] = ()
    if flags.config:
        loaded = cfg.read_file(flags.config, read_config_map=config_map_reader(flags))
        config, notes = loaded.config, loaded.notes
    for note in notes:
        log.warning("configuration note", extra={"path": note.path, "note": note.text})
    config = with_flags(config, flags)
    problems = [*cfg.validate(config), *flag_problems(flags)]
    if config.leader_election.leader_elect:
        election = config.leader_election
        foreign = refuse_foreign_lease(election.resource_namespace, election.resource_name)
        problems += [foreign] if foreign is not None else []
    if problems:
        raise ConfigError(problems, flags.config)
    plans = plan_profiles(config, registry)
    return Settings(
        config=config,
        plans=plans,
        plugins=_classes(registry, flags.plugin),
        known_plugins=tuple(registry.names),
        flags=flags,
    )


def warn_of_ignored(flags: argparse.Namespace) -> None:
    """Say which flags were understood and have no effect."""
    for flag in IGNORED:
        if getattr(flags, flag.lstrip("-").replace("-", "_")) is not None:
            log.warning("the flag has no effect", extra={"flag": flag})


def with_flags(
    config: cfg.KubeSchedulerConfiguration, flags: argparse.Namespace
) -> cfg.KubeSchedulerConfiguration:
    """The configuration with the flags for leader election and connection laid over it."""
    election = {
        field: value
        for flag, field in _ELECTION_FLAGS.items()
        if (value := getattr(flags, flag)) is not None
    }
    connection: dict[str, object] = {}
    if flags.kubeconfig:
        connection["kubeconfig"] = flags.kubeconfig
    if flags.kube_api_qps is not None:
        connection["qps"] = flags.kube_api_qps
    if flags.kube_api_burst is not None:
        connection["burst"] = flags.kube_api_burst
    replace = msgspec.structs.replace
    return replace(
        config,
        leader_election=replace(config.leader_election, **election),
        client_connection=replace(config.client_connection, **connection),
    )


def flag_problems(flags: argparse.Namespace) -> list[Problem]:
    """What is wrong with flags that have no place in a configuration."""
    problems = []
    if bool(flags.tls_cert_file) != bool(flags.tls_private_key_file):
        text = "needs --tls-private-key-file beside it, and the other way round"
        problems.append(Problem("--tls-cert-file", text))
    if not 0 <= flags.secure_port <= 65535:
        problems.append(Problem("--secure-port", f"expected 0 to 65535, got {flags.secure_port}"))
    try:
        parse_label_query(flags.node_selector)
    except SelectorError as error:
        problems.append(Problem("--node-selector", str(error)))
    return problems


def _classes(registry: Registry, paths: list[str]) -> tuple[type[Base], ...]:
    return tuple(registry.get(registry.add_path(path)) for path in paths)
