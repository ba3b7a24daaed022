"""What to deploy: names, an image, and a configuration that states all names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from mooring import __version__
from mooring import config as cfg
from mooring.cli.config import read_configuration, registry_with
from mooring.cli.options import CommandOptions
from mooring.client.lease import refuse_foreign_lease
from mooring.errors import ConfigError, Problem, UsageError
from mooring.runtime.profile import ProfilePlan, plan_profiles
from mooring.runtime.registry import Registry

SYSTEM_NAMESPACE: Final = "kube-system"
DEFAULT_IMAGE: Final = f"mooring:{__version__}"
USUAL_REPLICAS: Final = 2

# It may be the name of a Service, and those begin with a letter.
_NAME: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

_replace = msgspec.structs.replace


class ManifestOptions(CommandOptions, frozen=True, kw_only=True):
    """What `mooring manifests` understands. None: not given."""

    name: str
    namespace: str = SYSTEM_NAMESPACE
    config: str = ""
    image: str | None = None
    replicas: int | None = None
    priority_class: str | None = None
    output: str = "yaml"
    write_to: str = ""
    plugin: Sequence[str] = ()


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler for one cluster; `config` states the names of its lease and its profiles."""

    name: str
    namespace: str
    image: str
    replicas: int
    priority_class: str  # empty for none
    config: cfg.KubeSchedulerConfiguration
    plans: list[ProfilePlan]
    plugins: tuple[str, ...]  # of --plugin
    notes: tuple[str, ...]  # to read before applying it

    @property
    def elects(self) -> bool:
        return self.config.leader_election.leader_elect


def plan_release(options: ManifestOptions) -> Release:
    """Read and complete a configuration file, if there is one; raises ConfigError."""
    if wrong := list(_flag_problems(options)):
        raise UsageError(wrong)
    problems: list[Problem] = []
    registry = registry_with(options.plugin)
    config, given = _read(options.config, registry)
    config = _completed(config, given, options.name, options.namespace)
    election, replicas = config.leader_election, options.replicas
    if replicas is None:
        replicas = USUAL_REPLICAS if election.leader_elect else 1
    if replicas > 1 and not election.leader_elect:
        text = f"must be true for {replicas} replicas: each of them would schedule the same pods"
        problems.append(Problem("leaderElection.leaderElect", text))
    if election.leader_elect:
        foreign = refuse_foreign_lease(election.resource_namespace, election.resource_name)
        problems += [foreign] if foreign is not None else []
    notes = tuple(_notes(config))
    in_cluster = _replace(config.client_connection, kubeconfig="")
    config = _replace(config, client_connection=in_cluster)
    problems += cfg.validate(config)
    try:
        plans = plan_profiles(config, registry)
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems], options.config) from error
    if problems:
        raise ConfigError(problems, options.config)
    return Release(
        name=options.name,
        namespace=options.namespace,
        image=options.image or DEFAULT_IMAGE,
        replicas=replicas,
        priority_class=_priority_class(options.priority_class, options.namespace),
        config=config,
        plans=plans,
        plugins=tuple(options.plugin),
        notes=notes,
    )


def _flag_problems(options: ManifestOptions) -> Iterator[Problem]:
    image, replicas = options.image, options.replicas
    if not _NAME.fullmatch(options.name):
        text = f"expected lower-case letters, digits and -, a letter first: {options.name!r}"
        yield Problem("--name", text)
    if not _NAMESPACE.fullmatch(options.namespace):
        text = f"expected lower-case letters, digits and -: {options.namespace!r}"
        yield Problem("--namespace", text)
    if image is not None and image.split() != [image]:
        yield Problem("--image", f"expected the name of an image, got {image!r}")
    if replicas is not None and replicas < 1:
        yield Problem("--replicas", f"expected 1 or more, got {replicas}")


def _read(file: str, registry: Registry) -> tuple[cfg.KubeSchedulerConfiguration, Any]:
    """The configuration, and the file as written, which shows what was left to defaults."""
    if not file:
        return cfg.default_configuration(), {}
    loaded = read_configuration(file, registry)
    return loaded.config, loaded.document


def _completed(
    config: cfg.KubeSchedulerConfiguration, given: Any, name: str, namespace: str
) -> cfg.KubeSchedulerConfiguration:
    """Fill in the names that the file leaves open: ours, not kube-scheduler's.

    The lease is in our own namespace then, and is named after the first profile, so that all
    schedulers of the same pods elect one leader.
    """
    election, profiles = config.leader_election, config.profiles
    before = profiles[0].scheduler_name
    is_unnamed = len(profiles) == 1 and not _found(given, "profiles", 0, "schedulerName")
    if is_unnamed and before == cfg.DEFAULT_SCHEDULER_NAME:
        profiles = (_replace(profiles[0], scheduler_name=name),)
    stated = {
        field: getattr(election, field) != usual or bool(_found(given, "leaderElection", key))
        for field, key, usual in (
            ("resource_name", "resourceName", before),
            ("resource_namespace", "resourceNamespace", SYSTEM_NAMESPACE),
        )
    }
    own = {"resource_name": profiles[0].scheduler_name, "resource_namespace": namespace}
    open_ = {field: value for field, value in own.items() if not stated[field]}
    return _replace(config, profiles=profiles, leader_election=_replace(election, **open_))


def _found(data: Any, *path: str | int) -> Any:
    """The value at a path of plain data, or None."""
    for step in path:
        if isinstance(step, int):
            data = data[step] if isinstance(data, Sequence) and len(data) > step else None
        else:
            data = data.get(step) if isinstance(data, dict) else None
    return data


def _notes(config: cfg.KubeSchedulerConfiguration) -> Iterator[str]:
    if file := config.client_connection.kubeconfig:
        yield (
            f"clientConnection.kubeconfig: {file} is left out:"
            " in the cluster the service account is used"
        )
    if not config.leader_election.leader_elect:
        yield (
            "leaderElection.leaderElect: false, so there is one replica, and none while it is"
            " replaced"
        )
    for profile in config.profiles:
        if profile.scheduler_name == cfg.DEFAULT_SCHEDULER_NAME:
            yield (
                "profiles: default-scheduler is kube-scheduler's; without it the pods of"
                " this Deployment are not placed"
            )
    for index, extender in enumerate(config.extenders):
        tls = extender.tls_config
        if tls is None:
            continue
        for field, file in (
            ("certFile", tls.cert_file),
            ("keyFile", tls.key_file),
            ("caFile", tls.ca_file),
        ):
            if file:
                yield f"extenders[{index}].tlsConfig.{field}: {file} has to be mounted or built in"
        if tls.key_data:
            yield (
                f"extenders[{index}].tlsConfig.keyData: every reader of the ConfigMap can read"
                " the key; better mount a Secret and name it in keyFile"
            )


def _priority_class(asked: str | None, namespace: str) -> str:
    """Outside kube-system many clusters forbid the system's classes by a ResourceQuota."""
    if asked is not None:
        return asked
    return "system-cluster-critical" if namespace == SYSTEM_NAMESPACE else ""
